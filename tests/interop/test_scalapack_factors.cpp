// Factors of one matrix by ScaLAPACK, from any placement: their products, by loops.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/interop/scalapack_factors.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "large_matrices.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace large_matrices {
namespace {

template <class T, class Mesh, class P>
void check_qr(const Mesh& mesh, const Tensor<T, 2>& any, P placements) {
  const index_t m = any.extent(0), n = any.extent(1), k = std::min(m, n);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const auto a = distribute_tensor(any, mesh, placements);
  const auto factors = scalapack::qr(a);
  const Tensor<T, 2> q = std::get<0>(factors).full_tensor(), r = std::get<1>(factors).full_tensor();
  CHECK(q.shape() == std::array<index_t, 2>{m, k});
  CHECK(r.shape() == std::array<index_t, 2>{k, n});
  CHECK(difference(product(q, r), any) < tolerance<T>);
  CHECK(difference(product(adjoint(q), q), identity<T>(k)) < tolerance<T>);
  bool has_form = true;
  for (index_t i = 0; i < k; ++i) {
    has_form = has_form && std::real(r(i, i)) >= 0 && std::abs(std::imag(r(i, i))) < tolerance<T>;
    for (index_t j = 0; j < i; ++j) has_form = has_form && r(i, j) == T(0);
  }
  CHECK(has_form);
  CHECK(difference(a.full_tensor(), any) == 0);
}

template <class T, class Mesh, class P>
void check_lu(const Mesh& mesh, const Tensor<T, 2>& any, P placements) {
  const index_t m = any.extent(0), n = any.extent(1), k = std::min(m, n);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const auto a = distribute_tensor(any, mesh, placements);
  const auto factors = scalapack::lu(a);
  const Tensor<T, 2> p = std::get<0>(factors).full_tensor(), l = std::get<1>(factors).full_tensor(),
                     u = std::get<2>(factors).full_tensor();
  CHECK(p.shape() == std::array<index_t, 2>{m, m});
  CHECK(l.shape() == std::array<index_t, 2>{m, k});
  CHECK(u.shape() == std::array<index_t, 2>{k, n});
  CHECK(difference(product(p, product(l, u)), any) < tolerance<T>);
  CHECK(difference(product(p, p, true), identity<T>(m)) == 0);
  CHECK(is_upper_triangle(u));
  CHECK(is_upper_triangle(adjoint(l)));
  bool has_form = true;
  for (index_t j = 0; j < k; ++j) {
    has_form = has_form && l(j, j) == T(1);
    for (index_t i = j; i < m; ++i)  // the pivot has the largest |re| + |im|
      has_form = has_form && std::abs(l(i, j)) < 1.4143;
  }
  for (index_t i = 0; i < m * m; ++i)
    has_form = has_form && (p.data()[i] == T(0) || p.data()[i] == T(1));
  CHECK(has_form);
  CHECK(difference(a.full_tensor(), any) == 0);
}

template <class T, class Mesh, class P>
void check_svd(const Mesh& mesh, const Tensor<T, 2>& any, P placements) {
  const index_t m = any.extent(0), n = any.extent(1), k = std::min(m, n);
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const auto a = distribute_tensor(any, mesh, placements);
  const auto factors = scalapack::svd(a);
  const Tensor<T, 2> u = std::get<0>(factors).full_tensor(),
                     vh = std::get<2>(factors).full_tensor();
  const auto s = std::get<1>(factors).to_local();
  CHECK(u.shape() == std::array<index_t, 2>{m, k});
  CHECK(vh.shape() == std::array<index_t, 2>{k, n});
  CHECK(s.extent(0) == k);
  const Tensor<T, 2> scaled({m, k});
  bool descends = true;
  for (index_t j = 0; j < k; ++j) {
    descends = descends && s(j) >= 0 && (j == 0 || s(j) <= s(j - 1));
    for (index_t i = 0; i < m; ++i) scaled(i, j) = u(i, j) * s(j);
  }
  CHECK(descends);
  CHECK(difference(product(scaled, vh), any) < tolerance<T>);
  CHECK(difference(product(adjoint(u), u), identity<T>(k)) < tolerance<T>);
  CHECK(difference(product(vh, vh, true), identity<T>(k)) < tolerance<T>);
  CHECK(difference(a.full_tensor(), any) == 0);
}

template <class T, class Mesh, class P>
void check_eigh(const Mesh& mesh, const Tensor<T, 2>& any, P placements) {
  const index_t n = any.extent(0);
  CAPTURE(n);
  CAPTURE(to_string(placements));
  const auto a = distribute_tensor(any, mesh, placements);
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
  CHECK(difference(product(adjoint(vectors), vectors), identity<T>(n)) < tolerance<T>);
  CHECK(difference(product(turned, vectors, true), whole) < tolerance<T>);
  CHECK(difference(a.full_tensor(), any) == 0);  // not overwritten
}

/// Calls check(mesh, matrix, placements) for matrices of all shapes and types, placed in many ways.
template <class F>
void each_matrix(World& world, const F& check) {
  const auto line = init_device_mesh<tp>(world, {world.size()});
  check(line, some<double>(90, 7), Placements<Shard<0>>{});
  check(line, some<std::complex<double>>(5, 9), Placements<BlockCyclic<1, 2>>{});
  check(line, some<double>(4, 3), Placements<Replicate>{});
  check(line, some<std::complex<float>>(2, 2), Placements<Shard<1>>{});
  if (world.size() % 2 != 0) return;
  const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
  for (const auto& [m, n] :
       {std::array<index_t, 2>{70, 130}, {130, 70}, {67, 67}, {1, 3}, {0, 2}, {2, 0}, {1, 1}})
    check(mesh, some<double>(m, n), Placements<Shard<1>, Shard<0>>{});
  check(mesh, some<float>(20, 11), Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{});
  check(mesh, some<std::complex<float>>(12, 15), Placements<BlockCyclic<0, 2>, Replicate>{});
  check(mesh, some<std::complex<double>>(70, 66), Placements<Shard<0>, Balanced<0>>{});
  const Tensor<double, 2> ones = some<double>(9, 7);  // of rank 1
  std::fill_n(ones.data(), 63, 1.);
  check(mesh, ones, Placements<BlockCyclic<0, 2>, BlockCyclic<1, 2>>{});
}

}  // namespace

TEST_CASE("QR factors by ScaLAPACK, from any placement, multiplied by loops") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    each_matrix(world, [](const auto& mesh, const auto& any, auto p) { check_qr(mesh, any, p); });
  });
}

TEST_CASE("LU factors by ScaLAPACK, from any placement, multiplied by loops") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    each_matrix(world, [](const auto& mesh, const auto& any, auto p) { check_lu(mesh, any, p); });
  });
}

TEST_CASE("singular values and vectors by ScaLAPACK, from any placement, multiplied by loops") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    each_matrix(world, [](const auto& mesh, const auto& any, auto p) { check_svd(mesh, any, p); });
    const index_t rows = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, world.size() / rows});
    for (const float scale : {1e-25f, 1e25f}) {
      const Tensor<float, 2> any = some<float>(20, 11);
      for (index_t i = 0; i < 220; ++i) any.data()[i] *= scale;
      check_svd(mesh, any, Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{});
    }
  });
}

TEST_CASE("eigenvalues and vectors by ScaLAPACK, from any placement, multiplied by loops") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_eigh(line, some<double>(70, 70), Placements<Shard<0>>{});
    check_eigh(line, some<std::complex<double>>(5, 5), Placements<BlockCyclic<1, 2>>{});
    check_eigh(line, some<double>(4, 4), Placements<Replicate>{});
    if (world.size() % 2 != 0) return;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    for (const index_t n : {0, 1, 67, 130})
      check_eigh(mesh, some<double>(n, n), Placements<Shard<0>, Replicate>{});
    const auto scaled = []<class T>(Tensor<T, 2> any, T by) {
      for (index_t i = 0; i < any.size(); ++i) any.data()[i] *= by;
      return any;
    };
    for (const float scale : {1.f, 1e-25f, 1e25f})
      check_eigh(mesh, scaled(some<float>(20, 20), scale),
                 Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{});
    for (const double scale : {1., 1e-300, 1e300})
      check_eigh(mesh, scaled(some<double>(20, 20), scale),
                 Placements<BlockCyclic<1, 2>, BlockCyclic<0, 2>>{});
    check_eigh(mesh, some<std::complex<float>>(12, 12), Placements<BlockCyclic<0, 2>, Replicate>{});
    check_eigh(mesh, some<std::complex<float>>(23, 23),
               Placements<BlockCyclic<1, 4>, BlockCyclic<0, 4>>{});
    check_eigh(mesh, some<std::complex<double>>(33, 33),
               Placements<BlockCyclic<0, 3>, BlockCyclic<1, 3>>{});
    check_eigh(mesh, some<double>(19, 19), Placements<BlockCyclic<1, 2>, BlockCyclic<1, 2>>{});
    check_eigh(mesh, some<std::complex<double>>(70, 70), Placements<Shard<1>, Balanced<0>>{});
  });
}

TEST_CASE("a trace names the library that computes eigenvalues") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto traced = [&](index_t n) {
      const auto a = distribute_tensor(some<double>(n, n), mesh, BlockCyclic<0, 4>{});
      const CommTrace trace(world);
      (void)scalapack::eigh(a);
      return trace.to_string();
    };
    const std::string elpa = "scalapack::eigh by ELPA", own = "scalapack::eigh by p?syevd";
    const std::string large = traced(4 * world.size() - 3), small = traced(4 * world.size() - 4);
#if CLEAVE_HAS_ELPA
    CHECK(large.find(elpa) != std::string::npos);
    CHECK(large.find(own) == std::string::npos);
#else
    CHECK(large.find(own) != std::string::npos);
    CHECK(large.find(elpa) == std::string::npos);
#endif
    CHECK(small.find(own) != std::string::npos);  // the last rank has no part
    CHECK(small.find(elpa) == std::string::npos);
  });
}

TEST_CASE("factors of matrices with elements that are not finite are an error on every rank") {
  between_processes({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const Tensor<double, 2> ones = some<double>(5, 5);
    ones(4, 0) = std::numeric_limits<double>::infinity();
    const auto infinite = distribute_tensor(ones, mesh, Shard<0>{});
    CHECK(error_text([&] { scalapack::eigh(infinite); }) ==
          "scalapack::eigh: the matrix has an element that is not finite");
    CHECK(error_text([&] { scalapack::svd(infinite); }) ==
          "scalapack::svd: the matrix has an element that is not finite");
  });
}

}  // namespace large_matrices
