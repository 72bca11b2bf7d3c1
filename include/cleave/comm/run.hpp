// The entry point: `run` starts the ranks of a program, and reports how they ended.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <cleave/comm/world.hpp>
#include <cleave/core/config.hpp>
#include <cleave/tensor/storage.hpp>

#if defined(CLEAVE_HAS_MPI) && !defined(__CUDACC__)
#include <cleave/comm/mpi.hpp>
#endif

namespace cleave::inline v0 {

namespace detail {

// Templates constrained to one type: without CLEAVE_COMPILED, their implementation is compiled
// where ranks are started, not wherever this file is included.

/// @see run
template <std::same_as<RankFunction> F>
int run_ranks(int argc, char** argv, F f);
/// @see run_threads
template <std::same_as<RankFunction> F>
void run_on_threads_alone(int ranks, F f);
/// The index in `names` of the requested device; -1, after a line on stderr, if it is not one of
/// them.
CLEAVE_INLINE int choose_device(int argc, char** argv, std::span<const char* const> names);

}  // namespace detail

/// Runs f(world) on every rank and returns the exit code for `main`.
///
/// In a program compiled with MPI and started by an MPI launcher, the ranks are its processes;
/// otherwise they are threads: `--ranks N`, else CLEAVE_RANKS, else one per core. Threads call the
/// same f concurrently and share what it captures by reference. While ranks are threads, OpenBLAS
/// uses one thread per call, unless the environment says otherwise.
///
/// @param f  takes `World&`, returns void or an exit code
/// @return   0; the first non-zero code that a rank returned; 1 if a rank threw, with its rank and
///           error on stderr; 2 if the ranks could not be started as requested
template <class F>
int run(int argc, char** argv, F&& f) {
  return detail::run_ranks(argc, argv, detail::RankFunction(f));
}

/// Prepares the calling rank of a group for its device; other devices have overloads.
inline void enter_device(Host, const Communicator&) {}

/// Runs f(world, device) on every rank, `device` being one of `Devices`: the one that the option
/// `--device NAME` names, else CLEAVE_DEVICE, else the first.
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

/// Runs f(world) on `ranks` threads, including the calling one, and returns when all have ended:
/// for tests, and for programs with their own `main`.
///
/// @throws whatever the first failing rank threw; Error if the threads cannot be started
template <class F>
void run_threads(int ranks, F&& f) {
  detail::run_on_threads_alone(ranks, detail::RankFunction(f));
}

/// One communicator for each of `ranks` threads, for programs that start their own threads; `run`
/// and `run_threads` do all of this.
///
/// Each must be used by one thread. A rank leaves when all its communicators are destroyed: peers
/// that wait for it then get an Error.
///
/// @throws Error if `ranks` is not positive
template <class Device = Host>
  requires std::is_same_v<Device, Host>
std::vector<std::shared_ptr<Communicator>> thread_communicators(int ranks);

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/comm/run_body.hpp>
#endif
