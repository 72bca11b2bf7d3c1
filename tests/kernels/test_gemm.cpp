#include <array>
#include <cmath>
#include <complex>
#include <cstdint>

#include <doctest/doctest.h>

#include <cleave/kernels/host/gemm.hpp>

using namespace cleave;
using namespace cleave::kernels;

namespace {

/// Small integers: every product and sum is exact in all element types.
template <class T>
T entry(index_t i, index_t j, int seed) {
  const int value = int((i * 7 + j * 3 + i * j + seed) % 5) - 2;
  if constexpr (is_complex<T>) return T(float(value), float(int((i + 2 * j) % 3) - 1));
  else if constexpr (std::is_unsigned_v<T>) return T(value + 2);
  else return T(float(value));
}

/// Ways to store a matrix; the meaning of an index stays the same.
enum class Storage { row_major, col_major, padded_rows, padded_cols, every_other };

template <class T>
Tensor<T, 2> matrix(index_t rows, index_t cols, Storage storage, int seed) {
  Tensor<T, 2> m;
  switch (storage) {
    case Storage::row_major: m = Tensor<T, 2>({rows, cols}); break;
    case Storage::col_major: m = Tensor<T, 2>({cols, rows}).transpose(0, 1); break;
    case Storage::padded_rows: m = Tensor<T, 2>({rows, cols + 3}).slice(1, 2, cols + 2); break;
    case Storage::padded_cols:
      m = Tensor<T, 2>({cols, rows + 3}).transpose(0, 1).slice(0, 1, rows + 1);
      break;
    case Storage::every_other: m = Tensor<T, 3>({rows, cols, 2}).select(2, 1); break;
  }
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < cols; ++j) m(i, j) = entry<T>(i, j, seed);
  return m;
}

/// @param added  what the product was added to
template <class T>
void check_product(const Tensor<T, 2>& a, const Tensor<T, 2>& b, const Tensor<T, 2>& c,
                   T added = T(0)) {
  using A = accumulator_t<T>;
  index_t wrong = 0;
  for (index_t i = 0; i < c.extent(0); ++i) {
    for (index_t j = 0; j < c.extent(1); ++j) {
      A sum = A(added);
      for (index_t k = 0; k < a.extent(1); ++k) sum = A(sum + A(a(i, k)) * A(b(k, j)));
      wrong += !(c(i, j) == T(sum));
    }
  }
  CHECK(wrong == 0);
}

constexpr std::array<std::array<index_t, 3>, 12> sizes{{{1, 1, 1},
                                                        {0, 3, 2},
                                                        {3, 0, 2},
                                                        {3, 2, 0},
                                                        {0, 0, 0},
                                                        {1, 7, 5},
                                                        {5, 7, 1},
                                                        {4, 1, 6},
                                                        {13, 17, 19},
                                                        {6, 8, 32},
                                                        {100, 70, 33},
                                                        {97, 300, 130}}};

template <class T>
void check_all() {
  for (const auto& size : sizes) {
    const index_t m = size[0], k = size[1], n = size[2];
    for (const Storage sa : {Storage::row_major, Storage::col_major, Storage::padded_rows,
                             Storage::padded_cols, Storage::every_other}) {
      for (const Storage sb : {Storage::row_major, Storage::col_major, Storage::padded_rows,
                               Storage::padded_cols, Storage::every_other}) {
        CAPTURE(m);
        CAPTURE(k);
        CAPTURE(n);
        CAPTURE(int(sa));
        CAPTURE(int(sb));
        const auto a = matrix<T>(m, k, sa, 1), b = matrix<T>(k, n, sb, 2);
        Tensor<T, 2> c({m, n});
        c.fill_(T(77));
        gemm(On<Host>{}, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
        check_product(a, b, c);
        c.fill_(T(7));
        gemm(On<Host>{}, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)), true);
        check_product(a, b, c, T(7));
        if (m * n * k == 0) continue;
        const auto wide = Tensor<T, 2>({m, n + 2}).slice(1, 1, n + 1);
        wide.fill_(T(77));
        kernels::detail::blocked_gemm(as_matrix(read(a)), as_matrix(read(b)),
                                      as_matrix(write(wide)));
        check_product(a, b, wide);
        wide.fill_(T(7));
        kernels::detail::blocked_gemm(as_matrix(read(a)), as_matrix(read(b)),
                                      as_matrix(write(wide)), true);
        check_product(a, b, wide, T(7));
      }
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("a product equals the naive one for any strides and extents", T, float, double,
                   std::complex<float>, std::complex<double>, std::int32_t, std::int64_t,
                   std::uint8_t) {
  check_all<T>();
}

TEST_CASE("a product wider than a block is complete") {
  const auto a = matrix<float>(3, 270, Storage::row_major, 1);
  const auto b = matrix<float>(270, 2060, Storage::row_major, 2);
  Tensor<float, 2> c({3, 2060});
  kernels::detail::blocked_gemm(as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
  check_product(a, b, c);
}

TEST_CASE_TEMPLATE("sums of 16-bit floats are accumulated in float and rounded once", T, half,
                   bfloat16) {
  // one addend of 1024 and many of 1 (0.5 * 2), which a 16-bit sum would lose
  constexpr index_t k = 600;
  Tensor<T, 2> a({1, k}), b({k, 2}), c({1, 2});
  a.fill_(T(0.5f));
  b.fill_(T(2.0f));
  a(0, 0) = T(512.0f);
  gemm(On<Host>{}, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
  CHECK(float(c(0, 0)) == float(T(1024.0f + 599.0f)));
  CHECK(float(c(0, 1)) == float(T(1024.0f + 599.0f)));
  gemm(On<Host>{}, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)), true);
  CHECK(float(c(0, 0)) == float(T(float(T(1024.0f + 599.0f)) + 1623.0f)));
  check_product(
      matrix<T>(13, 40, Storage::row_major, 1), matrix<T>(40, 9, Storage::col_major, 2), [] {
        Tensor<T, 2> out({13, 9});
        gemm(On<Host>{}, as_matrix(read(matrix<T>(13, 40, Storage::row_major, 1))),
             as_matrix(read(matrix<T>(40, 9, Storage::col_major, 2))), as_matrix(write(out)));
        return out;
      }());
}

TEST_CASE("products of integers wrap") {
  Tensor<std::int32_t, 2> a({1, 2}, {2147483647, 2}), b({2, 1}, {2, 1}), c({1, 1});
  gemm(On<Host>{}, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
  CHECK(c(0, 0) == 0);
}

TEST_CASE("a NaN in an operand reaches the product, a NaN in the output's storage does not") {
  Tensor<double, 2> a({2, 3}), b({3, 2}), c({2, 2});
  a.fill_(1.0);
  b.fill_(1.0);
  c.fill_(std::nan(""));
  a(1, 2) = std::nan("");
  gemm(On<Host>{}, as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
  CHECK(c(0, 0) == 3.0);
  CHECK(c(0, 1) == 3.0);
  CHECK(std::isnan(c(1, 0)));
  CHECK(std::isnan(c(1, 1)));
}

namespace {

/// Narrow products with the kernel for vectors of that many bytes.
template <class T, int Bytes>
void check_skinny() {
#if defined(CLEAVE_VECTOR_TARGETS)
  const auto product = [](const Tensor<T, 2>& a, const Tensor<T, 2>& b, bool expected) {
    const index_t m = a.extent(0), n = b.extent(1);
    for (const index_t more : {index_t{0}, index_t{3}}) {  // spare elements per row of the result
      const Tensor<T, 2> all({m, n + more});
      all.fill_(T(77));
      const auto c = all.slice(1, 0, n);
      const bool done = kernels::detail::skinny_gemm_with<T, Bytes>(
          as_matrix(read(a)), as_matrix(read(b)), as_matrix(write(c)));
      CHECK(done == expected);
      if (done) check_product(a, b, c);
      for (index_t i = 0; i < m; ++i)
        for (index_t j = n; j < n + more; ++j) CHECK_UNARY(all(i, j) == T(77));
    }
  };
  for (const index_t n : {6, 8, 10, 11, 12, 15, 16}) {
    CAPTURE(n);
    const bool fits = n <= kernels::detail::SkinnyTile<T, Bytes>::cols &&
                      2 * n >= kernels::detail::SkinnyTile<T, Bytes>::cols;
    for (const index_t m : {256, 257, 260, 263, 511})
      product(matrix<T>(m, 9, Storage::row_major, 1), matrix<T>(9, n, Storage::col_major, 2), fits);
    product(matrix<T>(300, 64, Storage::padded_rows, 1), matrix<T>(64, n, Storage::row_major, 2),
            fits);
  }
  product(matrix<T>(255, 64, Storage::row_major, 1), matrix<T>(64, 10, Storage::row_major, 2),
          false);
  product(matrix<T>(300, 64, Storage::col_major, 1), matrix<T>(64, 10, Storage::row_major, 2),
          false);
  product(matrix<T>(10, 100, Storage::row_major, 1), matrix<T>(100, 64, Storage::row_major, 2),
          false);
#endif
}

}  // namespace

TEST_CASE_TEMPLATE("narrow products equal the naive ones, for all vectors", T, float, double) {
#if defined(CLEAVE_VECTOR_TARGETS)
  if (kernels::detail::widest_vectors() >= 32) check_skinny<T, 32>();
  if (kernels::detail::widest_vectors() >= 64) check_skinny<T, 64>();
#endif
}
