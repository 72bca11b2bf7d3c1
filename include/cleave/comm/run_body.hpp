// Where `run` starts ranks: as the processes of an MPI launcher, or as threads.
#pragma once

#include <concepts>
#include <cstdio>
#include <exception>
#include <span>

#include <cleave/comm/launch.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/comm/thread/run_threads.hpp>

#if defined(CLEAVE_HAS_MPI) && !defined(__CUDACC__)
#include <cleave/comm/mpi/run_processes.hpp>
#include <cleave/comm/world.hpp>
#endif

namespace cleave::inline v0::detail {

/// Runs f on the processes of an MPI launcher, for files that cannot include MPI's headers: nvcc's.
/// Defined if a file of the program includes cleave/comm/mpi_for_cuda.hpp.
[[gnu::weak]] int run_on_processes(int argc, char** argv, RankFunction f);

template <std::same_as<RankFunction> F>
int run_ranks(int argc, char** argv, F f) {
#if defined(CLEAVE_HAS_MPI) && !defined(__CUDACC__)
  if (launched_processes() != 0) return run_mpi(argc, argv, f);
#else
  if (launched_processes() != 0 && run_on_processes != nullptr)
    return run_on_processes(argc, argv, f);
#endif
  return run_threads_and_report(argc, argv, f);
}

CLEAVE_INLINE int choose_device(int argc, char** argv, std::span<const char* const> names) {
  try {
    return int(requested_device(argc, argv, names));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return -1;
  }
}

}  // namespace cleave::inline v0::detail
