// The MPI side of cuda_graph, whose main nvcc compiles.
#include <cleave/comm/mpi_for_cuda.hpp>
