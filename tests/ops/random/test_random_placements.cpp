// Draws on any mesh and under all placements equal those of one rank: uniform and normal numbers,
// dropout and permutations. No mesh divides the shapes evenly.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/permutation.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/ops/random/dropout.hpp>

#include "each_placements.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

namespace {

constexpr RandomState random_start{91, 5};

/// The draws of one rank, one array after the other.
struct DrawnAlone {
  RandomState state = random_start;
  Tensor<double, 2> uniform = rand<double>({5, 7}, state);
  Tensor<double, 2> normal = randn<double>({5, 7}, state);
  Tensor<double, 2> dropped = dropped_of(normal, state);
  Tensor<index_t, 1> order = permutation(37, state);

  /// Keeps every element with probability 3/4, decided by the uniform numbers of that state.
  static Tensor<double, 2> dropped_of(const Tensor<double, 2>& x, RandomState& state) {
    const auto u = rand<double>({5, 7}, state);
    const Tensor<double, 2> y({5, 7});
    for (index_t i = 0; i < x.size(); ++i)
      y.data()[i] = u.data()[i] < 0.25 ? 0 : x.data()[i] * (1 / 0.75);
    return y;
  }
};

template <class X, class T, int Rank>
bool is_drawn(const X& found, const Tensor<T, Rank>& expected) {
  const auto whole = found.full_tensor().clone();
  return whole.shape() == expected.shape() &&
         std::equal(whole.data(), whole.data() + whole.size(), expected.data());
}

/// Draws on a mesh under all placements of its axes.
template <int Axes, class Mesh>
void check_drawn(World& world, const Mesh& mesh) {
  const DrawnAlone expected;
  each_placements<Axes, Replicate, Shard<0>, Shard<1>>([&]<class... P>(Placements<P...>) {
    set_random_state(world, random_start);
    const auto uniform = rand<double>({5, 7}, mesh, P{}...);
    const auto normal = randn<double>({5, 7}, mesh, P{}...);
    const auto dropped = dropout(normal, 0.25);
    CHECK(is_drawn(uniform, expected.uniform));
    CHECK(is_drawn(normal, expected.normal));
    CHECK(is_drawn(dropped, expected.dropped));
    CHECK(random_state(world).offset == random_start.offset + 3);  // one increment per draw
  });
  each_placements<Axes, Replicate, Shard<0>>([&]<class... P>(Placements<P...>) {
    set_random_state(world, {random_start.seed, random_start.offset + 3});
    CHECK(is_drawn(permutation(37, mesh, P{}...), expected.order));
    CHECK(random_state(world) == expected.state);
  });
}

}  // namespace

TEST_CASE("draws under any placements on two axes are those of one rank") {
  on_ranks({1, 4, 6}, [](World& world) {
    const int n = world.size();
    check_drawn<2>(world, init_device_mesh<dp, tp>(world, {1, n}));
    if (n > 1) check_drawn<2>(world, init_device_mesh<dp, tp>(world, {2, n / 2}));
  });
}

TEST_CASE("draws under any placements on three axes are those of one rank") {
  on_ranks({8}, [](World& world) {
    check_drawn<3>(world, init_device_mesh<dp, tp, pp>(world, {2, 2, 2}));
  });
}
