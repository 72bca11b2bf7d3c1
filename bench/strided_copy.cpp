// Copies between strided views on one rank, as ratios to memcpy of the same bytes in the same run.
#include <complex>
#include <cstdio>
#include <cstring>
#include <vector>

#include <cleave/tensor/tensor.hpp>

#include "timing.hpp"

using namespace cleave;
using bench::median;
using bench::seconds_of;

namespace {

/// Copies the view to contiguous memory, and as many contiguous bytes by memcpy, interleaved.
template <class T, int Rank>
void against_memcpy(const char* name, const Tensor<T, Rank>& view) {
  const Tensor<T, Rank> dense(view.shape()), source(view.shape()), destination(view.shape());
  for (const auto& tensor : {dense, source, destination}) tensor.fill_(T(1));
  const auto bytes = std::size_t(view.size()) * sizeof(T);
  std::vector<double> copies, moves;
  for (int i = 0; i < 51; ++i) {
    copies.push_back(seconds_of(1, [&] { strided_copy(view.view(), dense.view()); }));
    moves.push_back(seconds_of(1, [&] { std::memcpy(destination.data(), source.data(), bytes); }));
  }
  std::printf("strided_copy.%s.vs_memcpy %.3f ratio\n", name, median(moves) / median(copies));
  std::printf("strided_copy.%s %.2f GB/s\n", name, double(bytes) * 1e-9 / median(copies));
}

template <class T>
Tensor<T, 2> matrix(index_t rows, index_t cols) {
  const Tensor<T, 2> x({rows, cols});
  x.fill_(T(1));
  return x;
}

}  // namespace

int main() {
  against_memcpy("transpose.f32.2048x2048", matrix<float>(2048, 2048).transpose(0, 1));
  against_memcpy("transpose.f64.2048x2048", matrix<double>(2048, 2048).transpose(0, 1));
  against_memcpy("transpose.c128.1024x1024",
                 matrix<std::complex<double>>(1024, 1024).transpose(0, 1));
  against_memcpy("transpose.f16.2048x2048", matrix<half>(2048, 2048).transpose(0, 1));
  against_memcpy("transpose.f32.1000x3000", matrix<float>(1000, 3000).transpose(0, 1));
  against_memcpy("pack.f32.half_of_2048_columns", matrix<float>(2048, 2048).slice(1, 0, 1024));
  against_memcpy("pack.f32.3_of_64_columns", matrix<float>(1 << 18, 64).slice(1, 0, 3));
}
