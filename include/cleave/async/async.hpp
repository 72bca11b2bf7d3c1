// Asynchronous results: work that runs concurrently with the rank that started it.
//
// Each rank has one worker thread, created at the first use, that runs its jobs in the order in
// which they were started; so jobs communicate with each other if all ranks start them in the same
// order. Jobs use separate groups (`Communicator::duplicate`), so that they never mix with the
// rank's own communication. If a backend cannot be used by two threads, a job runs at once and its
// result is ready when the call returns.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <cleave/comm/comm_scope.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Work that can be waited for.
class Pending {
 public:
  virtual ~Pending() = default;
  /// @throws what the work threw
  virtual void wait() = 0;
  /// For a rank that drops the result: does not throw.
  virtual void wait_quietly() noexcept = 0;
  /// Whether `wait` would return at once.
  virtual bool ready() const = 0;
};

/// Work that yields a value.
template <class T>
class Promised : public Pending {
 public:
  /// @pre it has been waited for
  const T& value() const { return *value_; }
  T take() { return std::move(*value_); }

 protected:
  std::optional<T> value_;
};

/// Work for a rank's worker thread, and its end. The thread that starts it must keep it until it
/// has ended; the worker does not access it afterwards.
class Job {
 public:
  /// @param state  of the rank that starts the job
  explicit Job(const RankState& state);
  Job(const Job&) = delete;  // others wait for it where it is
  Job& operator=(const Job&) = delete;
  virtual ~Job();

  /// Runs it on the rank's worker thread, or at once if the group's backend cannot be used by two
  /// threads.
  void start(Communicator& group);

 protected:
  /// The work; what it holds is released before its end is visible.
  virtual void work() = 0;

  /// @throws what the work threw
  void await();
  /// For a rank that drops the job. A rank that unwinds from an error first notifies its peers:
  /// those that communicate with the job may be waiting for the rank.
  void await_quietly() noexcept;
  bool ended() const;

 private:
  friend class Worker;
  struct State;

  void run() noexcept;

  std::unique_ptr<State> state_;
};

/// A job that yields a value.
template <class T, class F>
class Task final : public Promised<T>, public Job {
 public:
  Task(const RankState& state, F f) : Job(state), f_(std::move(f)) {}

  void wait() override { await(); }
  void wait_quietly() noexcept override { await_quietly(); }
  bool ready() const override { return ended(); }

 private:
  void work() override {
    auto f = std::exchange(f_, std::nullopt);
    this->value_.emplace((*f)());
  }

  std::optional<F> f_;
};

}  // namespace detail

// Not in detail: the namespaces of a base are searched for the functions that a call names.

/// The members of an Async of T beyond those for any T.
template <class Self, class T>
struct AsyncMembers {
  using value_type = T;
};

/// An Async of a local tensor is an operand of operations, and has these members of a tensor; all
/// but the types wait.
template <class Self, class T, int Rank, class Device>
struct AsyncMembers<Self, Tensor<T, Rank, Device>> {
  using value_type = T;
  using device_type = Device;
  static constexpr int dims = Rank;

  std::array<index_t, std::size_t(Rank)> shape() const { return value().shape(); }
  index_t extent(int d) const { return value().extent(d); }
  index_t size() const { return value().size(); }
  T item() const { return value().item(); }
  template <class... Index>
  T operator()(Index... index) const {
    return value()(index...);
  }

 private:
  const Tensor<T, Rank, Device>& value() const { return static_cast<const Self&>(*this).wait(); }
};

/// A value that is being computed; waits at first use, by `wait`, or when dropped.
///
/// Movable, not copyable: its value is a handle that can be copied. An error of the work is thrown
/// by every wait; a dropped result swallows it.
template <class T>
class
#if !defined(__CUDACC__)  // nvcc warns of assignments, too
    [[nodiscard]]
#endif
    Async : public AsyncMembers<Async<T>, T> {
 public:
  /// @param promised  a Promised<T>
  explicit Async(std::unique_ptr<detail::Pending> promised) : promised_(std::move(promised)) {}
  Async(Async&&) noexcept = default;
  Async& operator=(Async&& other) noexcept {
    if (this != &other) {
      settle();
      promised_ = std::move(other.promised_);
    }
    return *this;
  }
  Async(const Async&) = delete;  // one owner waits
  Async& operator=(const Async&) = delete;
  ~Async() { settle(); }

  /// Waits for the value; a temporary returns it by value, so that no reference dangles.
  /// @throws what the work threw
  const T& wait() const& {
    promised_->wait();
    return static_cast<const detail::Promised<T>&>(*promised_).value();
  }
  T wait() && {
    promised_->wait();
    return static_cast<detail::Promised<T>&>(*promised_).take();
  }
  /// The same, at first use.
  operator T() const& { return wait(); }
  operator T() && { return std::move(*this).wait(); }
  const T& operator*() const& { return wait(); }
  T operator*() && { return std::move(*this).wait(); }
  const T* operator->() const { return &wait(); }

  /// Whether `wait` would return at once.
  bool ready() const { return promised_->ready(); }

 private:
  void settle() noexcept {
    if (promised_ != nullptr) promised_->wait_quietly();
  }

  std::unique_ptr<detail::Pending> promised_;
};

template <class T>
inline constexpr bool is_async_tensor = false;
template <class T, int Rank, class Device>
inline constexpr bool is_async_tensor<Async<Tensor<T, Rank, Device>>> = true;

namespace detail {
template <class T, int Rank, class Device>
inline constexpr int call_level<Async<Tensor<T, Rank, Device>>> = 0;
}

/// Starts `f()` asynchronously; f may communicate over `group.duplicate()` and groups made from it.
///
/// @param group  any group of this rank: tells whether its backend allows two threads at once
/// @collective   every rank that f communicates with, in the same order
template <class F>
auto start_async(Host, Communicator& group, F f) {
  using T = decltype(f());
  auto task = std::make_unique<detail::Task<T, F>>(group.state(), std::move(f));
  task->start(group);
  return Async<T>(std::move(task));
}

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/async/async_body.hpp>
#endif
