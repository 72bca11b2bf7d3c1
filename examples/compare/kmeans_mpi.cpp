// k-means by Lloyd's algorithm: ten iterations on n points of 16 features, eight clusters.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mpi.h>

#include "stopwatch.hpp"

constexpr int features = 16, k = 8;

struct Sums {  // contiguous, for one reduction
  double points[k][features] = {}, counts[k] = {}, inertia = 0;
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long n = argc > 1 ? std::atol(argv[1]) : 1003;
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto element = [](long i, int f) {
    const double x = 0.6180339887498949 * double(i + 1) * double(f + 1);
    return x - std::floor(x);
  };
  const long first = n * rank / size, last = n * (rank + 1) / size;
  std::vector<double> points;
  for (long i = first; i < last; ++i)
    for (int f = 0; f < features; ++f) points.push_back(element(i, f));
  double centroids[k][features];
  for (int c = 0; c < k; ++c)
    for (int f = 0; f < features; ++f) centroids[c][f] = element(c, f);

  Sums sums;
  const Stopwatch stopwatch;
  for (int iteration = 0; iteration < 10; ++iteration) {
    sums = Sums{};
    for (long i = 0; i < last - first; ++i) {
      const double* const x = &points[std::size_t(i * features)];
      int nearest = 0;
      double least = HUGE_VAL;
      for (int c = 0; c < k; ++c) {
        double distance = 0;
        for (int f = 0; f < features; ++f)
          distance += (x[f] - centroids[c][f]) * (x[f] - centroids[c][f]);
        if (distance < least) least = distance, nearest = c;
      }
      for (int f = 0; f < features; ++f) sums.points[nearest][f] += x[f];
      ++sums.counts[nearest];
      sums.inertia += least;
    }
    MPI_Allreduce(MPI_IN_PLACE, &sums, sizeof sums / sizeof(double), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
    for (int c = 0; c < k; ++c)
      for (int f = 0; f < features; ++f)
        if (sums.counts[c] > 0) centroids[c][f] = sums.points[c][f] / sums.counts[c];
  }
  stopwatch.print(rank);
  if (rank == 0)
    for (int c = 0; c < k; ++c)
      std::printf("inertia %.8e, centroid %d at %.8e\n", sums.inertia, c, centroids[c][0]);
  MPI_Finalize();
}
