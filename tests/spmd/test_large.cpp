// A thousand nodes within the default limits of the compiler.
#include <array>

#include <doctest/doctest.h>

#include <cleave/ops/matmul.hpp>
#include <cleave/ops/pointwise.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/traced.hpp>

using namespace cleave;
using namespace cleave::spmd;

namespace {

/// Layers of five nodes; with tensor parallelism, one all-reduce in each.
struct Deep {
  constexpr auto operator()(const auto& x, const auto& up, const auto& down) const {
    auto y = resolve(x);
    for (int layer = 0; layer < 200; ++layer)
      y = add(y, resolve(matmul(tanh(matmul(y, up)), down)));
    return y;
  }
};

constexpr auto traced_deep = [] {
  return trace(Deep{}, arg<float>("x", {8, 4}), arg<float>("up", {4, 16}),
               arg<float>("down", {16, 4}));
};
constexpr auto deep_graph = frozen(traced_deep);
constexpr std::array deep_schemas{schema(Replicate{}), schema(Shard<1>{}), schema(Shard<0>{})};

static_assert(deep_graph.nodes.size() >= 1000);
static_assert(communications(expand(deep_graph, deep_schemas)) == 200);

}  // namespace

TEST_CASE("a thousand nodes are traced and expanded at run time as by the compiler") {
  const Program program = expand(traced_deep(), deep_schemas);
  CHECK(communications(program) == 200);
  CHECK_FALSE(program.fault);
}
