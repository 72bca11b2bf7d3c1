#include <array>

#include <doctest/doctest.h>

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
