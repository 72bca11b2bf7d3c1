// MPI for programs whose `main` nvcc compiles, which must not read MPI's headers: one file of the
// program, compiled by the host's compiler, includes this and nothing else of cleave.
//
//     // mpi.cpp
//     #include <cleave/comm/mpi_for_cuda.hpp>
//
// Not inline: two files that include it do not link.
#pragma once

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/run.hpp>

namespace cleave::detail {

int run_on_processes(int argc, char** argv, RankFunction f) { return run_mpi(argc, argv, f); }

}  // namespace cleave::detail
