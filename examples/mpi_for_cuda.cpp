// The MPI side of the examples on GPUs, whose main nvcc compiles: nvcc never sees MPI's headers.
#include <cleave/comm/mpi_for_cuda.hpp>
