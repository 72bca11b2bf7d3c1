// Runs the ranks of a program as its threads, and reports how they ended.
//
// Templates constrained to one type: compiled where ranks are started, not wherever this file is
// included.
#pragma once

#include <concepts>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <cleave/comm/launch.hpp>
#include <cleave/comm/machine.hpp>
#include <cleave/comm/measure_link.hpp>
#include <cleave/comm/thread/thread_communicator.hpp>
#include <cleave/comm/thread/thread_world.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/kernels/host/blas_threads.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave::inline v0::detail {

/// How the ranks of a thread world ended.
struct ThreadOutcome {
  std::vector<int> codes;                  ///< what f returned, 0 for void
  std::vector<std::exception_ptr> errors;  ///< what f threw
  RankFailure failure;                     ///< the first failure; it may have made others throw
};

/// Runs f on one rank, and tells the others how it ended.
template <std::same_as<RankFunction> F>
void run_rank(F f, const std::shared_ptr<Communicator>& communicator, ThreadWorld& threads,
              ThreadOutcome& outcome) noexcept {
  const int rank = communicator->rank();
  const auto ended = [&](int failed, std::string_view cause) {
    outcome.errors[std::size_t(rank)] = std::current_exception();
    threads.fail(failed, cause);
  };
  try {
    if (measures_machine())
      communicator->state().machine.inside = measure_link(*communicator, *communicator);
    World world(communicator);
    outcome.codes[std::size_t(rank)] = f(world);
  } catch (const PeerError& e) {
    ended(e.failure().rank, e.failure().cause);
  } catch (...) {
    ended(rank, to_string(std::current_exception()));
  }
  // peers may wait for this rank's asynchronous work; after a failure that work ends at once
  communicator->state().worker.reset();
  threads.leave(rank);
  release_memory();  // rank 0's thread returns to its caller
}

/// Rank 0 is the calling thread; returns when all ranks have ended.
/// @throws Error if a thread cannot be started, or for invalid settings in the environment
template <std::same_as<RankFunction> F>
ThreadOutcome run_on_threads(int ranks, F f) {
  const kernels::OneBlasThread one_blas_thread;
  const auto threads = std::make_shared<ThreadWorld>(ranks);
  const auto communicators = thread_communicators<Host>(threads);
  ThreadOutcome outcome{std::vector<int>(std::size_t(ranks)),
                        std::vector<std::exception_ptr>(std::size_t(ranks)),
                        {}};
  std::vector<std::thread> started;
  std::string obstacle;
  try {
    started.reserve(std::size_t(ranks));
    for (int r = 1; r < ranks; ++r)
      started.emplace_back(
          [&, f, r] { run_rank(f, communicators[std::size_t(r)], *threads, outcome); });
  } catch (const std::system_error& e) {
    obstacle = "thread " + std::to_string(started.size() + 1) + " of " + std::to_string(ranks) +
               " cannot be started: " + e.what();
    threads->fail(int(started.size()) + 1, obstacle);
  }
  if (obstacle.empty()) run_rank(f, communicators[0], *threads, outcome);
  for (std::thread& thread : started) thread.join();
  if (!obstacle.empty()) throw Error("run", obstacle);
  outcome.failure = threads->board().failure();
  return outcome;
}

/// The rank whose error is reported: the first that failed, not one that failed because of it.
inline int first_failed_rank(const ThreadOutcome& outcome) {
  const int first = outcome.failure.rank;
  if (first >= 0 && outcome.errors[std::size_t(first)] != nullptr) return first;
  for (std::size_t r = 0; r < outcome.errors.size(); ++r)
    if (outcome.errors[r] != nullptr) return int(r);
  return -1;
}

template <std::same_as<RankFunction> F>
int run_threads_and_report(int argc, char** argv, F f) {
  ThreadOutcome outcome;
  try {
    const int processes = launched_processes();
    if (processes > 1 || processes < 0)
      throw Error("run",
                  "an MPI launcher started this program, which was compiled without MPI "
                  "(CLEAVE_HAS_MPI=1; where nvcc compiles main, another file has to include "
                  "cleave/comm/mpi_for_cuda.hpp); start it directly, with --ranks N for N threads");
    outcome = run_on_threads(requested_ranks(argc, argv), f);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  if (const int rank = first_failed_rank(outcome); rank >= 0) {
    std::fprintf(stderr, "rank %d: %s\n", rank,
                 to_string(outcome.errors[std::size_t(rank)]).c_str());
    return 1;
  }
  for (const int code : outcome.codes)
    if (code != 0) return code;
  return 0;
}

template <std::same_as<RankFunction> F>
void run_on_threads_alone(int ranks, F f) {
  if (ranks < 1)
    throw Error("run_threads", std::to_string(ranks) + " ranks; there must be at least 1");
  const ThreadOutcome outcome = run_on_threads(ranks, f);
  if (const int rank = first_failed_rank(outcome); rank >= 0)
    std::rethrow_exception(outcome.errors[std::size_t(rank)]);
}

}  // namespace cleave::inline v0::detail
