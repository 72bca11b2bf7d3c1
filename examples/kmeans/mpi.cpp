// The MPI side of kmeans-cuda, whose main nvcc compiles.
#include <cleave/comm/mpi_for_cuda.hpp>
