// What a thread may call while streams are captured into graphs.
#pragma once

#include <cuda_runtime_api.h>

namespace cleave::inline v0::detail {

/// Sets the capture mode of this thread until the end of the scope.
class CaptureMode {
 public:
  explicit CaptureMode(cudaStreamCaptureMode mode) : other_(mode) { exchange(); }
  CaptureMode(const CaptureMode&) = delete;  // scopes nest
  CaptureMode& operator=(const CaptureMode&) = delete;
  ~CaptureMode() { exchange(); }

 private:
  void exchange() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&other_)); }

  cudaStreamCaptureMode other_;
};

}  // namespace cleave::inline v0::detail
