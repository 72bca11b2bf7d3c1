// Programs of operations that move elements, compared with eager calls, bit by bit.
#include <array>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/pad.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/roll.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/triangle.hpp>
#include <cleave/spmd/check_expands.hpp>

#include "each_placements.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

constexpr auto parts_and_joints = [](const auto& x) {
  const auto [left, right] = split(x, dim<1>{}, {2, 2});
  const auto pair = cat(dim<1>{}, mul(right, 2), left, pad(left, dim<1>{}, 1, 0, 3));
  return std::tuple(pair, tril(pair), select(stack(dim<0>{}, left, right), dim<0>{}, 1),
                    roll(flip(x, dim<0>{}), dim<1>{}, 1));
};
/// Two heads, each with its own product.
constexpr auto heads = [](const auto& x) {
  const auto split_heads = unflatten(x, dim<1>{}, {2, -1});
  return std::tuple(flatten(mul(split_heads, split_heads), dim<1, 2>{}), flatten(x),
                    reshape(x, {-1, 2}));
};

}  // namespace

TEST_CASE("a program of slices, joints and groups gives the results of eager calls") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      const auto x = irregular<double, decltype(p)>(mesh, std::array<index_t, 2>{6, 4}, 1);
      check_like_eager(parts_and_joints, x);
      check_like_eager(heads, x);
    });
  });
}

namespace {

constexpr auto merged = [](const auto& x) {
  return flatten(unflatten(x, dim<1>{}, {4, 2}), dim<1, 2>{});
};
constexpr auto merged_graph =
    spmd::frozen([] { return spmd::trace(merged, spmd::arg<float>("x", {8, 8})); });
constexpr std::array both_axes{spmd::schema(Shard<0>{}, Shard<1>{})};

}  // namespace

TEST_CASE("splitting and merging heads moves nothing, which is known at compile time") {
  static_assert(spmd::communications(spmd::expand(merged_graph, both_axes)) == 0);
  CHECK(spmd::communications(spmd::expand(merged_graph, both_axes)) == 0);
  static_assert(spmd::check_expands<merged_graph, both_axes>());
}
