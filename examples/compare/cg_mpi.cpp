// 100 steps of conjugate gradients for -div grad u = 1 in a square, u = 0 on its edges.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mpi.h>

#include "stopwatch.hpp"

double sum_over_ranks(double x) {
  MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return x;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = argc > 1 ? std::atoi(argv[1]) : 101;
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rows = n * (rank + 1) / size - n * rank / size;
  const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;

  const std::size_t count = std::size_t(rows) * std::size_t(n);
  std::vector<double> u(count), q(count), r(count, 1.0);
  const int pitch = n + 2;  // p has a row and a column of ghosts at each side
  std::vector<double> p(std::size_t(rows + 2) * std::size_t(pitch));
  const auto row_of_p = [&](int i) { return &p[std::size_t((i + 1) * pitch + 1)]; };
  for (int i = 0; i < rows; ++i) std::fill_n(row_of_p(i), n, 1.0);

  const Stopwatch stopwatch;
  double square = sum_over_ranks(double(count));
  for (int step = 0; step < 100; ++step) {
    MPI_Sendrecv(row_of_p(0), n, MPI_DOUBLE, up, 0, row_of_p(rows), n, MPI_DOUBLE, down, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(row_of_p(rows - 1), n, MPI_DOUBLE, down, 1, row_of_p(-1), n, MPI_DOUBLE, up, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double product = 0;
    for (int i = 0; i < rows; ++i) {
      const double* const x = row_of_p(i);
      double* const y = &q[std::size_t(i * n)];
      for (int j = 0; j < n; ++j) {
        y[j] = 4 * x[j] - (x[j - pitch] + x[j + pitch] + x[j - 1] + x[j + 1]);
        product += x[j] * y[j];
      }
    }
    const double alpha = square / sum_over_ranks(product), before = square;
    square = 0;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < n; ++j) {
        const std::size_t at = std::size_t(i * n + j);
        u[at] += alpha * row_of_p(i)[j];
        r[at] -= alpha * q[at];
        square += r[at] * r[at];
      }
    square = sum_over_ranks(square);
    const double beta = square / before;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < n; ++j)
        row_of_p(i)[j] = r[std::size_t(i * n + j)] + beta * row_of_p(i)[j];
  }
  stopwatch.print(rank);
  double highest = *std::max_element(u.begin(), u.end());
  MPI_Allreduce(MPI_IN_PLACE, &highest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) std::printf("residual %.8e, highest %.10e\n", std::sqrt(square), highest);
  MPI_Finalize();
}
