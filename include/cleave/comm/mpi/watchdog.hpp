// The thread of a process that ends the job if ranks wait in vain inside of MPI, where no wait can
// be interrupted.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <cleave/comm/mpi/mpi_handle.hpp>

namespace cleave::inline v0::detail {

/// Whether several threads may call MPI at the same time.
inline bool mpi_has_threads() noexcept {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

/// Prints an error of a rank and ends all processes of the job.
[[noreturn]] inline void end_job(int rank, const std::string& error,
                                 bool calls_mpi = true) noexcept {
  std::fprintf(stderr, "rank %d: %s\n", rank, error.c_str());
  std::fflush(stderr);
  try {
    std::thread([] {  // in case that the launcher cannot be reached, or standard output is stuck
      sleep(5);
      _exit(1);
    })
        .detach();
  } catch (...) {  // no more threads
  }
  std::fflush(stdout);
  if (calls_mpi) MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

/// @tparam World  has a `look()`
template <class World>
class MpiWatchdog {
 public:
  /// Calls `world->look()` every 100 ms until MPI is finalised.
  static void watch(std::shared_ptr<World> world) {
    static MpiWatchdog& watchdog = *new MpiWatchdog;  // a process that ends a job does not stop it
    const std::lock_guard lock(watchdog.mutex_);
    watchdog.worlds_.push_back(std::move(world));
    if (watchdog.thread_.joinable()) return;
    watchdog.thread_ = std::thread([] { watchdog.work(); });
    // MPI_Finalize deletes the attributes of MPI_COMM_SELF first
    int key = MPI_KEYVAL_INVALID;
    const auto stop = [](MPI_Comm, int, void*, void*) {
      watchdog.stop();
      return int(MPI_SUCCESS);
    };
    mpi_check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, stop, &key, nullptr),
              "MPI_Comm_create_keyval");
    mpi_check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
  }

 private:
  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    condition_.notify_all();
    thread_.join();
  }

  void work() noexcept {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      const auto worlds = worlds_;
      lock.unlock();
      for (const auto& world : worlds) world->look();
      lock.lock();
      condition_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ending_; });
    }
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  bool ending_ = false;
  std::vector<std::shared_ptr<World>> worlds_;
  std::thread thread_;
};

}  // namespace cleave::inline v0::detail
