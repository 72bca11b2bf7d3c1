// Factors and least squares of one matrix whose rows are cut: values by loops, what is exchanged.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <string>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/linear_algebra/least_squares.hpp>
#include <cleave/ops/linear_algebra/qr.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::error_of;
using namespace cleave::axes;

namespace cut_rows {
namespace {

template <class T>
T conjugate(const T& x) {
  if constexpr (is_complex<T>) return std::conj(x);
  else return x;
}

template <class T>
Tensor<T, 2> some(index_t rows, index_t columns, index_t seed = 0) {
  const Tensor<T, 2> x({rows, columns});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) {
      const double value = double((i * 17 + j * 29 + i * i * (j + 1) + seed * 7) % 23) / 23 - 0.4;
      if constexpr (is_complex<T>) x(i, j) = T(value, double((i + 2 * j) % 5) / 9);
      else x(i, j) = T(value);
    }
  return x;
}

/// Orthonormal columns by projection, twice, and r = q^H x.
template <class T>
std::tuple<Tensor<T, 2>, Tensor<T, 2>> projected(const Tensor<T, 2>& x) {
  const index_t m = x.extent(0), n = x.extent(1), k = std::min(m, n);
  const Tensor<T, 2> q({m, k}), r({k, n});
  const auto dot = [&](index_t i, const auto& other) {
    T sum = 0;
    for (index_t row = 0; row < m; ++row) sum += conjugate(q(row, i)) * other(row);
    return sum;
  };
  for (index_t j = 0; j < k; ++j) {
    for (index_t i = 0; i < m; ++i) q(i, j) = x(i, j);
    for (index_t before = 0; before < 2 * j; ++before) {
      const T along = dot(before % j, [&](index_t i) { return q(i, j); });
      for (index_t i = 0; i < m; ++i) q(i, j) -= along * q(i, before % j);
    }
    const double size = std::sqrt(std::real(dot(j, [&](index_t i) { return q(i, j); })));
    for (index_t i = 0; i < m; ++i) q(i, j) /= size;
  }
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < n; ++j)
      r(i, j) = j < i ? T(0) : dot(i, [&](index_t row) { return x(row, j); });
  return {q, r};
}

template <class T>
double difference(const Tensor<T, 2>& x, const Tensor<T, 2>& y) {
  if (x.shape() != y.shape()) return 1;
  double error = 0;
  for (index_t i = 0; i < x.extent(0); ++i)
    for (index_t j = 0; j < x.extent(1); ++j) error = std::max(error, std::abs(x(i, j) - y(i, j)));
  return std::isnan(error) ? 1 : error;
}

/// @param ranks  among which the rows are cut
template <class T, class Mesh, class P>
void check(World& world, const Mesh& mesh, P placements, index_t ranks) {
  CAPTURE(to_string(placements));
  for (const auto& extents :
       {std::array<index_t, 2>{19, 3}, {9, 4}, {3, 3}, {2, 3}, {1, 1}, {0, 2}, {5, 0}}) {
    const index_t m = extents[0], n = extents[1];
    CAPTURE(m);
    CAPTURE(n);
    const Tensor<T, 2> whole = some<T>(m, n);
    const auto a = distribute_tensor(whole, mesh, placements);
    const auto factors = [&] {
      const CommTrace trace(world);
      const auto both = qr(a);
      CHECK(trace.received_bytes() == (ranks - 1) * n * n * index_t(sizeof(T)));
      CHECK(trace.to_string().find("redistribute") == std::string::npos);
      CHECK((ranks == 1 || n == 0 || trace.to_string().find("  qr\n") != std::string::npos));
      return both;
    }();
    const auto& [q, r] = factors;
    static_assert(
        std::is_same_v<std::remove_cvref_t<decltype(q)>, std::remove_cvref_t<decltype(a)>>);
    static_assert(!std::remove_cvref_t<decltype(r)>::layout.sharding_axes(0));
    const auto [expected_q, expected_r] = projected(whole);
    CHECK(difference(q.full_tensor(), expected_q) < 1e-11);
    CHECK(difference(r.to_local(), expected_r) < 1e-11);
  }
}

}  // namespace

TEST_CASE("rows stay where they are however they are cut; n by n triangles travel") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const index_t ranks = world.size();
    const auto line = init_device_mesh<dp>(world, {world.size()});
    check<double>(world, line, Placements<Shard<0>>{}, ranks);
    check<std::complex<double>>(world, line, Placements<Balanced<0>>{}, ranks);
    check<double>(world, line, Placements<BlockCyclic<0, 2>>{}, ranks);
    if (ranks % 2 != 0) return;
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    check<double>(world, mesh, Placements<Shard<0>, Replicate>{}, 2);
    check<std::complex<double>>(world, mesh, Placements<Shard<0>, Shard<0>>{}, ranks);
  });
}

TEST_CASE("a matrix without full rank has orthonormal columns, too") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const Tensor<double, 2> whole({5, 3});
    for (index_t i = 0; i < 5; ++i) whole(i, 0) = whole(i, 1) = 1, whole(i, 2) = double(i);
    const auto [q, r] = qr(distribute_tensor(whole, mesh, Shard<0>{}));
    const auto columns = q.full_tensor();
    double skew = 0, error = 0;
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 3; ++j) {
        double sum = i == j ? -1 : 0;
        for (index_t k = 0; k < 5; ++k) sum += columns(k, i) * columns(k, j);
        skew = std::max(skew, std::abs(sum));
      }
    for (index_t i = 0; i < 5; ++i)
      for (index_t j = 0; j < 3; ++j) {
        double sum = -whole(i, j);
        for (index_t k = 0; k < 3; ++k) sum += columns(i, k) * r.to_local()(k, j);
        error = std::max(error, std::abs(sum));
      }
    CHECK(skew < 1e-12);
    CHECK(error < 1e-12);
  });
}

TEST_CASE("gradients of factors of cut rows are slopes, and lie as the rows do") {
  const Tensor<double, 2> at = some<double>(7, 2);
  const auto loss = [](const Tensor<double, 2>& x) {
    const auto [q, r] = projected(x);
    double sum = 0;
    for (index_t i = 0; i < q.size(); ++i) sum += std::pow(q.data()[i], 3);
    for (index_t i = 0; i < r.size(); ++i) sum += r.data()[i] * r.data()[i];
    return sum;
  };
  const Tensor<double, 2> slopes({7, 2});
  for (index_t i = 0; i < at.size(); ++i) {
    const Tensor<double, 2> more = at.clone(), less = at.clone();
    more.data()[i] += 1e-5, less.data()[i] -= 1e-5;
    slopes.data()[i] = (loss(more) - loss(less)) / 2e-5;
  }
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(at, mesh, Shard<0>{}));
    const auto [q, r] = qr(x);
    backward(add(sum(mul(q, square(q))), sum(square(r))));
    const auto found = grad(x);
    static_assert(decltype(found)::layout[0] == Placement::shard(0));
    CHECK(difference(found.full_tensor(), slopes) < 1e-7);
  });
}

TEST_CASE("least squares of cut rows: a triangle per rank and a sum travel, gradients are slopes") {
  const index_t m = 11, n = 3, columns = 2;
  const Tensor<double, 2> whole = some<double>(m, n), sides = some<double>(m, columns, 3);
  // r x = q^H b, by loops
  const auto solve = [&](const Tensor<double, 2>& a) {
    const auto [q, r] = projected(a);
    const Tensor<double, 2> x({n, columns});
    for (index_t j = 0; j < columns; ++j)
      for (index_t i = n - 1; i >= 0; --i) {
        double sum = 0;
        for (index_t k = 0; k < m; ++k) sum += q(k, i) * sides(k, j);
        for (index_t k = i + 1; k < n; ++k) sum -= r(i, k) * x(k, j);
        x(i, j) = sum / r(i, i);
      }
    return x;
  };
  const auto loss = [&](const Tensor<double, 2>& a) {
    const auto x = solve(a);
    double sum = 0;
    for (index_t i = 0; i < x.size(); ++i) sum += x.data()[i] * x.data()[i];
    return sum;
  };
  const Tensor<double, 2> slopes({m, n});
  for (index_t i = 0; i < whole.size(); ++i) {
    const Tensor<double, 2> more = whole.clone(), less = whole.clone();
    more.data()[i] += 1e-5, less.data()[i] -= 1e-5;
    slopes.data()[i] = (loss(more) - loss(less)) / 2e-5;
  }
  on_ranks({1, 2, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto check = [&](auto placement) {
      const auto a = distribute_tensor(whole, mesh, placement);
      const auto b = distribute_tensor(sides, mesh, placement);
      {
        const CommTrace trace(world);
        const auto x = lstsq(a, b);
        static_assert(decltype(x)::layout[0] == Placement::replicate());
        CHECK(difference(x.to_local(), solve(whole)) < 1e-11);
        const index_t ranks = world.size(), most = 8 * (ranks - 1) * (n * n + 2 * n * columns);
        CHECK(trace.received_bytes() >= 8 * (ranks - 1) * n * n);
        CHECK(trace.received_bytes() <= most);
      }
      const auto tracked = requires_grad(a);
      backward(sum(square(lstsq(tracked, b))));
      CHECK(difference(grad(tracked).full_tensor(), slopes) < 1e-6);
    };
    check(Shard<0>{});
    check(BlockCyclic<0, 2>{});
    const auto wide = distribute_tensor(Tensor<double, 2>({1, 2}, {3, 4}), mesh, Shard<0>{});
    const auto side = distribute_tensor(Tensor<double, 1>({1}, {50}), mesh, Shard<0>{});
    const auto least = lstsq(wide, side).full_tensor();
    CHECK(std::abs(least(0) - 6) + std::abs(least(1) - 8) < 1e-12);
    const std::string misfit =
        error_of([&] { lstsq(wide, distribute_tensor(sides, mesh, Shard<0>{})); });
    CHECK(misfit.find("lstsq") == 0);
    const Tensor<double, 2> zeros({4, 2});
    std::fill_n(zeros.data(), 8, 0.);
    const auto none = distribute_tensor(zeros, mesh, Shard<0>{});
    const std::string error = error_of([&] { lstsq(none, none); });
    CHECK(error.substr(0, error.find(" [shapes")) ==
          "lstsq: the matrix does not have full rank: diagonal element 1 of its triangular factor "
          "is 0");
  });
}

}  // namespace cut_rows
