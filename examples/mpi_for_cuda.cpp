// The MPI side of the GPU examples, whose main is compiled by nvcc: nvcc never sees the MPI
// headers.
#include <cleave/comm/mpi_for_cuda.hpp>
