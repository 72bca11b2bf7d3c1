// The thread that runs a rank's asynchronous work, and how others wait for it.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/worker_thread.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave::inline v0::detail {

struct Job::State {
  mutable std::mutex mutex{};
  std::condition_variable condition{};
  std::exception_ptr error{};
  bool done = false;
  CommPlace place = CommPlace::current();
  std::shared_ptr<AbortNotification> failures{};
  int rank = 0;
  int exceptions = std::uncaught_exceptions();
};

/// One thread that runs jobs first in, first out.
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
    queue_->push(nullptr);
    // a job may release the last handle of a rank, on the worker's own thread
    if (thread_.get_id() == std::this_thread::get_id()) thread_.detach();
    else thread_.join();
  }

  void start(Job& job) { queue_->push(&job); }

 private:
  struct Queue {
    /// Appends a job; null: no more will come.
    void push(Job* job) {
      const std::lock_guard lock(mutex);
      if (job == nullptr) ending = true;
      else jobs.push_back(job);
      condition.notify_one();
    }

    void serve() {
      for (;;) {
        std::unique_lock lock(mutex);
        condition.wait(lock, [this] { return ending || !jobs.empty(); });
        if (jobs.empty()) return;
        Job& job = *jobs.front();
        jobs.erase(jobs.begin());
        lock.unlock();
        job.run();
      }
    }

    std::mutex mutex{};
    std::condition_variable condition{};
    std::vector<Job*> jobs{};
    bool ending = false;
  };

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

CLEAVE_INLINE Job::Job(const RankState& state) : state_(std::make_unique<State>()) {
  state_->failures = state.failures;
  state_->rank = state.world_rank;
}

CLEAVE_INLINE Job::~Job() = default;

CLEAVE_INLINE void Job::await() {
  std::unique_lock lock(state_->mutex);
  state_->condition.wait(lock, [this] { return state_->done; });
  if (state_->error != nullptr) std::rethrow_exception(state_->error);
}

CLEAVE_INLINE void Job::await_quietly() noexcept {
  State& state = *state_;
  if (state.failures != nullptr && std::uncaught_exceptions() > state.exceptions && !ended())
    state.failures->raise(state.rank, "it ended while asynchronous work was in progress");
  std::unique_lock lock(state.mutex);
  state.condition.wait(lock, [&] { return state.done; });
}

CLEAVE_INLINE bool Job::ended() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

CLEAVE_INLINE void Job::run() noexcept {
  const PlaceScope scope(state_->place);  // the place of the thread that started it
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  State& state = *state_;
  const std::lock_guard lock(state.mutex);  // to the end: a rank that waits may destroy this then
  state.error = std::move(error);
  state.done = true;
  state.condition.notify_all();
}

CLEAVE_INLINE void Job::start(Communicator& group) {
  if (!group.concurrent()) return run();
  std::shared_ptr<Worker>& worker = group.state().worker;
  if (worker == nullptr) worker = std::make_shared<Worker>();
  worker->start(*this);
}

}  // namespace cleave::inline v0::detail
