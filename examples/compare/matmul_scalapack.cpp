// The product of two square matrices that lie in blocks on a grid of ranks.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mpi.h>

#include "stopwatch.hpp"

extern "C" {  // ScaLAPACK has no header
void Cblacs_pinfo(int* rank, int* size);
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* at, const int* first, const int* parts);
void descinit_(int* descriptor, const int* m, const int* n, const int* row_block,
               const int* column_block, const int* first_row, const int* first_column,
               const int* context, const int* pitch, int* info);
void pdgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
             const int* k, const double* alpha, const double* a, const int* ia, const int* ja,
             const int* descriptor_a, const double* b, const int* ib, const int* jb,
             const int* descriptor_b, const double* beta, double* c, const int* ic, const int* jc,
             const int* descriptor_c);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = argc > 1 ? std::atoi(argv[1]) : 101, block = 64, zero = 0, one = 1;
  int rank = 0, size = 0, parts[2] = {0, 0}, context = 0, row = 0, column = 0, info = 0;
  Cblacs_pinfo(&rank, &size);
  MPI_Dims_create(size, 2, parts);
  Cblacs_get(-1, 0, &context);
  Cblacs_gridinit(&context, "Row", parts[0], parts[1]);
  Cblacs_gridinfo(context, &parts[0], &parts[1], &row, &column);
  const int rows = numroc_(&n, &block, &row, &zero, &parts[0]);
  const int columns = numroc_(&n, &block, &column, &zero, &parts[1]);
  const int pitch = std::max(rows, 1);
  int descriptor[9];
  descinit_(descriptor, &n, &n, &block, &block, &zero, &zero, &context, &pitch, &info);

  const std::size_t count = std::size_t(rows) * std::size_t(columns);
  std::vector<double> a(count), b(count), c(count);
  const auto global = [](int local, int at, int of) {
    return double((local / block * of + at) * block + local % block);
  };
  for (int jj = 0; jj < columns; ++jj)
    for (int ii = 0; ii < rows; ++ii) {
      const double i = global(ii, row, parts[0]), j = global(jj, column, parts[1]);
      a[std::size_t(jj * pitch + ii)] = std::sin(i + 2 * j);
      b[std::size_t(jj * pitch + ii)] = std::cos(i - j);
    }
  const double alpha = 1, beta = 0;
  const Stopwatch stopwatch;
  pdgemm_("N", "N", &n, &n, &n, &alpha, a.data(), &one, &one, descriptor, b.data(), &one, &one,
          descriptor, &beta, c.data(), &one, &one, descriptor);
  stopwatch.print(rank);
  double sum = 0;
  for (const double x : c) sum += x * x;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("norm %.10e\n", std::sqrt(sum));
  Cblacs_gridexit(context);
  MPI_Finalize();
}
