#include <array>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/products/matmul.hpp>

#include "../placed.hpp"
#include "../products.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// One operand under every placement, the other under the given ones: all 256 pairs would take
/// minutes to compile, and axes are solved independently.
template <class... Other, class Mesh>
void check_against(const Mesh& mesh) {
  each_placements<2, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
    (check_product<double, decltype(p), Other>(mesh, 5, 6, 7), ...);
    (check_product<double, Other, decltype(p)>(mesh, 1, 3, 2), ...);
  });
}

}  // namespace

TEST_CASE("a product is right for all placements of an operand on two axes") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    check_against<Placements<Shard<0>, Shard<1>>, Placements<Partial<Sum>, Shard<0>>>(mesh);
  });
}

TEST_CASE("a product on a grid receives its rows of one operand and its columns of the other") {
  constexpr index_t m = 96, n = 64, k = 32, rows = 8, columns = 4;
  const auto grid_product = [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, columns});
    const auto x = zeros<double>({m, k}, mesh, Shard<0>{}, Shard<1>{});
    const auto w = zeros<double>({k, n}, mesh, Shard<0>{}, Shard<1>{});
    CHECK(matmul<Placements<Shard<0>, Shard<1>>>(x, w).shape() == std::array{m, n});
  };
  const Budget cost = budget(13, int(rows * columns), grid_product);
  const index_t own = m * k / (rows * columns) + k * n / (rows * columns);
  CHECK(cost.received_bytes() == index_t(sizeof(double)) * (m * k / rows + k * n / columns - own));
  CHECK(cost.collectives() == 2);
}

TEST_CASE("a product on a cube of ranks receives a share of each array") {
  constexpr index_t m = 96, n = 64, k = 32, q = 4;
  const Budget cost = budget(1 * q * q + 2 * q + 3, int(q * q * q), [](World& world) {
    const auto mesh = init_device_mesh<dp, pp, tp>(world, {q, q, q});
    const auto x = zeros<double>({m, k}, mesh, Shard<0>{}, Shard<1>{}, Shard<1>{});
    const auto w = zeros<double>({k, n}, mesh, Shard<0>{}, Shard<0>{}, Shard<1>{});
    (void)matmul<Placements<Shard<0>, Shard<0>, Shard<1>>>(x, w);
  });
  // this rank's part of w is not in the rows that it needs
  const index_t own = (m * k + m * n) / (q * q * q), needed = (m * k + k * n + m * n) / (q * q);
  CHECK(cost.received_bytes() == index_t(sizeof(double)) * (needed - own));
  CHECK(cost.collectives() == 3);
}
