// Factors with several results under placements: their products and values, by loops, what is
// exchanged, and errors. The verifier checks small ones and gradients under all placements.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/linear_algebra/determinants.hpp>
#include <cleave/ops/linear_algebra/eigenvalues.hpp>
#include <cleave/ops/linear_algebra/least_squares.hpp>
#include <cleave/ops/linear_algebra/lu.hpp>
#include <cleave/ops/linear_algebra/qr.hpp>
#include <cleave/ops/linear_algebra/singular_values.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::error_of;
using namespace cleave::axes;

namespace factors_of_matrices {
namespace {

template <class T>
using Matrix = Tensor<T, 2>;

template <class T>
T conjugate(const T& x) {
  if constexpr (is_complex<T>) return std::conj(x);
  else return x;
}

template <class T>
Matrix<T> some(index_t rows, index_t columns, index_t seed = 0) {
  const Matrix<T> x({rows, columns});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      const double value = double((i * 17 + j * 29 + i * j + seed * 7) % 23) / 23 - 0.4;
      if constexpr (is_complex<T>)
        x(i, j) = T(kernels::real_t<T>(value), kernels::real_t<T>(double((i + 2 * j) % 5) / 9));
      else x(i, j) = T(value);
    }
  return x;
}

template <class T>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b) {
  const Matrix<T> y({a.extent(0), b.extent(1)});
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t j = 0; j < y.extent(1); ++j) {
      T sum = 0;
      for (index_t k = 0; k < a.extent(1); ++k) sum += a(i, k) * b(k, j);
      y(i, j) = sum;
    }
  return y;
}

template <class T>
Matrix<T> adjoint(const Matrix<T>& a) {
  const Matrix<T> y({a.extent(1), a.extent(0)});
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t j = 0; j < y.extent(1); ++j) y(i, j) = conjugate(a(j, i));
  return y;
}

template <class T>
double difference(const Matrix<T>& x, const Matrix<T>& y) {
  if (x.shape() != y.shape()) return 1;
  double error = 0, most = 1;
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < x.extent(1); ++j) {
      error = std::max(error, double(std::abs(x(i, j) - y(i, j))));
      most = std::max(most, double(std::abs(y(i, j))));
    }
  return std::isnan(error) ? 1 : error / most;
}

/// How far the columns are from orthonormal ones.
template <class T>
double skewness(const Matrix<T>& x) {
  const Matrix<T> one({x.extent(1), x.extent(1)});
  for (index_t i = 0; i < one.extent(0); ++i)
    for (index_t j = 0; j < one.extent(1); ++j) one(i, j) = i == j ? T(1) : T(0);
  return difference(product(adjoint(x), x), one);
}

/// The eigenvalues of a Hermitian matrix, ascending, by Jacobi's rotations.
std::vector<double> eigenvalues(const Matrix<std::complex<double>>& given) {
  using T = std::complex<double>;
  const index_t n = given.extent(0);
  const Matrix<T> a({n, n});
  for (index_t i = 0; i < n * n; ++i) a.data()[i] = given.data()[i];
  for (int sweep = 0; sweep < 30; ++sweep)
    for (index_t p = 0; p < n; ++p)
      for (index_t q = p + 1; q < n; ++q) {
        const double size = std::abs(a(p, q));
        if (size < 1e-300) continue;
        const T phase = a(p, q) / size;
        const double angle = 0.5 * std::atan2(2 * size, a(q, q).real() - a(p, p).real());
        const double c = std::cos(angle), s = std::sin(angle);
        for (index_t k = 0; k < n; ++k) {  // columns, then rows
          const T x = a(k, p), y = a(k, q) * std::conj(phase);
          a(k, p) = c * x - s * y, a(k, q) = s * x + c * y;
        }
        for (index_t k = 0; k < n; ++k) {
          const T x = a(p, k), y = a(q, k) * phase;
          a(p, k) = c * x - s * y, a(q, k) = s * x + c * y;
        }
      }
  std::vector<double> values;
  for (index_t i = 0; i < n; ++i) values.push_back(a(i, i).real());
  std::sort(values.begin(), values.end());
  return values;
}

template <class T>
Matrix<std::complex<double>> widened(const Matrix<T>& x) {
  const Matrix<std::complex<double>> y({x.extent(0), x.extent(1)});
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < x.extent(1); ++j) y(i, j) = std::complex<double>(x(i, j));
  return y;
}

template <class T>
void check_factors(index_t m, index_t n) {
  CAPTURE(m);
  CAPTURE(n);
  using Real = kernels::real_t<T>;
  const double tolerance = sizeof(Real) == 4 ? 1e-4 : 1e-11;
  const index_t k = std::min(m, n);
  const Matrix<T> a = some<T>(m, n);

  const auto [p, l, u] = lu(a);
  CHECK(difference(product(p, product(l, u)), a) < tolerance);
  bool has_form = true;  // p: one 1 per row and column; l, u: triangles; no multiplier above 1
  for (index_t i = 0; i < m; ++i) {
    double row = 0, column = 0;
    for (index_t j = 0; j < m; ++j) {
      has_form = has_form && (p(i, j) == T(0) || p(i, j) == T(1));
      row += std::abs(p(i, j)), column += std::abs(p(j, i));
    }
    has_form = has_form && row == 1 && column == 1;
    for (index_t j = 0; j < k; ++j)
      has_form = has_form && (j < i ? std::abs(l(i, j)) < 1.5 : l(i, j) == T(i == j ? 1 : 0));
  }
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < i; ++j) has_form = has_form && u(i, j) == T(0);
  CHECK(has_form);

  const auto [q, r] = qr(a);
  CHECK(difference(product(q, r), a) < tolerance);
  CHECK(skewness(q) < tolerance);
  bool is_triangle = true;
  for (index_t i = 0; i < k; ++i) {
    is_triangle = is_triangle && std::real(r(i, i)) >= 0 && std::imag(r(i, i)) == 0;
    for (index_t j = 0; j < i; ++j) is_triangle = is_triangle && r(i, j) == T(0);
  }
  CHECK(is_triangle);

  const auto [left, s, right] = svd(a);
  CHECK(skewness(left) < tolerance);
  CHECK(skewness(adjoint(right)) < tolerance);
  const Matrix<T> scaled({m, k});
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < k; ++j) scaled(i, j) = left(i, j) * s(j);
  CHECK(difference(product(scaled, right), a) < tolerance);
  const auto wide = widened(a);
  std::vector<double> squares =
      eigenvalues(m < n ? product(wide, adjoint(wide)) : product(adjoint(wide), wide));
  double error = 0;
  for (index_t i = 0; i < k; ++i)
    error = std::max(error, std::abs(s(i) * s(i) - squares[std::size_t(k - 1 - i)]));
  CHECK(error < 10 * tolerance * (1 + squares.back()));

  // the lower triangle is read, alone
  const Matrix<T> lower({k, k}), whole({k, k});
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < k; ++j) {
      lower(i, j) = j > i ? T(std::numeric_limits<Real>::quiet_NaN()) : a(i, j);
      whole(i, j) = i == j ? T(std::real(a(i, i))) : i < j ? conjugate(a(j, i)) : a(i, j);
    }
  const auto [w, v] = eigh(lower);
  CHECK(skewness(v) < tolerance);
  const Matrix<T> turned({k, k});
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < k; ++j) turned(i, j) = v(i, j) * w(j);
  CHECK(difference(product(turned, adjoint(v)), whole) < tolerance);
  const std::vector<double> values = eigenvalues(widened(whole));
  error = 0;
  for (index_t i = 0; i < k; ++i)
    error = std::max(error, std::abs(double(w(i)) - values[std::size_t(i)]));
  CHECK(error < 10 * tolerance * (1 + std::abs(values.back())));

  // a^H (a x - b) = 0, and x = a^H y
  const Matrix<T> b = some<T>(m, 3, 5), x = lstsq(a, b);
  const Matrix<T> reached = product(a, x), beside({m, 3});
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < 3; ++j) beside(i, j) = b(i, j) - reached(i, j);
  const Matrix<T> none({n, 3});
  std::fill_n(none.data(), n * 3, T(0));
  CHECK(difference(product(adjoint(a), beside), none) < 10 * tolerance);
  if (m < n) {
    const Matrix<T> again = product(product(adjoint(right), right), x);
    CHECK(difference(again, x) < tolerance);
  }
}

std::string text_of(const std::string& error) { return error.substr(0, error.find(" [shapes")); }

}  // namespace

TEST_CASE("factors multiplied by loops, values by Jacobi's rotations: tall, wide and square") {
  for (const auto& [m, n] : {std::array<index_t, 2>{37, 11}, {9, 30}, {14, 14}, {1, 1}, {5, 1}})
    check_factors<double>(m, n), check_factors<std::complex<double>>(m, n);
  check_factors<float>(7, 4);
  check_factors<std::complex<float>>(4, 7);
}

TEST_CASE("factors of batches lie where the batches lie, those of one matrix on every rank") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const Tensor<double, 3> whole({5, 4, 3});
    for (index_t c = 0; c < 5; ++c)
      for (index_t i = 0; i < 12; ++i) whole.data()[c * 12 + i] = some<double>(4, 3, c).data()[i];
    const auto a = distribute_tensor(whole, mesh, Shard<0>{});
    using L = decltype(a);
    {
      const CommTrace trace(world);
      const auto [q, r] = qr(a);
      const auto [p, l, u] = lu(a);
      const auto [left, s, right] = svd(a);
      const auto [w, v] = eigh(r);
      const auto [sign, logarithm] = slogdet(r);
      const auto x = lstsq(a, q);
      CHECK(trace.received_bytes() == 0);
      static_assert(decltype(r)::layout == L::layout && decltype(u)::layout == L::layout);
      static_assert(decltype(s)::layout == L::layout && decltype(w)::layout == L::layout);
      static_assert(decltype(x)::layout == L::layout);
      CHECK(q.shape() == std::array<index_t, 3>{5, 4, 3});
      CHECK(r.shape() == std::array<index_t, 3>{5, 3, 3});
      CHECK(logarithm.shape() == std::array<index_t, 1>{5});
      const auto all = r.full_tensor();
      const auto logarithms = logarithm.full_tensor();
      double error = 0;
      for (index_t c = 0; c < 5; ++c)
        error = std::max(
            error, std::abs(logarithms(c) - std::log(all(c, 0, 0) * all(c, 1, 1) * all(c, 2, 2))));
      CHECK(error < 1e-12);
    }
    const auto [u, s, vh] = svd(distribute_tensor(whole, mesh, Shard<1>{}));
    static_assert(decltype(s)::layout == L::layout);  // one exchange, for whole matrices
    CHECK(vh.shape() == std::array<index_t, 3>{5, 3, 3});
    const auto one = svd(distribute_tensor(some<double>(4, 3), mesh, Shard<1>{}));
    static_assert(std::tuple_element_t<0, decltype(one)>::layout[0] == Placement::replicate());
  });
}

TEST_CASE("gradients of one matrix lie as it does, and are those of one rank") {
  const Tensor<double, 2> whole = some<double>(4, 4), sides = some<double>(4, 3, 2);
  const auto loss = [](const auto& a, const auto& b) {
    const auto [p, l, u] = lu(a);
    const auto [q, r] = qr(a);
    const auto [left, s, right] = svd(a);
    const auto [w, v] = eigh(a);
    const auto [sign, logarithm] = slogdet(a);
    const auto of_factors = add(sum(square(l)), sum(mul(square(q), square(r))));
    const auto of_values = add(add(sum(square(s)), sum(mul(w, square(w)))), logarithm);
    return add(add(of_factors, of_values), sum(square(lstsq(a, b))));
  };
  const auto alone = requires_grad(whole);
  backward(loss(alone, sides));
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto check = [&](auto of_a, auto of_b) {
      const auto a = requires_grad(distribute_tensor(whole, mesh, of_a));
      const auto b = requires_grad(distribute_tensor(sides, mesh, of_b));
      backward(loss(a, b));
      using Found = std::remove_cvref_t<decltype(grad(a))>;
      static_assert(std::is_same_v<Found, decltype(distribute_tensor(whole, mesh, of_a))>);
      CHECK(difference(grad(a).full_tensor(), grad(alone)) < 1e-9);
    };
    check(Shard<1>{}, Replicate{});
    check(Replicate{}, Shard<1>{});
  });
}

TEST_CASE("factors of matrices without elements, and a right-hand side that is a vector") {
  using Matrix = Tensor<double, 2>;
  const auto [p, l, u] = lu(Matrix({2, 0}));
  CHECK((p(0, 0) == 1 && p(0, 1) == 0 && p(1, 1) == 1));
  CHECK(l.shape() == std::array<index_t, 2>{2, 0});
  CHECK(u.shape() == std::array<index_t, 2>{0, 0});
  CHECK(std::get<0>(qr(Matrix({3, 0}))).shape() == std::array<index_t, 2>{3, 0});
  CHECK(std::get<1>(qr(Matrix({0, 3}))).shape() == std::array<index_t, 2>{0, 3});
  CHECK(std::get<1>(svd(Matrix({0, 3}))).size() == 0);
  CHECK(std::get<0>(eigh(Matrix({0, 0}))).size() == 0);
  const auto [sign, logarithm] = slogdet(Matrix({0, 0}));
  CHECK((sign.item() == 1 && logarithm.item() == 0));
  const auto open = lstsq(Matrix({0, 2}), Matrix({0, 1}));
  CHECK((open(0, 0) == 0 && open(1, 0) == 0));
  const Matrix a({3, 1}, {1, 2, 2});
  CHECK(lstsq(a, Tensor<double, 1>({3}, {9, 0, 9}))(0) == doctest::Approx(3));
  const auto [of_singular, log_of_singular] = slogdet(Matrix({2, 2}, {1, 2, 2, 4}));
  CHECK(of_singular.item() == 0);
  CHECK(log_of_singular.item() == -std::numeric_limits<double>::infinity());
  const auto [minus, large] = slogdet(Matrix({2, 2}, {0, 1e300, 1e300, 0}));
  CHECK(minus.item() == -1);
  CHECK(large.item() == doctest::Approx(600 * std::log(10.)));
}

TEST_CASE("an error names the matrix of the batch by its global indices") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(text_of(error_of([&] { eigh(Tensor<double, 2>({1, 1}, {nan})); })) ==
        "eigh: the matrix has an element that is not finite");
  CHECK(text_of(error_of([&] { svd(Tensor<double, 2>({1, 2}, {1, nan})); })) ==
        "svd: the matrix has an element that is not finite");
  CHECK(text_of(error_of([] { eigh(Tensor<double, 2>({1, 2})); })) ==
        "eigh: the matrices are not square");
  CHECK(text_of(error_of([] { slogdet(Tensor<double, 2>({1, 2})); })) ==
        "slogdet: the matrices are not square");
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    Tensor<double, 4> whole({2, 5, 2, 2});
    for (index_t i = 0; i < whole.size(); ++i) whole.data()[i] = double(i % 4 == 0 || i % 4 == 3);
    whole(1, 3, 1, 1) = 0;
    const auto check = [&](auto... placements) {
      const auto a = distribute_tensor(whole, mesh, placements...);
      const std::string error = error_of([&] { lstsq(a, a); });
      // a rank that does not have the matrix throws nothing
      const Box box = owned_box(a.layout, Shape(whole.shape()), mesh.extents(), mesh.coordinate());
      const bool has = box.begin[0] <= 1 && box.end[0] > 1 && box.begin[1] <= 3 && box.end[1] > 3;
      CHECK(text_of(error) == (has ? "lstsq: matrix [1, 3] does not have full rank: diagonal "
                                     "element 2 of its triangular factor is 0"
                                   : ""));
    };
    check(Shard<0>{});
    check(Shard<1>{});
    check(Replicate{});
  });
}

}  // namespace factors_of_matrices
