// The transpose of a matrix whose rows are distributed, again by rows.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mpi.h>

#include "stopwatch.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = argc > 1 ? std::atoi(argv[1]) : 101, m = n + 2;
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto first_of = [size](int extent, int r) { return extent * r / size; };
  const int first = first_of(n, rank), rows = first_of(n, rank + 1) - first;
  const int first_column = first_of(m, rank), columns = first_of(m, rank + 1) - first_column;

  std::vector<double> a(std::size_t(rows) * std::size_t(m));
  std::vector<double> b(std::size_t(columns) * std::size_t(n));
  std::vector<double> packed(a.size()), received(b.size());
  std::vector<int> counts, starts, received_counts, received_starts;
  for (int r = 0; r < size; ++r) {
    starts.push_back(rows * first_of(m, r));
    counts.push_back(rows * first_of(m, r + 1) - starts.back());
    received_starts.push_back(columns * first_of(n, r));
    received_counts.push_back(columns * first_of(n, r + 1) - received_starts.back());
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < m; ++j) a[std::size_t(i * m + j)] = double(m) * (first + i) + j;

  const Stopwatch stopwatch;
  for (int k = 0; k < 10; ++k) {
    // blocks of 16 by 16 stay in the cache; a column of a is a row of what its receiver needs
    for (int jj = 0; jj < m; jj += 16)
      for (int ii = 0; ii < rows; ii += 16)
        for (int j = jj; j < std::min(jj + 16, m); ++j)
          for (int i = ii; i < std::min(ii + 16, rows); ++i)
            packed[std::size_t(j * rows + i)] = a[std::size_t(i * m + j)];
    MPI_Alltoallv(packed.data(), counts.data(), starts.data(), MPI_DOUBLE, received.data(),
                  received_counts.data(), received_starts.data(), MPI_DOUBLE, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r) {
      const int begin = first_of(n, r), count = first_of(n, r + 1) - begin;
      for (int j = 0; j < columns; ++j)
        std::copy_n(&received[std::size_t(received_starts[std::size_t(r)] + j * count)], count,
                    &b[std::size_t(j * n + begin)]);
    }
  }
  stopwatch.print(rank);
  double moment = 0;
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < n; ++i) moment += (first_column + j) * b[std::size_t(j * n + i)];
  MPI_Allreduce(MPI_IN_PLACE, &moment, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("moment %.10e\n", moment);
  MPI_Finalize();
}
