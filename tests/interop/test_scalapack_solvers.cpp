// Systems of one matrix by ScaLAPACK, from any placement: products with its solutions, by loops.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/interop/scalapack_solvers.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "large_matrices.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace large_matrices {
namespace {

/// The x of a x = b and the determinant of a, by elimination with row exchanges.
template <class T>
std::pair<Tensor<T, 2>, T> eliminated(const Tensor<T, 2>& given, const Tensor<T, 2>& sides) {
  const Tensor<T, 2> a = given.clone(), x = sides.clone();
  const index_t n = a.extent(0);
  T product = 1;
  const auto subtract = [&](index_t i, index_t k) {
    const T factor = a(i, k) / a(k, k);
    for (index_t j = 0; j < n; ++j) a(i, j) -= factor * a(k, j);
    for (index_t j = 0; j < x.extent(1); ++j) x(i, j) -= factor * x(k, j);
  };
  for (index_t k = 0; k < n; ++k) {
    index_t best = k;
    for (index_t i = k; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    for (index_t j = 0; j < n; ++j)
      if (best != k) std::swap(a(k, j), a(best, j));
    for (index_t j = 0; j < x.extent(1); ++j)
      if (best != k) std::swap(x(k, j), x(best, j));
    product *= best == k ? a(k, k) : -a(k, k);
    for (index_t i = k + 1; i < n; ++i) subtract(i, k);
  }
  for (index_t k = n; k-- > 0;) {
    for (index_t i = 0; i < k; ++i) subtract(i, k);
    for (index_t j = 0; j < x.extent(1); ++j) x(k, j) /= a(k, k);
  }
  return {x, product};
}

template <class T>
Tensor<T, 1> first_column(const Tensor<T, 2>& x) {
  const Tensor<T, 1> y({x.extent(0)});
  for (index_t i = 0; i < y.extent(0); ++i) y(i) = x(i, 0);
  return y;
}

template <class T, class Mesh, class P, class Q>
void check(const Mesh& mesh, index_t n, index_t columns, P placements, Q of_sides) {
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const Tensor<T, 2> any = some<T>(n, n), b = some<T>(n, columns);
  Tensor<T, 2> definite = product(any, any, true);
  for (index_t i = 0; i < n; ++i) definite(i, i) += T(1);
  const auto before = distribute_tensor(definite, mesh, placements);
  const Tensor<T, 2> l = scalapack::cholesky(before).full_tensor();
  CHECK(difference(product(l, l, true), definite) < tolerance<T>);
  CHECK(is_upper_triangle(adjoint(l)));
  CHECK(difference(before.full_tensor(), definite) == 0);  // not overwritten

  const auto a = distribute_tensor(any, mesh, placements);
  const auto sides = distribute_tensor(b, mesh, of_sides);
  const auto x = scalapack::solve(a, sides);
  CHECK(difference(product(any, x.full_tensor()), b) < tolerance<T>);
  CHECK(difference(a.full_tensor(), any) == 0);
  CHECK(difference(sides.full_tensor(), b) == 0);

  for (const Side side : {Side::lower, Side::upper}) {
    const bool is_upper = side == Side::upper;
    const Tensor<T, 2> triangle({n, n}), given({n, n});
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) {
        triangle(i, j) = i == j                ? T(2) + any(i, j)
                         : (i < j) == is_upper ? any(i, j) / kernels::real_t<T>(20 * n)
                                               : T(0);
        given(i, j) = i == j || (i < j) == is_upper
                          ? triangle(i, j)
                          : T(std::numeric_limits<double>::quiet_NaN());  // not read
      }
    const auto y =
        scalapack::triangular_solve(distribute_tensor(given, mesh, placements), sides, side);
    CHECK(difference(product(triangle, y.full_tensor()), b) < tolerance<T>);
  }
}

template <class T, class Mesh, class P, class Q>
void check_lstsq(const Mesh& mesh, index_t m, index_t n, index_t columns, P placements,
                 Q of_sides) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const Tensor<T, 2> any = some<T>(m, n), b = some<T>(m, columns), turned = adjoint(any);
  const auto a = distribute_tensor(any, mesh, placements);
  const auto sides = distribute_tensor(b, mesh, of_sides);
  const Tensor<T, 2> expected = m < n ? product(turned, eliminated(product(any, turned), b).first)
                                      : eliminated(product(turned, any), product(turned, b)).first;
  CHECK(difference(scalapack::lstsq(a, sides).full_tensor(), expected) < tolerance<T>);
  CHECK(difference(a.full_tensor(), any) == 0);
  CHECK(difference(sides.full_tensor(), b) == 0);
}

template <class T, class Mesh, class P>
void check_square(const Mesh& mesh, index_t n, P placements) {
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const Tensor<T, 2> any = some<T>(n, n);
  for (index_t i = 0; i < n * n; ++i) any.data()[i] /= T(10);
  const auto a = distribute_tensor(any, mesh, placements);
  CHECK(difference(product(any, scalapack::inv(a).full_tensor()), identity<T>(n)) < tolerance<T>);
  const T expected = eliminated(any, identity<T>(n)).second;
  CHECK(std::abs(scalapack::det(a).to_local().item() - expected) <
        tolerance<T> * std::abs(expected));
  CHECK(difference(a.full_tensor(), any) == 0);  // not overwritten

  using Size = decltype(std::abs(expected));
  const Size scale = sizeof(Size) == 4 ? Size(1e20) : Size(1e200);  // so that the product overflows
  for (index_t i = 0; i < n * n; ++i) any.data()[i] *= scale;
  const auto parts = scalapack::slogdet(distribute_tensor(any, mesh, placements));
  const double size = std::log(double(std::abs(expected))) + double(n) * std::log(double(scale));
  CHECK(std::abs(std::get<0>(parts).to_local().item() - expected / std::abs(expected)) <
        tolerance<T>);
  CHECK(std::abs(double(std::get<1>(parts).to_local().item()) - size) <
        tolerance<T> * std::max(1., size));
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

TEST_CASE("least squares by ScaLAPACK, from any placement, against normal equations by loops") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_lstsq<double>(line, 90, 7, 3, Placements<Shard<0>>{}, Placements<Shard<1>>{});
    check_lstsq<std::complex<double>>(line, 5, 9, 2, Placements<BlockCyclic<1, 2>>{},
                                      Placements<Replicate>{});
    check_lstsq<std::complex<double>>(line, 9, 5, 2, Placements<BlockCyclic<0, 2>>{},
                                      Placements<Replicate>{});
    if (world.size() % 2 != 0) return;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    for (const auto& [m, n] :
         {std::array<index_t, 2>{70, 130}, {130, 70}, {67, 67}, {1, 3}, {3, 1}, {1, 1}})
      check_lstsq<double>(mesh, m, n, 66, Placements<Shard<1>, Shard<0>>{},
                          Placements<Shard<0>, Replicate>{});
    for (const auto& [m, n] : {std::array<index_t, 2>{9, 20}, {20, 9}}) {
      check_lstsq<float>(mesh, m, n, 3, Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{},
                         Placements<Shard<0>, Shard<0>>{});
      check_lstsq<std::complex<float>>(mesh, m, n, 1, Placements<BlockCyclic<0, 2>, Replicate>{},
                                       Placements<Shard<1>, Shard<0>>{});
      check_lstsq<std::complex<double>>(mesh, m, n, 0, Placements<Shard<0>, Balanced<0>>{},
                                        Placements<Shard<1>, Shard<0>>{});
    }
    const auto nothing = distribute_tensor(some<double>(0, 3), mesh, Shard<0>{}, Shard<1>{});
    const auto x = scalapack::lstsq(nothing, nothing).full_tensor();
    CHECK(x.shape() == std::array<index_t, 2>{3, 3});
    CHECK(difference(x, product(some<double>(3, 0), some<double>(0, 3))) == 0);
  });
}

TEST_CASE("right-hand sides of ScaLAPACK may be vectors, and on another mesh of the same ranks") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size(), 1});
    const auto other = init_device_mesh<dp, tp>(world, {world.size(), 1});
    const auto any = some<double>(70, 70);
    for (index_t i = 0; i < 70; ++i) any(i, i) += 50;
    const auto a = distribute_tensor(any, mesh, Shard<0>{}, Replicate{});
    const auto b = some<double>(70, 2);
    const auto column = distribute_tensor(first_column(b), other, Shard<0>{}, Replicate{});
    const auto expected = first_column(eliminated(any, b).first);
    const auto differs = [&](const auto& x) {
      const auto whole = x.full_tensor();
      double most = whole.shape() == expected.shape() ? 0 : 1;
      for (index_t i = 0; i < 70; ++i) most = std::max(most, std::abs(whole(i) - expected(i)));
      return !(most < 1e-10);
    };
    CHECK(!differs(scalapack::solve(a, column)));
    CHECK(!differs(scalapack::lstsq(a, column)));
    const auto l = scalapack::cholesky(
        distribute_tensor(product(any, any, true), mesh, Shard<0>{}, Replicate{}));
    const auto y = scalapack::triangular_solve(l, column).full_tensor();
    const auto factor = l.full_tensor();
    for (index_t i = 0; i < 70; ++i) {
      double sum = 0;
      for (index_t j = 0; j <= i; ++j) sum += factor(i, j) * y(j);
      CHECK(std::abs(sum - b(i, 0)) < 1e-10);
    }
    if (world.size() == 1) return;
    const auto turned = init_device_mesh<dp, tp>(world, {1, world.size()});
    const auto elsewhere = distribute_tensor(b, turned, Shard<0>{}, Replicate{});
    CHECK(error_text([&] { scalapack::solve(a, elsewhere); }) ==
          "scalapack::solve: the operands are on different meshes");
  });
}

TEST_CASE("inverses and determinants by ScaLAPACK, from any placement, by loops") {
  between_processes({1, 2, 3, 4}, [](World& world) {
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
    const auto a = distribute_tensor(some<double>(5, 5), mesh, Shard<0>{});
    CHECK(error_text([&] { scalapack::cholesky(a); }) ==
          "scalapack::cholesky: the matrix is not positive definite: so says its leading minor of "
          "order 1");
    const Tensor<double, 2> ones({5, 5});
    std::fill_n(ones.data(), 25, 1.);
    const auto singular = distribute_tensor(ones, mesh, Shard<0>{});
    CHECK(error_text([&] { scalapack::solve(singular, a); }) ==
          "scalapack::solve: the matrix is singular: its pivot 2 is 0");
    CHECK(error_text([&] { scalapack::inv(singular); }) ==
          "scalapack::inv: the matrix is singular: its pivot 2 is 0");
    CHECK(scalapack::det(singular).to_local().item() == 0);
    const auto parts = scalapack::slogdet(singular);
    CHECK(std::get<0>(parts).to_local().item() == 0);
    CHECK(std::get<1>(parts).to_local().item() == -std::numeric_limits<double>::infinity());
    const auto zeros =
        distribute_tensor(product(some<double>(70, 0), some<double>(0, 70)), mesh, Shard<0>{});
    CHECK(error_text([&] { scalapack::lstsq(zeros, zeros); }) ==
          "scalapack::lstsq: the matrix does not have full rank: diagonal element 1 of its "
          "triangular factor is 0");
    const Tensor<double, 2> gap = some<double>(70, 70);
    for (index_t i = 0; i < 70; ++i) gap(i, i) += 1;
    gap(68, 68) = gap(69, 69) = 0;
    CHECK(error_text([&] {
            scalapack::triangular_solve(distribute_tensor(gap, mesh, Shard<0>{}), zeros);
          }) ==
          "scalapack::triangular_solve: the matrix is singular: its diagonal element 69 is 0");
    for (index_t i = 0; i < 70; ++i) gap(65, i) = 0;
    CHECK(error_text([&] { scalapack::lstsq(distribute_tensor(gap, mesh, Shard<1>{}), zeros); }) ==
          "scalapack::lstsq: the matrix does not have full rank: diagonal element 66 of its "
          "triangular factor is 0");
    const auto tall = distribute_tensor(some<double>(6, 5), mesh, Shard<0>{});
    CHECK(error_text([&] { scalapack::inv(tall); }) == "scalapack::inv: the matrix is not square");
    CHECK(error_text([&] { scalapack::cholesky(tall); }) ==
          "scalapack::cholesky: the matrix is not square");
    CHECK(error_text([&] { scalapack::solve(a, tall); }) ==
          "scalapack::solve: the matrix has 5 rows, the right-hand sides 6");
    CHECK(error_text([&] { scalapack::lstsq(tall, a); }) ==
          "scalapack::lstsq: the matrix has 6 rows, the right-hand sides 5");
    CHECK(error_text([&] { scalapack::triangular_solve(tall, a); }) ==
          "scalapack::triangular_solve: the matrix is not square");
  });
}

}  // namespace large_matrices
