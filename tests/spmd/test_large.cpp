// A thousand nodes within the default limits of the compiler.
#include <array>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using namespace cleave::spmd;

namespace {

// clang evaluates a fortieth of what g++ does before it stops (-fconstexpr-steps).
#if defined(__clang__)
constexpr int constant_layers = 10;
#else
constexpr int constant_layers = 200;
#endif

/// Layers of five nodes; with tensor parallelism, one all-reduce in each.
struct Deep {
  int layers;

  constexpr auto operator()(const auto& x, const auto& up, const auto& down) const {
    auto y = resolve(x);
    for (int layer = 0; layer < layers; ++layer)
      y = add(y, resolve(matmul(tanh(matmul(y, up)), down)));
    return y;
  }
};

constexpr Graph traced_deep(int layers) {
  return trace(Deep{layers}, arg<float>("x", {8, 4}), arg<float>("up", {4, 16}),
               arg<float>("down", {16, 4}));
}
constexpr auto deep_graph = frozen([] { return traced_deep(constant_layers); });
constexpr std::array deep_schemas{schema(Replicate{}), schema(Shard<1>{}), schema(Shard<0>{})};

static_assert(deep_graph.nodes.size() == 5 * constant_layers + 1);
static_assert(communications(expand(deep_graph, deep_schemas)) == constant_layers);

}  // namespace

TEST_CASE("a thousand nodes are traced and expanded at run time as by the compiler") {
  CHECK(same(expand(deep_graph, deep_schemas), expand(traced_deep(constant_layers), deep_schemas)));
  const Program program = expand(traced_deep(200), deep_schemas);
  CHECK_FALSE(program.fault);
  CHECK(communications(program) == 200);
}
