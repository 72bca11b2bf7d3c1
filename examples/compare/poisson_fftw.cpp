// -div grad u = f in a periodic box of side 2 pi, by Fourier transforms.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include <fftw3-mpi.h>
#include <mpi.h>

#include "stopwatch.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::ptrdiff_t n = argc > 1 ? std::atoi(argv[1]) : 30, half = n / 2 + 1;
  std::ptrdiff_t layers = 0, first_layer = 0, rows = 0, first_row = 0;
  const std::ptrdiff_t count = fftw_mpi_local_size_3d_transposed(
      n, n, half, MPI_COMM_WORLD, &layers, &first_layer, &rows, &first_row);
  double* const u = fftw_alloc_real(std::size_t(2 * count));  // rows are padded to 2 half elements
  fftw_complex* const modes = fftw_alloc_complex(std::size_t(count));
  const double step = 2 * std::numbers::pi / double(n);
  const auto f = [&](std::ptrdiff_t i, std::ptrdiff_t j, std::ptrdiff_t k) {
    return std::sin(step * double(first_layer + i)) * std::cos(2 * step * double(j)) *
           std::sin(3 * step * double(k));
  };
  const auto at = [&](std::ptrdiff_t i, std::ptrdiff_t j, std::ptrdiff_t k) -> double& {
    return u[(i * n + j) * 2 * half + k];
  };
  for (std::ptrdiff_t i = 0; i < layers; ++i)
    for (std::ptrdiff_t j = 0; j < n; ++j)
      for (std::ptrdiff_t k = 0; k < n; ++k) at(i, j, k) = f(i, j, k);

  const Stopwatch stopwatch;
  const fftw_plan forward = fftw_mpi_plan_dft_r2c_3d(n, n, n, u, modes, MPI_COMM_WORLD,
                                                     FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_OUT);
  const fftw_plan backward = fftw_mpi_plan_dft_c2r_3d(n, n, n, modes, u, MPI_COMM_WORLD,
                                                      FFTW_ESTIMATE | FFTW_MPI_TRANSPOSED_IN);
  fftw_execute(forward);
  const auto wave = [n](std::ptrdiff_t i) { return double(2 * i < n ? i : i - n); };
  for (std::ptrdiff_t j = 0; j < rows; ++j)  // modes are transposed: rows, layers, columns
    for (std::ptrdiff_t i = 0; i < n; ++i)
      for (std::ptrdiff_t k = 0; k < half; ++k) {
        const double x = wave(i), y = wave(first_row + j), z = double(k);
        const double square = x * x + y * y + z * z;
        const double factor = square == 0 ? 0 : 1 / square / double(n * n * n);
        for (double& part : modes[(j * n + i) * half + k]) part *= factor;
      }
  fftw_execute(backward);
  stopwatch.print(rank);

  double sum = 0, error = 0;
  for (std::ptrdiff_t i = 0; i < layers; ++i)
    for (std::ptrdiff_t j = 0; j < n; ++j)
      for (std::ptrdiff_t k = 0; k < n; ++k) {
        sum += at(i, j, k) * at(i, j, k);
        error = std::max(error, std::abs(14 * at(i, j, k) - f(i, j, k)));
      }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("norm %.10e, error below 1e-12: %s\n", std::sqrt(sum),
                error < 1e-12 ? "yes" : "no");
  fftw_destroy_plan(forward);
  fftw_destroy_plan(backward);
  fftw_free(u);
  fftw_free(modes);
  fftw_mpi_cleanup();
  MPI_Finalize();
}
