// Streams and events: the order of work on a GPU, and its dependencies.
//
// All work is enqueued on the current stream of the calling thread. A rank is a thread, so that
// every rank has its own stream; a `StreamGuard` replaces it, e.g. by the user's.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/freed_blocks.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave::inline v0::cuda {

/// Detects failures of device work outside this thread, e.g. a collective that is aborted because a
/// peer has failed. Checked by every wait on the host.
class FailureDetector {
 public:
  virtual ~FailureDetector() = default;
  /// @throws Error if a failure has been detected
  virtual void verify() = 0;
  /// Called after a graph has been enqueued on the current stream.
  virtual void launched() = 0;
};

namespace detail {

/// The failure detector of this thread, while there is one.
inline std::weak_ptr<FailureDetector>& detector_slot() {
  static thread_local std::weak_ptr<FailureDetector> detector;
  return detector;
}

/// Whether a query returned that work is pending. This is no error, but the runtime records it as
/// the thread's last error: cleared here, so that users do not see it.
inline bool not_ready(cudaError_t status) noexcept {
  if (status != cudaErrorNotReady) return false;
  static_cast<void>(cudaGetLastError());
  return true;
}

/// Reports why a wait on the host failed or ended early, and errors found by kernels. Aborts are
/// reported first, as results of kernels are undefined after an abort.
inline void end_wait(cudaError_t status, const char* operation) {
  if (const std::shared_ptr<FailureDetector> detector = detector_slot().lock()) detector->verify();
  check(status, operation);
  verify_indices();
}

/// A stream that cleave has created, with the memory that it keeps.
struct OwnStream {
  struct Destroy {
    void operator()(cudaStream_t s) const { static_cast<void>(cudaStreamDestroy(s)); }
  };
  using Handle = std::unique_ptr<CUstream_st, Destroy>;

  explicit OwnStream(Handle made) : handle(std::move(made)), freed(handle.get()) {}

  Handle handle;
  FreedBlocks freed;  ///< ends before the stream
};

}  // namespace detail

/// A stream of the device that was current at its creation: a handle; copies share the stream.
class Stream {
 public:
  /// How a new stream relates to other streams of its device.
  enum class Kind {
    compute,        ///< ordered with the legacy default stream, as CUDA programs expect
    communication,  ///< not ordered with the default stream; of higher priority
  };

  /// @throws Error if there is no device
  explicit Stream(Kind kind = Kind::compute) {
    require_device("cuda::Stream");
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cuda::Stream");
    cudaStream_t made = nullptr;
    const bool compute = kind == Kind::compute;
    check(cudaStreamCreateWithPriority(&made, compute ? cudaStreamDefault : cudaStreamNonBlocking,
                                       compute ? least : greatest),
          "cuda::Stream");
    const auto own = std::make_shared<detail::OwnStream>(detail::OwnStream::Handle(made));
    handle_ = {own, made};
    freed_ = &own->freed;
  }

  /// Wraps the user's stream, which must outlive all tensors that are allocated on it. Null is the
  /// default stream.
  static Stream adopt(cudaStream_t stream) {
    return Stream(std::shared_ptr<CUstream_st>(stream, [](cudaStream_t) {}));
  }

  cudaStream_t get() const noexcept { return handle_.get(); }

  /// The memory that the stream keeps; null for the user's streams, which may end at any time.
  detail::FreedBlocks* freed() const noexcept { return freed_; }

  /// Waits on the host for all work enqueued so far.
  /// @throws Error if any of it failed, or found an index out of range
  void synchronize() const {
    detail::end_wait(cudaStreamSynchronize(get()), "cuda::Stream::synchronize");
  }

  /// Whether all work enqueued so far has completed. @throws Error if any of it failed
  bool idle() const {
    const cudaError_t status = cudaStreamQuery(get());
    if (detail::not_ready(status)) return false;
    check(status, "cuda::Stream::idle");
    return true;
  }

  friend bool operator==(const Stream& a, const Stream& b) { return a.get() == b.get(); }

 private:
  explicit Stream(std::shared_ptr<CUstream_st> handle) : handle_(std::move(handle)) {}

  std::shared_ptr<CUstream_st> handle_;
  detail::FreedBlocks* freed_ = nullptr;
};

/// A point in a stream that other streams and the host can wait for.
class Event {
 public:
  /// @throws Error if there is no device
  Event() {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cuda::Event");
    handle_.reset(made);
  }

  cudaEvent_t get() const noexcept { return handle_.get(); }

  /// Moves the point to the end of the work enqueued so far.
  void record(const Stream& stream) const {
    check(cudaEventRecord(get(), stream.get()), "cuda::Event::record");
  }
  /// Work enqueued on `stream` from now on runs after the point. The host does not wait.
  void wait_on(const Stream& stream) const {
    check(cudaStreamWaitEvent(stream.get(), get(), 0), "cuda::Event::wait_on");
  }
  /// Waits on the host for the point. @throws Error if work before it failed
  void synchronize() const {
    detail::end_wait(cudaEventSynchronize(get()), "cuda::Event::synchronize");
  }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
  };
  std::unique_ptr<CUevent_st, Destroy> handle_;
};

namespace detail {

/// The current stream of this thread; null before its first use.
inline std::shared_ptr<Stream>& current_stream_slot() {
  static thread_local std::shared_ptr<Stream> stream;
  return stream;
}

}  // namespace detail

/// The stream on which this thread enqueues work. By default a new stream, which the first call
/// creates on the device that is current then; the thread keeps that device.
inline const Stream& current_stream() {
  std::shared_ptr<Stream>& stream = detail::current_stream_slot();
  if (stream == nullptr) {
    stream = std::make_shared<Stream>();
    detail::device_is_chosen() = true;
  }
  return *stream;
}

/// The number of the capture in which the stream takes part, if any.
inline std::optional<unsigned long long> capture_of(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  check(cudaStreamGetCaptureInfo(stream.get(), &status, &number), "cuda::capture_of");
  if (status == cudaStreamCaptureStatusNone) return std::nullopt;
  return number;
}

/// Makes a stream of the current device this thread's current stream until the end of the scope.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream)
      : before_(std::exchange(detail::current_stream_slot(),
                              std::make_shared<Stream>(std::move(stream)))) {
    detail::device_is_chosen() = true;
  }
  StreamGuard(const StreamGuard&) = delete;  // scopes nest
  StreamGuard& operator=(const StreamGuard&) = delete;
  ~StreamGuard() { detail::current_stream_slot() = std::move(before_); }

 private:
  std::shared_ptr<Stream> before_;
};

}  // namespace cleave::inline v0::cuda
