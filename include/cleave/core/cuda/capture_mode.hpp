// Streams that are captured into graphs, and what a thread may call meanwhile.
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

namespace cleave::inline v0::cuda::detail {

/// The capture state of a stream.
struct CaptureState {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;  ///< of the capture, if it is active
};

/// If another stream's capture prevents queries of the stream, the stream counts as taking part in
/// an invalidated capture.
inline CaptureState capture_at(cudaStream_t stream) noexcept {
  CaptureState state;
  if (cudaStreamGetCaptureInfo(stream, &state.status, &state.number) == cudaSuccess) return state;
  static_cast<void>(cudaGetLastError());
  return {cudaStreamCaptureStatusInvalidated, 0};
}

}  // namespace cleave::inline v0::cuda::detail
