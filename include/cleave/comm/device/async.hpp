// Asynchronous results on a device: work on a second stream, which the current one waits for.
//
// Nothing waits on the host, and no second thread is needed: what is enqueued runs by itself.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <cleave/comm/async.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave {

namespace cuda::detail {

/// The second stream of a rank, for what it communicates beside its other work; and the order in
/// which the two join. Kept with the rank.
class SideStream {
 public:
  static SideStream& of(RankState& state) {
    if (state.side_stream == nullptr) state.side_stream = std::make_shared<SideStream>();
    return *static_cast<SideStream*>(state.side_stream.get());
  }

  const Stream& stream() const noexcept { return stream_; }

  /// What is enqueued here from now on runs after what is enqueued on the current stream.
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
  else if constexpr (requires { value.local().storage(); }) hand_over(value.local().storage());
  else if constexpr (requires { std::tuple_size<X>::value; })
    std::apply([](const auto&... part) { (hand_over_all(part), ...); }, value);
  else if constexpr (requires { value.begin() != value.end(); })
    for (const auto& part : value) hand_over_all(part);
}

/// A value that is enqueued on the side stream. Its error, if enqueuing failed, waits for `wait`.
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
    } catch (const std::exception&) {  // reported by whatever uses the device next
    }
  }

  bool ready() const override { return joined_ || !not_ready(cudaEventQuery(end_.get())); }

 private:
  /// What the current stream does next runs after the work; what the work held is given back, in
  /// the order of the stream that it was started from, which waits, too.
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

/// Enqueues what `f()` enqueues on the rank's second stream, behind what the current stream has so
/// far. `wait` makes the current stream wait, not the host.
///
/// @param group  any group of this rank
/// @collective   every rank that f communicates with, in the same order
template <class F>
auto start_async(Cuda, Communicator& group, F f) {
  using T = decltype(f());
  const auto& side = cuda::detail::SideStream::of(group.state());
  return Async<T>(std::make_unique<cuda::detail::Enqueued<T, F>>(side, std::move(f)));
}

}  // namespace cleave
