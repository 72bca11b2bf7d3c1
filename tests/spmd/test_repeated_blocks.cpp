// Automatic schemas of a training step of many equal blocks: better than data parallelism, the same
// in all blocks, and within limits; and their text.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/losses/mse_loss.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/spmd/find_schemas.hpp>
#include <cleave/spmd/print_schemas.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using namespace cleave::spmd;

namespace {

constexpr std::size_t blocks = 8;

/// A step of residual blocks of two layers, which updates their weights.
const auto blocks_step = [](const auto& x, const auto& target, const auto& ups, const auto& downs) {
  using Weight = decltype(requires_grad(ups[0]));
  std::vector<Weight> up, down;
  auto y = requires_grad(x);
  for (std::size_t i = 0; i < ups.size(); ++i) {
    up.push_back(requires_grad(ups[i]));
    down.push_back(requires_grad(downs[i]));
    y = add(y, matmul(relu(matmul(y, up[i])), down[i]));
  }
  const auto loss = mse_loss(y, target);
  backward(loss);
  for (std::size_t i = 0; i < ups.size(); ++i) {
    add_(ups[i], mul(grad(up[i]), -0.1f));
    add_(downs[i], mul(grad(down[i]), -0.1f));
  }
  return detach(loss);
};

Graph traced_blocks(index_t rows, index_t width, index_t hidden) {
  return trace(blocks_step, arg<float>("x", {rows, width}), arg<float>("target", {rows, width}),
               std::vector(blocks, arg<float>("up", {width, hidden})),
               std::vector(blocks, arg<float>("down", {hidden, width})));
}

Layout placed_on(int inner, int outer) {
  Layout layout = Layout::replicated(2);
  if (inner >= 0) layout[0] = Placement::shard(inner);
  if (outer >= 0) layout[1] = Placement::shard(outer);
  return layout;
}

/// Schemas of x and target, of all `up` and of all `down`.
std::vector<Layout> equal_blocks(const Layout& x, const Layout& up, const Layout& down) {
  std::vector<Layout> schemas{x, x};
  schemas.insert(schemas.end(), blocks, up);
  schemas.insert(schemas.end(), blocks, down);
  return schemas;
}

const Shape blocks_mesh(std::array<index_t, 2>{4, 2});

double us_of(const Graph& graph, const std::vector<Layout>& schemas) {
  return estimated_us(expand(graph, schemas), blocks_mesh);
}

}  // namespace

TEST_CASE("repeated blocks get the same schemas, as good as the best known ones") {
  const Graph graph = traced_blocks(4096, 1024, 4096);
  REQUIRE(graph.nodes.size() > 100);
  const FoundSchemas found = find_schemas(graph, blocks_mesh);
  CHECK(found.fits);
  CHECK_FALSE(found.is_exact);
  for (std::size_t i = 4; i + 2 < 2 + blocks; ++i) {  // apart from the first and last blocks
    CHECK(found.schemas[i] == found.schemas[4]);
    CHECK(found.schemas[i + blocks] == found.schemas[4 + blocks]);
  }
  for (const Layout& x : {placed_on(0, 0), placed_on(0, -1), placed_on(-1, 0), placed_on(-1, -1)})
    for (const int a : {-1, 1})
      for (const int b : {-1, 1}) {
        const auto down = [](int up) { return up < 0 ? -1 : 1 - up; };
        CHECK(found.us <=
              us_of(graph, equal_blocks(x, placed_on(a, b), placed_on(down(a), down(b)))) *
                  (1 + 1e-9));
      }
  CHECK(found.us <
        0.2 * us_of(graph, equal_blocks(placed_on(-1, -1), placed_on(-1, -1), placed_on(-1, -1))));
}

TEST_CASE("schemas never take more time or receive more bytes than those they are compared with") {
  const Graph graph = traced_blocks(256, 64, 64);
  for (const std::vector<Layout>& manual :
       {equal_blocks(placed_on(0, 0), placed_on(-1, -1), placed_on(-1, -1)),
        equal_blocks(placed_on(0, -1), placed_on(-1, 1), placed_on(-1, 0)),
        equal_blocks(placed_on(-1, -1), placed_on(-1, -1), placed_on(-1, -1)),
        equal_blocks(placed_on(0, 0), placed_on(0, 0), placed_on(0, 0))}) {
    const Program program = expand(graph, manual);
    const FoundSchemas found = find_schemas(graph, blocks_mesh, {}, std::array{manual});
    CHECK(found.fits);
    CHECK(found.us <= estimated_us(program, blocks_mesh) * (1 + 1e-9));
    CHECK(found.received <= received_bytes(program, blocks_mesh));
  }
}

TEST_CASE("a limit of memory is met by sharding more, or reported as not met") {
  const Graph graph = traced_blocks(4096, 64, 64);
  const FoundSchemas free = find_schemas(graph, blocks_mesh);
  const index_t most_bytes = peak_bytes(
      expand(graph, equal_blocks(placed_on(0, 0), placed_on(0, 0), placed_on(0, 0))), blocks_mesh);
  REQUIRE(most_bytes < free.peak);
  const FoundSchemas found = find_schemas(graph, blocks_mesh, {.most_bytes = most_bytes});
  CHECK(found.fits);
  CHECK(found.peak <= most_bytes);
  CHECK(found.us >= free.us);
  CHECK_FALSE(find_schemas(graph, blocks_mesh, {.most_bytes = 1000}).fits);
}

TEST_CASE("what is found is C++ that can be pasted") {
  const Graph graph = trace([](const auto& x, const auto& w) { return matmul(x, w); },
                            arg<float>("x", {64, 32}), arg<float>("w", {32, 64}));
  FoundSchemas found;
  found.schemas = {placed_on(0, -1), placed_on(-1, 1)};
  found.requests = {{0, placed_on(0, 0)}};
  CHECK(to_source(found, graph) == R"(constexpr std::array schemas{
    spmd::schema(Shard<0>{}, Replicate{}),  // x
    spmd::schema(Replicate{}, Shard<1>{}),  // w
};
constexpr std::array requests{
    spmd::Request{0, spmd::schema(Shard<0>{}, Shard<0>{})},  // matmul
};
)");
  // pasted:
  constexpr std::array schemas{
      spmd::schema(Shard<0>{}, Replicate{}),  // x
      spmd::schema(Replicate{}, Shard<1>{}),  // w
  };
  constexpr std::array requests{
      spmd::Request{0, spmd::schema(Shard<0>{}, Shard<0>{})},  // matmul
  };
  CHECK(std::vector(schemas.begin(), schemas.end()) == found.schemas);
  CHECK(requests[0] == found.requests[0]);
  const Program program = expand(with_requests(graph, requests), schemas);
  CHECK(program.values[std::size_t(program.outputs[0].value)].layout == placed_on(0, 0));
}
