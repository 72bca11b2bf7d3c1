// Programs run wherever shards of merged and split dimensions end, and communicate only where those
// of both end at different elements.
#include <array>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/losses/mse_loss.hpp>
#include <cleave/ops/shapes/reshape.hpp>

#include "errors.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

constexpr auto merged_rows = [](const auto& x) { return relu(flatten(x, dim<0, 1>{})); };
/// [rows, 12] to [rows, 3, 4]: three three_heads.
constexpr auto three_heads = [](const auto& x) { return unflatten(x, dim<1>{}, {3, -1}); };
/// A loss of [batch, sequence, classes].
constexpr auto flat_loss = [](const auto& x, const auto& y) {
  return mse_loss(flatten(x, dim<0, 1>{}), flatten(y, dim<0, 1>{}));
};

/// Whether the chunks of `outer` indices, each `inner` elements long, are the chunks of all
/// elements: counted, element after element.
bool chunks_agree(index_t outer, index_t inner, index_t ranks) {
  const index_t whole = (outer * inner + ranks - 1) / ranks, rows = (outer + ranks - 1) / ranks;
  for (index_t i = 0; i < outer * inner; ++i)
    if (i / whole != i / inner / rows) return false;
  return true;
}

/// Expands for the mesh of x, calls and runs: the results and the communication are the same, and
/// there is none exactly if shards end at the same elements.
template <class F, class First, class... X>
void check_fits(bool stays, const F& f, const First& first, const X&... x) {
  const auto& mesh = first.mesh();
  const spmd::Graph graph = spmd::trace(f, arg_for(first), arg_for(x)...);
  const std::array schemas = spmd::schemas_of(first, x...);
  const spmd::Program program =
      spmd::expand(graph, schemas, {.partial_outputs = true, .mesh = mesh.extents()});
  CHECK((communications(program, mesh.extents()) == 0) == stays);
  if (first.shape()[0] != 1)  // otherwise one of several ranks has all, and shards never agree
    CHECK(communications(spmd::expand(graph, schemas, {.partial_outputs = true})) == 0);
  check_like_eager(f, first, x...);
}

}  // namespace

TEST_CASE("merged dimensions are exchanged where shards end inside a factor") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    for (index_t rows = 0; rows < 7; ++rows)
      for (const index_t columns : {1, 4}) {
        const bool fits = chunks_agree(rows, columns, world.size());
        const auto x = irregular<float, Placements<Shard<0>>>(
            mesh, std::array<index_t, 3>{rows, columns, 2}, 1);
        check_fits(fits, merged_rows, x);
        if (rows > 0) check_fits(fits, flat_loss, x, x);
        check_like_eager(merged_rows, x.redistribute(Shard<1>{}));
      }
  });
}

TEST_CASE("heads are exchanged where the ranks of an axis do not divide them") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {1, world.size()}, TestDevice{});
    const auto x =
        irregular<float, Placements<Replicate, Shard<1>>>(mesh, std::array<index_t, 2>{5, 12}, 1);
    check_fits(chunks_agree(3, 4, world.size()), three_heads, x);
  });
}

TEST_CASE("a program that was expanded for one mesh is refused on another") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    const spmd::Graph graph = spmd::trace(merged_rows, spmd::arg<float>("x", {3, 4, 2}));
    const spmd::Program alone = spmd::expand(graph, std::array{spmd::schema(Shard<0>{})},
                                             {.mesh = Shape(std::array<index_t, 1>{1})});
    CHECK(!alone.fault);
    CHECK(contains(error_of([&] { spmd::Runner(alone, mesh); }),
                   "spmd::run: the program was expanded for a mesh of extents [1], not [2]"));
  });
}
