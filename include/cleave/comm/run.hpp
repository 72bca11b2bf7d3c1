// The front door: `run` starts the ranks of a program, and tells how they ended.
#pragma once

#include <concepts>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/launch.hpp>
#include <cleave/comm/thread.hpp>
#include <cleave/comm/world.hpp>

#if defined(CLEAVE_HAS_MPI) && !defined(__CUDACC__)
#include <cleave/comm/mpi.hpp>
#endif

namespace cleave {

namespace detail {

/// How the ranks of a thread world ended.
struct ThreadOutcome {
  std::vector<int> codes;                  ///< what f returned, 0 for void
  std::vector<std::exception_ptr> errors;  ///< what f threw
  RankFailure failure;                     ///< the first one, which may have made others throw
};

/// The user's function, whatever its type: little is to be compiled for another one. A reference.
class RankFunction {
 public:
  template <class F>
    requires(!std::is_same_v<F, RankFunction>)
  explicit RankFunction(F& f) : call_(call<F>) {
    if constexpr (std::is_function_v<F>) object_ = reinterpret_cast<void*>(&f);
    else object_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  }

  /// What f returns, 0 for void.
  int operator()(World& world) const { return call_(object_, world); }

 private:
  template <class F>
  static int call(void* object, World& world) {
    F& f = *reinterpret_cast<F*>(object);
    if constexpr (std::is_void_v<decltype(f(world))>) return f(world), 0;
    else return f(world);
  }

  void* object_;
  int (*call_)(void*, World&);
};

// What follows is compiled where ranks are started, not wherever this file is included: templates
// of one type.

/// Runs f on one rank, and lets the others know how it ended.
template <std::same_as<RankFunction> F>
void run_rank(F f, const std::shared_ptr<Communicator>& communicator, ThreadWorld& threads,
              ThreadOutcome& outcome) noexcept {
  const int rank = communicator->rank();
  const auto ended = [&](RankFailure failure) {
    outcome.errors[std::size_t(rank)] = std::current_exception();
    threads.fail(std::move(failure));
  };
  try {
    World world(communicator);
    outcome.codes[std::size_t(rank)] = f(world);
  } catch (const PeerError& e) {
    ended(e.failure());
  } catch (const std::exception& e) {
    ended({rank, e.what()});
  } catch (...) {
    ended({rank, "an exception that is no std::exception"});
  }
  // peers may wait for work that is under way beside this rank; after a failure it ends at once
  communicator->state().worker.reset();
  threads.leave(rank);
}

/// Rank 0 is the calling thread; returns when all ranks have ended.
/// @throws Error if a thread cannot be started, or for bad settings in the environment
template <std::same_as<RankFunction> F>
ThreadOutcome run_on_threads(int ranks, F f) {
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
    threads->fail({int(started.size()) + 1, obstacle});
  }
  if (obstacle.empty()) run_rank(f, communicators[0], *threads, outcome);
  for (std::thread& thread : started) thread.join();
  if (!obstacle.empty()) throw Error("run", obstacle);
  outcome.failure = threads->failure();
  return outcome;
}

/// The error to report: that of the rank that failed first, not those it caused elsewhere.
inline int first_failed_rank(const ThreadOutcome& outcome) {
  const int first = outcome.failure.rank;
  if (first >= 0 && outcome.errors[std::size_t(first)] != nullptr) return first;
  for (std::size_t r = 0; r < outcome.errors.size(); ++r)
    if (outcome.errors[r] != nullptr) return int(r);
  return -1;
}

inline std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

/// Runs f on the processes of an MPI launcher, for files that no MPI header may be read in: nvcc's.
/// There where one file of the program includes cleave/comm/mpi_for_cuda.hpp.
[[gnu::weak]] int run_on_processes(int argc, char** argv, RankFunction f);

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
    std::fprintf(stderr, "rank %d: %s\n", rank, text_of(outcome.errors[std::size_t(rank)]).c_str());
    return 1;
  }
  for (const int code : outcome.codes)
    if (code != 0) return code;
  return 0;
}

template <std::same_as<RankFunction> F>
void run_threads_and_rethrow(int ranks, F f) {
  if (ranks < 1)
    throw Error("run_threads", std::to_string(ranks) + " ranks; there must be at least 1");
  const ThreadOutcome outcome = run_on_threads(ranks, f);
  if (const int rank = first_failed_rank(outcome); rank >= 0)
    std::rethrow_exception(outcome.errors[std::size_t(rank)]);
}

}  // namespace detail

/// Runs f(world) on every rank and returns the exit code for `main`.
///
/// Started by an MPI launcher, in a program compiled with MPI, the ranks are its processes;
/// otherwise they are threads: `--ranks N`, else CLEAVE_RANKS, else one per core. Threads call the
/// same f at the same time: what it captures by reference, they share.
///
/// @param f  takes `World&`, returns void or an exit code
/// @return   0; the first non-zero code that a rank returned; 1 if a rank threw, with its rank and
///           error on stderr; 2 if the ranks could not be started as asked
template <class F>
int run(int argc, char** argv, F&& f) {
#if defined(CLEAVE_HAS_MPI) && !defined(__CUDACC__)
  if (detail::launched_processes() != 0) return detail::run_mpi(argc, argv, f);
#else
  if (detail::launched_processes() != 0 && detail::run_on_processes != nullptr)
    return detail::run_on_processes(argc, argv, detail::RankFunction(f));
#endif
  return detail::run_threads_and_report(argc, argv, detail::RankFunction(f));
}

/// Prepares the calling rank of a group for its device; other devices have overloads.
inline void enter_device(Host, const Communicator&) {}

/// Runs f(world, device) on every rank, `device` being one of those that the program names: the
/// one that `--device NAME` asks for, else CLEAVE_DEVICE, else the first.
///
///     run<Host, Cuda>(argc, argv, [](World& world, auto device) {
///       auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, device); ..
///     });
///
/// @return as the other `run`; 2 for a device that the program is not compiled for
template <class... Devices, class F>
  requires(sizeof...(Devices) > 0)
int run(int argc, char** argv, F&& f) {
  constexpr const char* names[] = {Devices::name...};
  std::size_t chosen = 0;
  try {
    chosen = detail::requested_device(argc, argv, names);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  int code = 0;
  std::size_t i = 0;
  const auto start = [&]<class Device>(Device device) {
    if (i++ != chosen) return;
    code = run(argc, argv, [&](World& world) {
      enter_device(device, world.communicator());
      return f(world, device);
    });
  };
  (start(Devices{}), ...);
  return code;
}

/// Runs f(world) on that many threads, the calling one among them, and returns when all have
/// ended: for tests, and for programs that have a `main` of their own.
///
/// @throws whatever the first failing rank threw; Error if the threads cannot be started
template <class F>
void run_threads(int ranks, F&& f) {
  detail::run_threads_and_rethrow(ranks, detail::RankFunction(f));
}

}  // namespace cleave
