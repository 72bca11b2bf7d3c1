// The entry point: `run` starts the ranks of a program, and tells how they ended.
#pragma once

#include <concepts>
#include <span>

#include <cleave/comm/rank_function.hpp>
#include <cleave/comm/thread/communicators.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/core/config.hpp>

#if defined(CLEAVE_HAS_MPI) && !defined(__CUDACC__)
#include <cleave/comm/mpi.hpp>
#endif

namespace cleave {

namespace detail {

// Templates of one type: in a program that is not compiled with CLEAVE_COMPILED, what they need is
// compiled where ranks are started, not wherever this file is included.

/// @see run
template <std::same_as<RankFunction> F>
int run_ranks(int argc, char** argv, F f);
/// @see run_threads
template <std::same_as<RankFunction> F>
void run_on_threads_alone(int ranks, F f);
/// The place among `names` of the device that is asked for; -1, after a line on stderr, if there is
/// none such.
CLEAVE_INLINE int choose_device(int argc, char** argv, std::span<const char* const> names);

}  // namespace detail

/// Runs f(world) on every rank and returns the exit code for `main`.
///
/// Started by an MPI launcher, in a program compiled with MPI, the ranks are its processes;
/// otherwise they are threads: `--ranks N`, else CLEAVE_RANKS, else one per core. Threads call the
/// same f at the same time: what it captures by reference, they share. While ranks are threads,
/// OpenBLAS uses one thread per call, unless the environment says otherwise.
///
/// @param f  takes `World&`, returns void or an exit code
/// @return   0; the first non-zero code that a rank returned; 1 if a rank threw, with its rank and
///           error on stderr; 2 if the ranks could not be started as asked
template <class F>
int run(int argc, char** argv, F&& f) {
  return detail::run_ranks(argc, argv, detail::RankFunction(f));
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
  const int chosen = detail::choose_device(argc, argv, names);
  if (chosen < 0) return 2;
  int code = 0;
  int i = 0;
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
  detail::run_on_threads_alone(ranks, detail::RankFunction(f));
}

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/run_body.hpp>
#endif
