// Programs that draw random numbers: new ones in each run, like the function called on DTensors.
#include <array>
#include <string>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/dtensor/random.hpp>
#include <cleave/dtensor/rng_tracker.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/random/dropout.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::error_of;

namespace {

/// Two draws, of which the program needs the second first, and a third that it does not need.
struct Draws {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto a = dropout(x, 0.25);
    const auto b = dropout(w, 0.5);
    const auto c = dropout(x, 0.5);
    static_cast<void>(c);
    return matmul(square(dropout(matmul(a, b), 0.5)), b);
  }
};

constexpr auto draws_graph = spmd::frozen([] {
  return spmd::trace(Draws{}, spmd::arg<double>("x", {5, 3}), spmd::arg<double>("w", {3, 3}));
});
static_assert(draws_graph.draws == 4);
constexpr std::array draws_schemas{spmd::schema(Shard<0>{}, Replicate{}),
                                   spmd::schema(Replicate{}, Shard<1>{})};
constexpr auto draws_program =
    spmd::frozen([] { return spmd::expand(draws_graph, draws_schemas); });

template <class X>
bool same_numbers(const X& a, const X& b) {
  const auto x = a.full_tensor(), y = b.full_tensor();
  for (index_t i = 0; i < x.size(); ++i)
    if (x.data()[i] != y.data()[i]) return false;
  return true;
}

}  // namespace

TEST_CASE("each run of a program draws the numbers of the equivalent calls on DTensors") {
  on_ranks({2, 4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    manual_seed(world, 4);
    const auto x = rand<double>({5, 3}, mesh, Shard<0>{}, Replicate{});
    const auto w = rand<double>({3, 3}, mesh, Replicate{}, Shard<1>{});
    const auto [first] = spmd::run<draws_program>(mesh, x, w);
    const auto [second] = spmd::run<draws_program>(mesh, x, w);
    CHECK(random_state(world) == RandomState{4, 10});
    CHECK(!same_numbers(first, second));
    set_random_state(world, {4, 2});
    const auto eager = Draws{}(x, w);
    CHECK(random_state(world) == RandomState{4, 6});
    CHECK(same_numbers(resolve(eager), first));
    CHECK(same_numbers(resolve(Draws{}(x, w)), second));
  });
}

TEST_CASE("a traced gradient drops what its forward dropped") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto step = [](const auto& x) {
      const auto leaf = requires_grad(x);
      const auto y = dropout(leaf, 0.5);
      backward(sum(y));
      return std::tuple{y.value(), grad(leaf)};
    };
    const auto traced = spmd::trace(step, spmd::arg<double>("x", {40}));
    CHECK(traced.draws == 1);
    const auto x = ones<double>({40}, mesh, Shard<0>{});
    using X = decltype(x + 0.0);
    spmd::Runner runner(spmd::expand(traced, spmd::schemas_of(x)), mesh);
    manual_seed(world, 8);
    for (int run = 0; run < 2; ++run) {
      const auto [y, g] = runner.run<X, X>(x);
      CHECK(same_numbers(y, g));
    }
  });
}

namespace {

/// Dropout of an array that is sharded over tp, with its gradient, and of one that is not.
struct Sharded {
  constexpr auto operator()(const auto& x) const {
    const auto leaf = requires_grad(x);
    const auto y = dropout(square(dropout(leaf, 0.5)), 0.25);
    backward(sum(y));
    return std::tuple{y.value(), grad(leaf)};
  }
};

}  // namespace

TEST_CASE("inside a region of a tensor-parallel tracker a program draws what the calls draw") {
  on_ranks({1, 2, 4, 6}, [](World& world) {
    const index_t wide = world.size() == 1 ? 1 : 2;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / wide, wide});
    const auto x = ones<double>({5, 4}, mesh, Replicate{}, Shard<1>{});
    using X = std::remove_cvref_t<decltype(x)>;
    TensorParallelRNGTracker tracker(mesh, tp{}, 7);
    spmd::Runner runner(
        spmd::expand(spmd::trace(Sharded{}, spmd::arg<double>("x", {5, 4})), spmd::schemas_of(x)),
        mesh);
    for (int run = 0; run < 2; ++run) {
      const RandomState before = tracker.state();
      const auto [y, g] = [&] {
        const auto region = tracker.distribute_region();
        return runner.run<X, X>(x);
      }();
      CHECK(tracker.state().offset == before.offset + 2);
      tracker.set_state(before);
      const auto region = tracker.distribute_region();
      const auto [eager_y, eager_g] = Sharded{}(x);
      CHECK(same_numbers(y, eager_y));
      CHECK(same_numbers(g, eager_g));
    }
  });
}

TEST_CASE(
    "inside such a region a program that draws a replicated array is refused as the call is") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2});
    const auto x = ones<double>({5, 4}, mesh, Shard<0>{}, Replicate{});
    const auto f = [](const auto& a) { return dropout(a, 0.5); };
    spmd::Runner runner(
        spmd::expand(spmd::trace(f, spmd::arg<double>("x", {5, 4})), spmd::schemas_of(x)), mesh);
    TensorParallelRNGTracker tracker(mesh, tp{}, 7);
    const auto region = tracker.distribute_region();
    const std::string eager = error_of([&] { static_cast<void>(f(x)); });
    CHECK(eager.find("the ranks along axis 'tp' may draw different numbers") != eager.npos);
    const std::array inputs{spmd::erased(x)};
    CHECK(error_of([&] { static_cast<void>(runner(inputs)); }) == eager);
  });
}
