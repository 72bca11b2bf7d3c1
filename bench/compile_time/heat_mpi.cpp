// The program heat.cpp in plain MPI: the same grid, steps and output.
//
//     mpirun -n 4 heat_mpi
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  const int n = 64;
  const double alpha = 0.2;
  const int chunk = (n + size - 1) / size;
  const int begin = std::min(rank * chunk, n);
  const int count = std::min(begin + chunk, n) - begin;
  const int last = (n + chunk - 1) / chunk - 1;  // the last rank with rows
  const int up = rank > 0 && rank <= last ? rank - 1 : MPI_PROC_NULL;
  const int down = rank < last ? rank + 1 : MPI_PROC_NULL;

  // one row of the neighbour above, the rows of this rank, one row of the neighbour below
  std::vector<double> u(std::size_t((count + 2) * n)), next(u);
  const auto at = [](std::vector<double>& x, int i, int j) -> double& {
    return x[std::size_t((i + 1) * n + j)];
  };
  if (begin == 0 && count > 0)
    for (int j = 0; j < n; ++j) at(u, 0, j) = 1;

  for (int step = 1; step <= 500; ++step) {
    MPI_Sendrecv(&at(u, 0, 0), n, MPI_DOUBLE, up, 0, &at(u, count, 0), n, MPI_DOUBLE, down, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&at(u, count - 1, 0), n, MPI_DOUBLE, down, 1, &at(u, -1, 0), n, MPI_DOUBLE, up, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double largest = 0;
    double total = 0;
    next = u;
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < n; ++j) {
        if (begin + i > 0 && begin + i < n - 1 && j > 0 && j < n - 1) {
          const double change = alpha * (at(u, i - 1, j) + at(u, i + 1, j) + at(u, i, j - 1) +
                                         at(u, i, j + 1) - 4 * at(u, i, j));
          at(next, i, j) += change;
          largest = std::max(largest, std::abs(change));
        }
        total += at(next, i, j);
      }
    u.swap(next);
    if (step % 100 != 0) continue;
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
      std::printf("step %d: mean %.6f, largest change %.2e\n", step, total / n / n, largest);
    if (largest < 1e-6) break;
  }

  std::vector<double> all(std::size_t(size * chunk * n));
  u.resize(std::size_t((std::max(chunk, count) + 2) * n));
  MPI_Gather(&at(u, 0, 0), chunk * n, MPI_DOUBLE, all.data(), chunk * n, MPI_DOUBLE, 0,
             MPI_COMM_WORLD);
  if (rank == 0) std::printf("in the middle: %.6f\n", all[std::size_t(n / 2 * n + n / 2)]);
  MPI_Finalize();
}
