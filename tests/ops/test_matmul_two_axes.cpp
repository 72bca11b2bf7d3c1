#include <cleave/ops/matmul.hpp>

#include <array>

#include <doctest/doctest.h>

#include "placed.hpp"
#include "products.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("a product is right for all placements of its operands on two axes") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    check_all<double, 2, Replicate, Shard<0>, Shard<1>, Partial<Sum>>(mesh,
                                                                    {{5, 6, 7}, {1, 3, 2}});
  });
}
