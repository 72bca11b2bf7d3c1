// Linear algebra under placements: what is exchanged, larger matrices, errors. The verifier checks
// values of small ones under all placements.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/linear_algebra/cholesky.hpp>
#include <cleave/ops/linear_algebra/determinants.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/shapes/slice.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::error_of;
using namespace cleave::axes;

namespace linear_algebra {
namespace {

template <class T>
T entry(index_t batch, index_t i, index_t j) {
  const double value = double((batch * 31 + i * 17 + j * 7 + i * j) % 13) - 6;
  if constexpr (is_complex<T>)
    return T(typename T::value_type(value), typename T::value_type(j % 3));
  else return T(value);
}

/// Matrices b b^H + 1, by loops.
template <class T>
Tensor<T, 3> definite(index_t count, index_t n) {
  const Tensor<T, 3> a({count, n, n});
  for (index_t c = 0; c < count; ++c)
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) {
        T sum = i == j ? T(1) : T(0);
        for (index_t k = 0; k < n; ++k) {
          T other = entry<T>(c, j, k);
          if constexpr (is_complex<T>) other = std::conj(other);
          sum += entry<T>(c, i, k) * other;
        }
        a(c, i, j) = sum;
      }
  return a;
}

template <class T>
double product_error(const Tensor<T, 3>& a, bool adjoint, const Tensor<T, 3>& b,
                     const Tensor<T, 3>& expected) {
  double error = 0, most = 1;
  for (index_t c = 0; c < expected.extent(0); ++c)
    for (index_t i = 0; i < expected.extent(1); ++i)
      for (index_t j = 0; j < expected.extent(2); ++j) {
        T sum = 0;
        for (index_t k = 0; k < a.extent(2); ++k) {
          T right = adjoint ? b(c, j, k) : b(c, k, j);
          if constexpr (is_complex<T>)
            if (adjoint) right = std::conj(right);
          sum += a(c, i, k) * right;
        }
        error = std::max(error, double(std::abs(sum - expected(c, i, j))));
        most = std::max(most, double(std::abs(expected(c, i, j))));
      }
  return error / most;
}

template <class T>
void check_larger() {
  const double tolerance = sizeof(kernels::real_t<T>) == 4 ? 1e-3 : 1e-11;
  const auto a = definite<T>(2, 67);
  const auto l = cholesky(a);
  CHECK(product_error(l, true, l, a) < tolerance);
  bool is_triangle = true;
  for (index_t i = 0; i < 67; ++i)
    for (index_t j = i + 1; j < 67; ++j) is_triangle = is_triangle && l(1, i, j) == T(0);
  CHECK(is_triangle);
  Tensor<T, 3> b({2, 67, 5});
  for (index_t i = 0; i < 67; ++i)
    for (index_t j = 0; j < 5; ++j) b(0, i, j) = entry<T>(3, i, j), b(1, i, j) = entry<T>(4, j, i);
  CHECK(product_error(l, false, triangular_solve(l, b), b) < tolerance);
  const auto general = [&] {
    const Tensor<T, 3> x({2, 67, 67});
    for (index_t c = 0; c < 2; ++c)
      for (index_t i = 0; i < 67; ++i)
        for (index_t j = 0; j < 67; ++j)
          x(c, i, j) = entry<T>(c, i, j) + (j == 66 - i ? T(200) : T(0));
    return x;
  }();
  CHECK(product_error(general, false, solve(general, b), b) < tolerance);
  Tensor<T, 3> one({2, 67, 67});
  for (index_t i = 0; i < 67; ++i)
    for (index_t j = 0; j < 67; ++j) one(0, i, j) = one(1, i, j) = i == j ? T(1) : T(0);
  CHECK(product_error(general, false, inv(general), one) < tolerance);
}

std::string text_of(const std::string& error) { return error.substr(0, error.find(" [")); }

}  // namespace

TEST_CASE("factors and solutions of matrices larger than a block, multiplied by loops") {
  check_larger<double>();
  check_larger<float>();
  check_larger<std::complex<double>>();
  check_larger<std::complex<float>>();
}

TEST_CASE("batches stay where they are, also short and empty ones; a single matrix is gathered") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto whole = definite<double>(3, 4);
    const auto a = distribute_tensor(whole, mesh, Shard<0>{});
    {
      const CommTrace trace(world);
      const auto l = cholesky(a);
      const auto x = solve(a, l);
      const auto d = det(inv(x));
      CHECK(trace.received_bytes() == 0);
      static_assert(decltype(l)::layout == decltype(a)::layout);
      static_assert(decltype(d)::layout == decltype(a)::layout);
    }
    const auto l = cholesky(a);
    CHECK(product_error(l.full_tensor(), true, l.full_tensor(), whole) < 1e-12);
    const auto one = cleave::select(distribute_tensor(whole, mesh, Shard<1>{}), dim<0>{}, 1);
    const Tensor<double, 2> sides({4, 7});
    std::fill_n(sides.data(), 28, 1.5);
    const auto b = distribute_tensor(sides, mesh, Shard<1>{});
    const auto x = solve(one, b);  // right-hand sides stay
    static_assert(decltype(x)::layout == decltype(b)::layout);
    const auto y = x.full_tensor();
    double error = 0;
    for (index_t i = 0; i < 4; ++i)
      for (index_t j = 0; j < 7; ++j) {
        double sum = -1.5;
        for (index_t k = 0; k < 4; ++k) sum += whole(1, i, k) * y(k, j);
        error = std::max(error, std::abs(sum));
      }
    CHECK(error < 1e-10);
  });
}

TEST_CASE("a vector is a right-hand side, and arrays without elements have results") {
  Tensor<double, 2> a({2, 2});
  a(0, 0) = 0, a(0, 1) = 2, a(1, 0) = 4, a(1, 1) = 1;
  Tensor<double, 1> b({2});
  b(0) = 6, b(1) = 11;
  const auto x = solve(a, b);
  CHECK(x(0) == 2);
  CHECK(x(1) == 3);
  CHECK(det(a).item() == -8);
  CHECK(det(Tensor<double, 2>({0, 0})).item() == 1);
  CHECK(inv(Tensor<double, 2>({0, 0})).size() == 0);
  CHECK(solve(a, Tensor<double, 2>({2, 0})).shape() == std::array<index_t, 2>{2, 0});
  Tensor<double, 2> singular({2, 2});
  singular(0, 0) = 1, singular(0, 1) = 2, singular(1, 0) = 2, singular(1, 1) = 4;
  CHECK(det(singular).item() == 0);
  CHECK(text_of(error_of([&] { inv(singular); })) ==
        "inv: the matrix is singular: its pivot 2 is 0");
  CHECK(text_of(error_of([&] { solve(singular, b); })) ==
        "solve: the matrix is singular: its pivot 2 is 0");
  singular(1, 1) = 0;
  CHECK(text_of(error_of([&] { triangular_solve(singular, b, Side::upper); })) ==
        "triangular_solve: the matrix is singular: its diagonal element 2 is 0");
  CHECK(text_of(error_of([&] { cholesky(a); })) ==
        "cholesky: the matrix is not positive definite: so says its leading minor of order 1");
  CHECK(text_of(error_of([&] { cholesky(Tensor<double, 3>({2, 3, 2})); })) ==
        "cholesky: the matrices are not square");
}

}  // namespace linear_algebra
