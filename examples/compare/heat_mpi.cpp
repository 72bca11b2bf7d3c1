// Heat in a square with a hot edge: 200 steps of u' = div grad u, on a grid of ranks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mpi.h>

#include "stopwatch.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = argc > 1 ? std::atoi(argv[1]) : 101;
  int size = 0, rank = 0, parts[2] = {0, 0}, at[2], up = 0, down = 0, left = 0, right = 0;
  const int periods[2] = {0, 0};
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, parts);
  MPI_Comm grid = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 2, parts, periods, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, at);
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);
  const int rows = n * (at[0] + 1) / parts[0] - n * at[0] / parts[0];
  const int columns = n * (at[1] + 1) / parts[1] - n * at[1] / parts[1];
  const int pitch = columns + 2;
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(rows, 1, pitch, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);

  std::vector<double> u(std::size_t(rows + 2) * std::size_t(pitch));
  if (at[0] == 0) std::fill_n(u.begin() + 1, columns, 1.0);
  std::vector<double> v = u;
  const auto exchange = [&] {
    double* const first = &u[std::size_t(pitch) + 1];
    double* const last = first + (rows - 1) * pitch;
    MPI_Sendrecv(first, columns, MPI_DOUBLE, up, 0, last + pitch, columns, MPI_DOUBLE, down, 0,
                 grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, columns, MPI_DOUBLE, down, 1, first - pitch, columns, MPI_DOUBLE, up, 1,
                 grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(first, 1, column, left, 2, first + columns, 1, column, right, 2, grid,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(first + columns - 1, 1, column, right, 3, first - 1, 1, column, left, 3, grid,
                 MPI_STATUS_IGNORE);
  };
  const Stopwatch stopwatch;
  for (int step = 0; step < 200; ++step, std::swap(u, v)) {
    exchange();
    for (int i = 1; i <= rows; ++i) {
      const double* const x = &u[std::size_t(i * pitch)];
      double* const y = &v[std::size_t(i * pitch)];
      for (int j = 1; j <= columns; ++j)
        y[j] = x[j] + 0.2 * (x[j - pitch] + x[j + pitch] + x[j - 1] + x[j + 1] - 4 * x[j]);
    }
  }
  double total = 0, highest = 0;
  for (int i = 1; i <= rows; ++i)
    for (int j = 1; j <= columns; ++j) {
      total += u[std::size_t(i * pitch + j)];
      highest = std::max(highest, u[std::size_t(i * pitch + j)]);
    }
  MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_SUM, grid);
  MPI_Allreduce(MPI_IN_PLACE, &highest, 1, MPI_DOUBLE, MPI_MAX, grid);
  stopwatch.print(rank);
  if (rank == 0) std::printf("sum %.10e, highest %.10e\n", total, highest);
  MPI_Type_free(&column);
  MPI_Comm_free(&grid);
  MPI_Finalize();
}
