// Streams and events: in which order a GPU works, and what waits for what.
//
// Everything that cleave enqueues goes to the current stream of the calling thread. A rank is a
// thread, so that every rank has a stream of its own; a `StreamGuard` puts another one in its
// place, e.g. the user's.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave::cuda {

/// Something beside this thread that may go wrong with its device's work, e.g. a collective that
/// is given up because a peer has failed. Looked at by whatever waits on the host.
class FailureDetector {
 public:
  virtual ~FailureDetector() = default;
  /// @throws Error if something has gone wrong
  virtual void verify() = 0;
  /// After a graph has been enqueued on the current stream.
  virtual void launched() = 0;
};

namespace detail {

/// The failure detector of this thread, as long as there is one.
inline std::weak_ptr<FailureDetector>& detector_slot() {
  static thread_local std::weak_ptr<FailureDetector> detector;
  return detector;
}

/// Whether a query was answered that not everything has run yet. That is no error, but the runtime
/// remembers it as the thread's last one: forgotten here, lest the user finds it.
inline bool not_ready(cudaError_t status) noexcept {
  if (status != cudaErrorNotReady) return false;
  static_cast<void>(cudaGetLastError());
  return true;
}

/// Reports what made a wait on the host fail, or end early, and what kernels have found; first of
/// all that everything has been given up, after which kernels find anything.
inline void end_wait(cudaError_t status, const char* operation) {
  if (const std::shared_ptr<FailureDetector> detector = detector_slot().lock()) detector->verify();
  check(status, operation);
  verify_indices();
}

}  // namespace detail

/// A stream of the device that was current when it was made: a handle, copies share it.
class Stream {
 public:
  /// How a new stream stands beside others of its device.
  enum class Kind {
    compute,        ///< ordered with the legacy default stream, as CUDA programs expect
    communication,  ///< not ordered with it; preferred where both have work
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
    handle_ = {made, [](cudaStream_t s) { static_cast<void>(cudaStreamDestroy(s)); }};
  }

  /// The user's stream, which must outlive all tensors that are allocated on it. Null: the
  /// default stream.
  static Stream adopt(cudaStream_t stream) {
    return Stream(std::shared_ptr<CUstream_st>(stream, [](cudaStream_t) {}));
  }

  cudaStream_t get() const noexcept { return handle_.get(); }

  /// Waits, on the host, for everything enqueued so far.
  /// @throws Error if any of it failed, or met an index that does not exist
  void synchronize() const {
    detail::end_wait(cudaStreamSynchronize(get()), "cuda::Stream::synchronize");
  }

  /// Whether everything enqueued so far has run. @throws Error if any of it failed
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
};

/// A point in a stream that others can wait for.
class Event {
 public:
  /// @throws Error if there is no device
  Event() {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cuda::Event");
    handle_.reset(made);
  }

  cudaEvent_t get() const noexcept { return handle_.get(); }

  /// Moves the point to the end of what is enqueued so far.
  void record(const Stream& stream) const {
    check(cudaEventRecord(get(), stream.get()), "cuda::Event::record");
  }
  /// Whatever is enqueued on `stream` from now on runs after the point. The host goes on.
  void wait_on(const Stream& stream) const {
    check(cudaStreamWaitEvent(stream.get(), get(), 0), "cuda::Event::wait_on");
  }
  /// Waits on the host. @throws Error if what led to the point failed
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

/// The current stream of this thread; made when it is first asked for.
inline std::shared_ptr<Stream>& current_stream_slot() {
  static thread_local std::shared_ptr<Stream> stream;
  return stream;
}

}  // namespace detail

/// Where this thread enqueues. A thread that has not said otherwise gets a new stream of the
/// device that is current at its first call, and stays with that device.
inline const Stream& current_stream() {
  std::shared_ptr<Stream>& stream = detail::current_stream_slot();
  if (stream == nullptr) {
    stream = std::make_shared<Stream>();
    detail::device_is_chosen() = true;
  }
  return *stream;
}

namespace detail {

/// What a stream takes part in.
struct CaptureState {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;  ///< of the capture, if that is active
};

/// Where nothing may be asked of the stream, because of somebody else's capture, it counts as
/// taking part in one that has failed.
inline CaptureState capture_at(const Stream& stream) noexcept {
  CaptureState state;
  if (cudaStreamGetCaptureInfo(stream.get(), &state.status, &state.number) == cudaSuccess)
    return state;
  static_cast<void>(cudaGetLastError());
  return {cudaStreamCaptureStatusInvalidated, 0};
}

}  // namespace detail

/// The number of the capture into a graph that the stream takes part in, if it does.
inline std::optional<unsigned long long> capture_of(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  check(cudaStreamGetCaptureInfo(stream.get(), &status, &number), "cuda::capture_of");
  if (status == cudaStreamCaptureStatusNone) return std::nullopt;
  return number;
}

/// Makes a stream of the current device the current one of this thread until the end of the scope.
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

}  // namespace cleave::cuda
