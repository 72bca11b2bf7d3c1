// Exact products compared with sums of 128-bit integers; networks of them, whose losses and
// gradients have the same bits on every mesh.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/products/exact_products.hpp>

#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

/// Floats of up to 24 digits with widely different exponents, so that their sums round.
std::int64_t whole_number(index_t i, int seed) {
  const std::uint64_t mixed =
      (std::uint64_t(i) + 1) * 0x9e3779b97f4a7c15u * std::uint64_t(2 * seed + 1);
  const auto digits = std::int64_t(mixed >> 40);  // below 2^24
  return ((mixed & 1) != 0 ? -digits : digits) * (std::int64_t(1) << (mixed >> 8 & 15u));
}
template <std::size_t Rank>
Tensor<float, int(Rank)> whole_numbers(const std::array<index_t, Rank>& extents, int seed) {
  const Tensor<float, int(Rank)> x(extents);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = float(whole_number(i, seed));
  return x;
}

template <class X>
bool same_bits(const X& a, const X& b) {
  const auto x = a.clone(), y = b.clone();
  return x.shape() == y.shape() &&
         std::memcmp(x.data(), y.data(), std::size_t(x.size()) * sizeof(*x.data())) == 0;
}

/// The loss of a network of two layers, and its gradients.
struct Found {
  Tensor<float, 0> loss{std::array<index_t, 0>{}};
  Tensor<float, 2> up{}, down{};
  Tensor<float, 1> up_bias{}, down_bias{};
};

struct Network {
  static constexpr index_t rows = 21, inputs = 13, hidden = 10, outputs = 5;

  static Tensor<float, 2> waves(index_t m, index_t n, double by) {
    const Tensor<float, 2> x({m, n});
    for (index_t i = 0; i < x.size(); ++i) x.data()[i] = float(std::sin(double(i) * by + by) / 3);
    return x;
  }
  Tensor<float, 2> x = waves(rows, inputs, 1.1), up = waves(hidden, inputs, 0.7),
                   down = waves(outputs, hidden, 1.9);
  Tensor<float, 1> up_bias = waves(1, hidden, 0.3).select(0, 0).clone(),
                   down_bias = waves(1, outputs, 0.4).select(0, 0).clone();
  Tensor<index_t, 1> classes{std::array<index_t, 1>{rows}};

  Network() {
    for (index_t i = 0; i < rows; ++i) classes(i) = i * 7 % outputs;
  }

  static auto loss(const auto& x, const auto& u, const auto& ub, const auto& d, const auto& db,
                   const auto& classes) {
    return cross_entropy<exact>(linear<exact>(relu(linear<exact>(x, u, ub)), d, db), classes);
  }

  Found local() const {
    const auto u = requires_grad(up), d = requires_grad(down);
    const auto ub = requires_grad(up_bias), db = requires_grad(down_bias);
    const auto found = loss(x, u, ub, d, db, classes);
    backward(found);
    return {found.value(), grad(u), grad(d), grad(ub), grad(db)};
  }
  /// Rows are sharded over dp, hidden features over tp.
  Found placed(const auto& mesh) const {
    const auto on = [&](const auto& a, auto... p) { return distribute_tensor(a, mesh, p...); };
    const auto u = requires_grad(on(up, Replicate{}, Shard<0>{}));
    const auto ub = requires_grad(on(up_bias, Replicate{}, Shard<0>{}));
    const auto d = requires_grad(on(down, Replicate{}, Shard<1>{}));
    const auto db = requires_grad(on(down_bias, Replicate{}, Replicate{}));
    const auto found =
        loss(on(x, Shard<0>{}, Replicate{}), u, ub, d, db, on(classes, Shard<0>{}, Replicate{}));
    backward(found);
    return {found.value().full_tensor(), grad(u).full_tensor(), grad(d).full_tensor(),
            grad(ub).full_tensor(), grad(db).full_tensor()};
  }
};

}  // namespace

TEST_CASE("matmul<exact> is the float nearest to the true product, wherever k is sharded") {
  constexpr index_t m = 6, k = 70, n = 5;
  const auto x = whole_numbers<2>({m, k}, 1), w = whole_numbers<2>({k, n}, 2);
  Tensor<float, 2> expected({m, n});
  index_t rounds = 0;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      __extension__ __int128 sum = 0;
      for (index_t p = 0; p < k; ++p)
        sum += __extension__ __int128(std::int64_t(x(i, p))) * std::int64_t(w(p, j));
      expected(i, j) = float(sum);  // to nearest, ties to even
      rounds += __extension__ __int128(expected(i, j)) != sum;
    }
  CHECK(rounds > m * n / 2);
  CHECK(same_bits(matmul<exact>(x, w), expected));
  CHECK(same_bits(matmul<exact>(x.transpose(0, 1).clone().transpose(0, 1), w), expected));
  on_ranks({1, 2, 3, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto check = [&](auto of_x, auto of_w) {
      const auto y =
          matmul<exact>(distribute_tensor(x, mesh, of_x), distribute_tensor(w, mesh, of_w));
      static_assert(!decltype(y)::layout.has_partial());
      CHECK(same_bits(y.full_tensor(), expected));
    };
    check(Shard<1>{}, Shard<0>{});
    check(Shard<0>{}, Replicate{});
    check(Replicate{}, Shard<1>{});
    check(Shard<1>{}, Replicate{});
  });
}

TEST_CASE("a network of exact products has one loss and one gradient on all meshes, bit by bit") {
  const Network network;
  const Found expected = network.local();
  CHECK(expected.loss.item() > 0.5f);
  on_ranks({1, 2, 3, 4}, [&](World& world) {
    const auto check = [&](index_t rows, index_t columns) {
      const Found found = network.placed(init_device_mesh<dp, tp>(world, {rows, columns}));
      CHECK(same_bits(found.loss, expected.loss));
      CHECK(same_bits(found.up, expected.up));
      CHECK(same_bits(found.down, expected.down));
      CHECK(same_bits(found.up_bias, expected.up_bias));
      CHECK(same_bits(found.down_bias, expected.down_bias));
    };
    check(world.size(), 1);
    check(1, world.size());
    if (world.size() == 4) check(2, 2);
  });
}
