// MPI for programs whose `main` is compiled by nvcc, which must not read MPI's headers: one file of
// the program, compiled by the host compiler, includes this and nothing else of cleave.
//
//     // mpi.cpp
//     #include <cleave/comm/mpi_for_cuda.hpp>
//
// Not inline: including it in two files is a link error. With CLEAVE_COMPILED=1 the file that
// includes cleave/compiled.hpp provides MPI, and this adds nothing.
#pragma once

#include <cleave/comm/run.hpp>

#if !CLEAVE_COMPILED
#include <cleave/comm/mpi/run_processes.hpp>

namespace cleave::inline v0::detail {

int run_on_processes(int argc, char** argv, RankFunction f) { return run_mpi(argc, argv, f); }

}  // namespace cleave::inline v0::detail
#endif
