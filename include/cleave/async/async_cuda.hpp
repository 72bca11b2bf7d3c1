// Asynchronous results on a device: work on a second stream, for which the current stream waits.
//
// The host does not wait, and no second thread is needed.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <cleave/async/async.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The second stream of a rank, for communication that overlaps other work, and the event that
/// orders it behind the current stream. Kept with the rank.
class SideStream {
 public:
  static SideStream& of(RankState& state) { return state.slots->get<SideStream>(); }

  const Stream& stream() const noexcept { return stream_; }

  /// Orders later work on this stream after the work enqueued on the current stream so far.
  void begin() const {
    begin_.record(current_stream());
    begin_.wait_on(stream_);
  }

 private:
  Stream stream_{Stream::Kind::communication};
  Event begin_;
};

/// Hands the storage of tensors, distributed tensors, and tuples and vectors of them, over to the
/// current stream.
template <class X>
void hand_over_all(const X& value) {
  if constexpr (requires { value.storage(); }) hand_over(value.storage());
  else if constexpr (requires { value.to_local().storage(); })
    hand_over(value.to_local().storage());
  else if constexpr (requires { std::tuple_size<X>::value; })
    std::apply([](const auto&... each) { (hand_over_all(each), ...); }, value);
  else if constexpr (requires { value.begin() != value.end(); })
    for (const auto& each : value) hand_over_all(each);
}

/// A value computed on the side stream. If enqueuing fails, `wait` throws the error.
template <class T, class F>
class Enqueued final : public cleave::detail::Promised<T> {
 public:
  Enqueued(const SideStream& side, F f) : f_(std::move(f)) {
    side.begin();
    const StreamGuard guard(side.stream());
    try {
      this->value_.emplace((*f_)());
    } catch (...) {
      error_ = std::current_exception();
    }
    end_.record(side.stream());
  }

  void wait() override {
    join();
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

  void wait_quietly() noexcept override {
    try {
      join();
    } catch (const std::exception&) {  // reported by the next use of the device
    }
  }

  bool ready() const override { return joined_ || !not_ready(cudaEventQuery(end_.get())); }

 private:
  /// Orders later work on the current stream after the work, and releases the memory that the work
  /// held, in the order of the stream that started it, which also waits.
  void join() {
    if (joined_) return;
    end_.wait_on(current_stream());
    if (!(origin_ == current_stream())) end_.wait_on(origin_);
    joined_ = true;
    if (this->value_) hand_over_all(*this->value_);
    f_.reset();
  }

  Stream origin_ = current_stream();
  std::optional<F> f_;
  Event end_;
  std::exception_ptr error_;
  bool joined_ = false;
};

}  // namespace cuda::detail

/// Runs `f()` with the rank's second stream as the current one, ordered after the work enqueued on
/// the current stream so far. `wait` makes the current stream wait, not the host.
///
/// @param group  any group of this rank
/// @collective   every rank that f communicates with, in the same order
template <class F>
auto start_async(Cuda, Communicator& group, F f) {
  using T = decltype(f());
  const auto& side = cuda::detail::SideStream::of(group.state());
  return Async<T>(std::make_unique<cuda::detail::Enqueued<T, F>>(side, std::move(f)));
}

}  // namespace cleave::inline v0
