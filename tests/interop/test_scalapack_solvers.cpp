// One matrix by ScaLAPACK, from any placement: products with its factors and solutions, by loops.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/interop/scalapack_factors.hpp>
#include <cleave/interop/scalapack_solvers.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::error_of;
using cleave::testing::Processes;
using namespace cleave::axes;

namespace large_matrices {
namespace {

template <class T>
T conjugate(const T& x) {
  if constexpr (is_complex<T>) return std::conj(x);
  else return x;
}

/// Some matrix: no element on the diagonal is large, so that rows must be exchanged.
template <class T>
Tensor<T, 2> some(index_t rows, index_t columns) {
  const Tensor<T, 2> x({rows, columns});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      const double value =
          double((i * 17 + j * 29 + i * j) % 23) / 23 + (i + j == rows - 1 ? 20 : 0);
      if constexpr (is_complex<T>) {
        using Real = typename T::value_type;
        x(i, j) = T(Real(value), Real(double((i + 2 * j) % 5) / 9));
      } else {
        x(i, j) = T(value);
      }
    }
  return x;
}

/// a b, or a b^H, by loops.
template <class T>
Tensor<T, 2> product(const Tensor<T, 2>& a, const Tensor<T, 2>& b, bool adjoint = false) {
  const Tensor<T, 2> y({a.extent(0), b.extent(adjoint ? 0 : 1)});
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t j = 0; j < y.extent(1); ++j) {
      T sum = 0;
      for (index_t k = 0; k < a.extent(1); ++k)
        sum += a(i, k) * (adjoint ? conjugate(b(j, k)) : b(k, j));
      y(i, j) = sum;
    }
  return y;
}

template <class T>
double difference(const Tensor<T, 2>& x, const Tensor<T, 2>& y) {
  if (x.shape() != y.shape()) return 1;
  double error = 0, most = 1;
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < x.extent(1); ++j) {
      error = std::max(error, double(std::abs(x(i, j) - y(i, j))));
      most = std::max(most, double(std::abs(y(i, j))));
    }
  return error / most;
}

template <class T, class Mesh, class P, class Q>
void check(const Mesh& mesh, index_t n, index_t columns, P placements, Q of_sides) {
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const double tolerance = sizeof(T) / (is_complex<T> ? 2 : 1) == 4 ? 1e-4 : 1e-11;
  const Tensor<T, 2> any = some<T>(n, n), b = some<T>(n, columns);
  Tensor<T, 2> definite = product(any, any, true);
  for (index_t i = 0; i < n; ++i) definite(i, i) += T(1);
  const auto before = distribute_tensor(definite, mesh, placements);
  const auto l = scalapack::cholesky(before);
  const Tensor<T, 2> whole = l.full_tensor();
  CHECK(difference(product(whole, whole, true), definite) < tolerance);
  bool is_triangle = true;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i + 1; j < n; ++j) is_triangle = is_triangle && whole(i, j) == T(0);
  CHECK(is_triangle);
  CHECK(difference(before.full_tensor(), definite) == 0);  // not overwritten

  const auto a = distribute_tensor(any, mesh, placements);
  const auto sides = distribute_tensor(b, mesh, of_sides);
  const auto x = scalapack::solve(a, sides);
  CHECK(difference(product(any, x.full_tensor()), b) < tolerance);
  CHECK(difference(a.full_tensor(), any) == 0);
  CHECK(difference(sides.full_tensor(), b) == 0);
}

template <class T>
Tensor<T, 2> adjoint(const Tensor<T, 2>& x) {
  const Tensor<T, 2> y({x.extent(1), x.extent(0)});
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t j = 0; j < y.extent(1); ++j) y(i, j) = conjugate(x(j, i));
  return y;
}

template <class T>
Tensor<T, 2> identity(index_t n) {
  const Tensor<T, 2> one({n, n});
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) one(i, j) = i == j ? T(1) : T(0);
  return one;
}

/// The determinant, by elimination with row exchanges.
template <class T>
T determinant(const Tensor<T, 2>& given) {
  const Tensor<T, 2> a = given.clone();
  const index_t n = a.extent(0);
  T product = 1;
  for (index_t k = 0; k < n; ++k) {
    index_t best = k;
    for (index_t i = k; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    for (index_t j = 0; j < n; ++j) std::swap(a(k, j), a(best, j));
    product *= best == k ? a(k, k) : -a(k, k);
    for (index_t i = k + 1; i < n; ++i) {
      const T factor = a(i, k) / a(k, k);
      for (index_t j = k; j < n; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  return product;
}

template <class T, class Mesh, class P>
void check_square(const Mesh& mesh, index_t n, P placements) {
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const double tolerance = sizeof(T) / (is_complex<T> ? 2 : 1) == 4 ? 1e-4 : 1e-10;
  Tensor<T, 2> any = some<T>(n, n);
  for (index_t i = 0; i < n * n; ++i) any.data()[i] /= T(10);
  const auto a = distribute_tensor(any, mesh, placements);
  CHECK(difference(product(any, scalapack::inv(a).full_tensor()), identity<T>(n)) < tolerance);
  const T expected = determinant(any);
  const auto d = scalapack::det(a);
  CHECK(std::abs(d.to_local().item() - expected) < tolerance * std::abs(expected));

  const auto [w, v] = scalapack::eigh(a);
  const Tensor<T, 2> whole({n, n}), vectors = v.full_tensor(), turned({n, n});
  const auto values = w.to_local();
  bool ascends = true;
  for (index_t i = 0; i < n; ++i) {
    ascends = ascends && (i == 0 || values(i - 1) <= values(i));
    for (index_t j = 0; j < n; ++j) {  // the lower triangle is read
      whole(i, j) = i == j ? T(std::real(any(i, i))) : i < j ? conjugate(any(j, i)) : any(i, j);
      turned(i, j) = vectors(i, j) * values(j);
    }
  }
  CHECK(ascends);
  CHECK(difference(product(adjoint(vectors), vectors), identity<T>(n)) < tolerance);
  CHECK(difference(product(turned, vectors, true), whole) < tolerance);
  CHECK(difference(a.full_tensor(), any) == 0);  // not overwritten
}

template <class T, class Mesh, class P>
void check_qr(const Mesh& mesh, index_t m, index_t n, P placements) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const double tolerance = sizeof(T) / (is_complex<T> ? 2 : 1) == 4 ? 1e-4 : 1e-11;
  const Tensor<T, 2> any = some<T>(m, n);
  const auto a = distribute_tensor(any, mesh, placements);
  const auto factors = scalapack::qr(a);
  const Tensor<T, 2> q = std::get<0>(factors).full_tensor(), r = std::get<1>(factors).full_tensor();
  const index_t k = std::min(m, n);
  CHECK(q.shape() == std::array<index_t, 2>{m, k});
  CHECK(r.shape() == std::array<index_t, 2>{k, n});
  CHECK(difference(product(q, r), any) < tolerance);
  CHECK(difference(product(adjoint(q), q), identity<T>(k)) < tolerance);
  bool has_form = true;
  for (index_t i = 0; i < k; ++i) {
    has_form = has_form && std::real(r(i, i)) >= 0 && std::abs(std::imag(r(i, i))) < tolerance;
    for (index_t j = 0; j < i; ++j) has_form = has_form && r(i, j) == T(0);
  }
  CHECK(has_form);
  CHECK(difference(a.full_tensor(), any) == 0);
}

/// Runs a case if ranks are processes, between which ScaLAPACK communicates.
template <class F>
void between_processes(std::initializer_list<int> counts, const F& body) {
  if (Processes::get().launched()) on_ranks(counts, body);
  else skip("ScaLAPACK's ranks are MPI processes");
}

}  // namespace

TEST_CASE("factors and solutions by ScaLAPACK, multiplied by loops, from any placement") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check<double>(line, 70, 3, Placements<Shard<0>>{}, Placements<Shard<1>>{});
    check<std::complex<double>>(line, 5, 7, Placements<BlockCyclic<1, 2>>{},
                                Placements<Replicate>{});
    if (world.size() % 2 != 0) return;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    for (const index_t n : {1, 67, 130})
      check<double>(mesh, n, 2, Placements<Shard<0>, Replicate>{},
                    Placements<Shard<1>, Shard<0>>{});
    check<double>(mesh, 0, 2, Placements<Shard<0>, Replicate>{}, Placements<Shard<0>, Replicate>{});
    check<double>(mesh, 33, 5, Placements<BlockCyclic<0, 4>, BlockCyclic<1, 4>>{},
                  Placements<Shard<0>, Shard<0>>{});
    check<double>(mesh, 9, 0, Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{},
                  Placements<Shard<0>, Shard<0>>{});
    check<float>(mesh, 20, 20, Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{},
                 Placements<Replicate, Shard<1>>{});
    check<std::complex<float>>(mesh, 12, 3, Placements<BlockCyclic<0, 2>, BlockCyclic<0, 2>>{},
                               Placements<Replicate, Replicate>{});
    check<std::complex<double>>(mesh, 70, 4, Placements<Shard<1>, Balanced<0>>{},
                                Placements<Shard<0>, Shard<1>>{});
  });
}

TEST_CASE("inverses, determinants and eigenvalues by ScaLAPACK, from any placement, by loops") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_square<double>(line, 70, Placements<Shard<0>>{});
    check_square<std::complex<double>>(line, 5, Placements<BlockCyclic<1, 2>>{});
    check_square<double>(line, 4, Placements<Replicate>{});
    if (world.size() % 2 != 0) return;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    for (const index_t n : {0, 1, 67, 130})
      check_square<double>(mesh, n, Placements<Shard<0>, Replicate>{});
    check_square<float>(mesh, 20, Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{});
    check_square<std::complex<float>>(mesh, 12, Placements<BlockCyclic<0, 2>, Replicate>{});
    check_square<std::complex<double>>(mesh, 70, Placements<Shard<1>, Balanced<0>>{});
  });
}

TEST_CASE("QR factors by ScaLAPACK, from any placement, multiplied by loops") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_qr<double>(line, 90, 7, Placements<Shard<0>>{});
    check_qr<std::complex<double>>(line, 5, 9, Placements<BlockCyclic<1, 2>>{});
    if (world.size() % 2 != 0) return;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    for (const auto& [m, n] :
         {std::array<index_t, 2>{70, 130}, {130, 70}, {67, 67}, {1, 3}, {0, 2}, {2, 0}})
      check_qr<double>(mesh, m, n, Placements<Shard<1>, Shard<0>>{});
    check_qr<float>(mesh, 20, 11, Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{});
    check_qr<std::complex<double>>(mesh, 70, 66, Placements<Shard<0>, Balanced<0>>{});
  });
}

TEST_CASE("results of ScaLAPACK lie in blocks of 64, or in those of the operand") {
  between_processes({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const auto whole = some<double>(6, 6);
    const auto a = distribute_tensor(whole, mesh, Shard<1>{}, Replicate{});
    static_assert(std::is_same_v<decltype(scalapack::solve(a, a).placements()),
                                 Placements<BlockCyclic<1, 64>, BlockCyclic<0, 64>>>);
    const auto b = distribute_tensor(whole, mesh, BlockCyclic<1, 2>{}, BlockCyclic<0, 2>{});
    static_assert(
        std::is_same_v<decltype(scalapack::cholesky(b)), std::remove_cvref_t<decltype(b)>>);
    CHECK(b.shape() == a.shape());
  });
}

TEST_CASE("what ScaLAPACK cannot factorise is an error on every rank") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto text = [](const auto& call) {
      const std::string error = error_of(call);
      return error.substr(0, error.find(" ["));
    };
    const auto a = distribute_tensor(some<double>(5, 5), mesh, Shard<0>{});
    CHECK(text([&] { scalapack::cholesky(a); }) ==
          "scalapack::cholesky: the matrix is not positive definite: so says its leading minor of "
          "order 1");
    const Tensor<double, 2> ones({5, 5});
    std::fill_n(ones.data(), 25, 1.);
    const auto singular = distribute_tensor(ones, mesh, Shard<0>{});
    CHECK(text([&] { scalapack::solve(singular, a); }) ==
          "scalapack::solve: the matrix is singular: its pivot 2 is 0");
    CHECK(text([&] { scalapack::inv(singular); }) ==
          "scalapack::inv: the matrix is singular: its pivot 2 is 0");
    CHECK(scalapack::det(singular).to_local().item() == 0);
    ones(4, 0) = std::numeric_limits<double>::infinity();
    const auto infinite = distribute_tensor(ones, mesh, Shard<0>{});
    CHECK(text([&] { scalapack::eigh(infinite); }) ==
          "scalapack::eigh: the matrix has an element that is not finite");
    const auto tall = distribute_tensor(some<double>(6, 5), mesh, Shard<0>{});
    CHECK(text([&] { scalapack::inv(tall); }) == "scalapack::inv: the matrix is not square");
    CHECK(text([&] { scalapack::cholesky(tall); }) ==
          "scalapack::cholesky: the matrix is not square");
    CHECK(text([&] { scalapack::solve(a, tall); }) ==
          "scalapack::solve: the matrix has 5 rows, the right-hand sides 6");
  });
}

}  // namespace large_matrices
