// MPI for programs whose `main` nvcc compiles, which must not read MPI's headers: one file of the
// program, compiled by the host's compiler, includes this and nothing else of cleave.
//
//     // mpi.cpp
//     #include <cleave/comm/mpi_for_cuda.hpp>
//
// Not inline: two files that include it do not link. With CLEAVE_COMPILED=1 the file that includes
// cleave/compiled.hpp knows MPI, and this adds nothing.
#pragma once

#include <cleave/comm/run.hpp>

#if !CLEAVE_COMPILED
#include <cleave/comm/mpi/run.hpp>

namespace cleave::detail {

int run_on_processes(int argc, char** argv, RankFunction f) { return run_mpi(argc, argv, f); }

}  // namespace cleave::detail
#endif
