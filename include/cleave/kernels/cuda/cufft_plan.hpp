// Fourier transforms of equally spaced lines by cuFFT.
//
// Plans are cached per thread and device, by length and layout. They have no memory of their own:
// each call takes its work area from the pool, in the order of the current stream. Needs no device
// compiler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <cufft.h>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::cuda::detail {

/// @throws Error  unless `status` is success
inline void check_cufft(cufftResult status) {
  if (status == CUFFT_SUCCESS) return;
  throw Error("fft", "cuFFT: cufftResult " + std::to_string(int(status)));
}

/// Where elements lie: from one to the next in a line, and from one line to the next, in elements.
struct FftSpacing {
  index_t step = 1;
  index_t line = 1;

  friend bool operator==(const FftSpacing&, const FftSpacing&) = default;
};

/// The cache key of a transform of `lines` lines of n elements.
struct FftBatch {
  cufftType type{};
  index_t n = 0;
  index_t lines = 1;
  FftSpacing in{}, out{};

  friend bool operator==(const FftBatch&, const FftBatch&) = default;

  std::size_t hash() const {
    std::uint64_t h = std::uint64_t(type);
    for (const index_t value : {n, lines, in.step, in.line, out.step, out.line})
      h = (h ^ std::uint64_t(value)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return std::size_t(h);
  }
};

/// A transform that is ready to be launched.
class FftPlan {
 public:
  /// @throws Error if cuFFT cannot compute it
  explicit FftPlan(const FftBatch& batch) : batch_(batch) {
    check_cufft(cufftCreate(&handle_));
    try {
      check_cufft(cufftSetAutoAllocation(handle_, 0));
      long long n = batch.n;
      check_cufft(cufftMakePlanMany64(handle_, 1, &n, &n, batch.in.step, batch.in.line, &n,
                                      batch.out.step, batch.out.line, batch.type, batch.lines,
                                      &workspace_));
    } catch (...) {
      cufftDestroy(handle_);
      throw;
    }
  }
  FftPlan(const FftPlan&) = delete;  // owns a handle
  FftPlan& operator=(const FftPlan&) = delete;
  ~FftPlan() { cufftDestroy(handle_); }

  const FftBatch& batch() const { return batch_; }

  /// Enqueues the transform on the current stream.
  /// @param in,out     aligned to complex elements
  /// @param direction  CUFFT_FORWARD or CUFFT_INVERSE, of a complex transform
  void run(void* in, void* out, int direction) const {
    const std::shared_ptr<void> workspace = allocate_bytes(Cuda{}, workspace_);
    check_cufft(cufftSetStream(handle_, current_stream().get()));
    if (workspace != nullptr) check_cufft(cufftSetWorkArea(handle_, workspace.get()));
    check_cufft(execute(in, out, direction));
  }

 private:
  cufftResult execute(void* in, void* out, int direction) const {
    using Single = cufftComplex;
    using Double = cufftDoubleComplex;
    using SingleReal = cufftReal;
    using DoubleReal = cufftDoubleReal;
    switch (batch_.type) {
      case CUFFT_C2C:
        return cufftExecC2C(handle_, static_cast<Single*>(in), static_cast<Single*>(out),
                            direction);
      case CUFFT_Z2Z:
        return cufftExecZ2Z(handle_, static_cast<Double*>(in), static_cast<Double*>(out),
                            direction);
      case CUFFT_R2C:
        return cufftExecR2C(handle_, static_cast<SingleReal*>(in), static_cast<Single*>(out));
      case CUFFT_D2Z:
        return cufftExecD2Z(handle_, static_cast<DoubleReal*>(in), static_cast<Double*>(out));
      case CUFFT_C2R:
        return cufftExecC2R(handle_, static_cast<Single*>(in), static_cast<SingleReal*>(out));
      case CUFFT_Z2D:
        return cufftExecZ2D(handle_, static_cast<Double*>(in), static_cast<DoubleReal*>(out));
    }
    return CUFFT_INVALID_TYPE;
  }

  FftBatch batch_;
  cufftHandle handle_ = 0;
  std::size_t workspace_ = 0;
};

/// The plan of a transform for the calling thread and the current device.
inline const FftPlan& fft_plan(const FftBatch& batch) {
  using Plans = std::array<std::unique_ptr<FftPlan>, 64>;  // a direct-mapped cache by hash
  Plans& plans = of_current_device<Plans>("fft");
  std::unique_ptr<FftPlan>& plan = plans[batch.hash() % plans.size()];
  if (plan == nullptr || !(plan->batch() == batch)) {
    plan = nullptr;  // frees the other plan first
    plan = std::make_unique<FftPlan>(batch);
  }
  return *plan;
}

}  // namespace cleave::inline v0::cuda::detail
