// Programs that are made to fit into a limit of memory.
#include <array>
#include <cstddef>
#include <string>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd/passes/fit_memory.hpp>

#include "errors.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// Layers whose activations the gradients read again.
struct Activations {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto weight = requires_grad(w);
    auto y = matmul(x, weight);
    for (int i = 0; i < 4; ++i) y = matmul(mul(exp(mul(y, 0.25f)), sub(y, 0.5f)), weight);
    backward(sum(mul(y, y)));
    return grad(weight);
  }
};

spmd::Graph activations_graph() {
  return spmd::trace(Activations{}, spmd::arg<float>("x", {64, 32}),
                     spmd::arg<float>("w", {32, 32}));
}
constexpr std::array activations_schemas{spmd::schema(Shard<0>{}), spmd::schema(Replicate{})};

}  // namespace

TEST_CASE("a program that has to fit into less memory computes values again, with the same bits") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto x = irregular<float, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{64, 32}, 1);
    const auto w = irregular<float, Placements<Replicate>>(mesh, std::array<index_t, 2>{32, 32}, 2);
    const spmd::Program whole =
        spmd::expand(activations_graph(), activations_schemas, {.mesh = mesh.extents()});
    REQUIRE(!whole.fault);
    const index_t peak = spmd::value_bytes(whole, mesh.extents()), limit = peak * 5 / 6;
    const spmd::Program small = spmd::fit_memory(whole, mesh.extents(), limit);
    INFO(to_string(small, mesh));
    CHECK(spmd::value_bytes(small, mesh.extents()) <= limit);
    CHECK(communications(small, mesh.extents()) == communications(whole, mesh.extents()));
    CHECK(same(spmd::fit_memory(whole, mesh.extents(), peak), whole));
    spmd::Runner kept(whole, mesh), again(small, mesh);
    if (world.rank() == 0) CHECK(again.peak_bytes() <= limit);
    using Y = std::remove_const_t<decltype(w)>;
    const auto [expected] = kept.template run<Y>(x, w);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto [y] = again.template run<Y>(x, w);
      CHECK(same_bits(y.to_local(), expected.to_local()));
    }
  });
}

TEST_CASE("a limit that a program cannot keep is an error that states both numbers") {
  const spmd::Program program = spmd::expand(activations_graph(), activations_schemas);
  const std::array<index_t, 1> mesh{2};
  const std::string text =
      error_of([&] { static_cast<void>(spmd::fit_memory(program, mesh, 1000)); });
  CHECK(contains(text, "spmd::fit_memory"));
  CHECK(contains(text, "the limit is 1000"));
}
