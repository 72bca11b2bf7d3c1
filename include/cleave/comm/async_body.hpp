// The thread that runs a rank's asynchronous work, and how others wait for it.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <cleave/comm/async.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/worker_thread.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave::detail {

/// One thread that runs jobs first in, first out.
template <class Device>
class Worker {
 public:
  /// Jobs allocate tensors from the cache of the rank that starts the worker.
  Worker()
      : thread_([queue = queue_, memory = host_cache()]() mutable {
          host_cache(std::move(memory));
          is_worker_thread() = true;
          request_short_time_slices();
          queue->serve();
        }) {}
  Worker(const Worker&) = delete;  // the rank has one
  Worker& operator=(const Worker&) = delete;

  /// Runs all jobs that were started, then ends.
  ~Worker() {
    queue_->end();
    // a job may release the last handle of a rank, on the worker's own thread
    if (thread_.get_id() == std::this_thread::get_id()) thread_.detach();
    else thread_.join();
  }

  void start(Job& job) { queue_->push(job); }

 private:
  class Queue {
   public:
    void push(Job& job) {
      {
        const std::lock_guard lock(mutex_);
        (first_ == nullptr ? first_ : last_->next) = &job;
        last_ = &job;
      }
      condition_.notify_one();
    }

    void end() noexcept {
      {
        const std::lock_guard lock(mutex_);
        ending_ = true;
      }
      condition_.notify_one();
    }

    void serve() {
      for (;;) {
        std::unique_lock lock(mutex_);
        condition_.wait(lock, [this] { return ending_ || first_ != nullptr; });
        if (first_ == nullptr) return;
        Job& job = *first_;
        first_ = job.next;
        lock.unlock();
        job.run();
      }
    }

   private:
    std::mutex mutex_;
    std::condition_variable condition_;
    Job *first_ = nullptr, *last_ = nullptr;  ///< of the queue; the last only if there is a first
    bool ending_ = false;
  };

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

template <class Device>
struct Completion<Device>::State {
  mutable std::mutex mutex{};
  std::condition_variable condition{};
  std::exception_ptr error{};
  bool done = false;
  std::shared_ptr<AbortNotification> abort_notification{};
  int rank = 0;
  int exceptions = std::uncaught_exceptions();
};

template <class Device>
Completion<Device>::Completion(const RankState& state) : state_(std::make_unique<State>()) {
  state_->abort_notification = state.abort_notification;
  state_->rank = state.world_rank;
}

template <class Device>
Completion<Device>::~Completion() = default;

template <class Device>
void Completion<Device>::wait() {
  std::unique_lock lock(state_->mutex);
  state_->condition.wait(lock, [this] { return state_->done; });
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
}

template <class Device>
void Completion<Device>::wait_quietly() noexcept {
  State& state = *state_;
  if (state.abort_notification != nullptr && std::uncaught_exceptions() > state.exceptions &&
      !ready())
    state.abort_notification->raise(state.rank, "it ended while asynchronous work was in progress");
  std::unique_lock lock(state.mutex);
  state.condition.wait(lock, [&] { return state.done; });
}

template <class Device>
bool Completion<Device>::ready() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

template <class Device>
void Completion<Device>::finish(std::exception_ptr&& error) noexcept {
  State& state = *state_;
  const std::lock_guard lock(
      state.mutex);  // until the end: a rank that waits may destroy this afterwards
  state.error = std::move(error);
  state.done = true;
  state.condition.notify_all();
}

template <class Device>
void start_job(Communicator& group, Job& job) {
  if (!group.concurrent()) return job.run();
  std::shared_ptr<void>& worker = group.state().worker;
  if (worker == nullptr) worker = std::make_shared<Worker<Device>>();
  static_cast<Worker<Device>*>(worker.get())->start(job);
}

}  // namespace cleave::detail
