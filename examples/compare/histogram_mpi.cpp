// How many of n distributed numbers in [0, 1) are in each of ten bins.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mpi.h>

#include "stopwatch.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long n = argc > 1 ? std::atol(argv[1]) : 10007;
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<double> values;
  for (long i = n * rank / size; i < n * (rank + 1) / size; ++i) {
    const double x = 0.6180339887498949 * double(i);
    values.push_back((x - std::floor(x)) * (x - std::floor(x)));
  }
  const Stopwatch stopwatch;
  long counts[10] = {};
  for (const double x : values) ++counts[int(10 * x)];
  MPI_Allreduce(MPI_IN_PLACE, counts, 10, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  stopwatch.print(rank);
  if (rank == 0)
    for (int bin = 0; bin < 10; ++bin) std::printf("bin %d: %ld\n", bin, counts[bin]);
  MPI_Finalize();
}
