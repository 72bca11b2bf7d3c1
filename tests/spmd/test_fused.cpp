// Runs of elementwise operations in programs: found, computed block by block, with the bits of
// calls over several blocks, for rows that repeat, casts and views.
#include <array>
#include <tuple>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// Values needed in the run only, needed later, needed by both; a row that repeats; a cast.
constexpr auto chain_of_operations = [](const auto& x, const auto& y, const auto& row) {
  const auto a = add(mul(x, 2.0f), row);
  const auto b = sub(exp(a), y);
  const auto c = mul(b, tanh(mul(b, row)));
  const auto d = cast<float>(mul(cast<double>(c), cast<double>(x)));
  return std::tuple(a, add(where(less(d, y), d, a), c), mul(transpose(b), 2.0f));
};

/// The last user of an array in a run is not its last reader: a view of it is read, too.
constexpr auto chain_with_a_view = [](const auto& x) {
  const auto square = matmul(x, x);
  const auto a = add(square, 1.0f);
  const auto turned = transpose(a);
  return exp(mul(sub(a, mul(turned, 0.5f)), 0.25f));
};

/// Reductions of rows that end a run, of values needed in the run only and of one needed later.
constexpr auto chain_with_reductions = [](const auto& x, const auto& y, const auto& row) {
  const auto a = mul(sub(x, row), y), b = add(exp(a), x);
  return std::tuple(sum(a, dim<1>{}), mean(b, dim<1>{}), max(b, dim<1>{}), mul(b, 2.0f));
};
constexpr auto chain_to_a_number = [](const auto& x, const auto& y) {
  return std::tuple(sum(mul(x, y)), sum(square(sub(x, y)), dim<1, 2>{}));
};

template <class P, class Row, class Mesh>
void check_chain(const Mesh& mesh, std::array<index_t, 2> shape, P, Row) {
  check_like_eager(chain_of_operations, irregular<float, P>(mesh, shape, 1),
                   irregular<float, P>(mesh, shape, 2),
                   irregular<float, Row>(mesh, std::array<index_t, 1>{shape[1]}, 3));
}

}  // namespace

TEST_CASE("runs of elementwise operations have the bits of calls, in one block and in several") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    for (const std::array<index_t, 2> shape :
         {std::array<index_t, 2>{3, 7}, {200, 101}, {9, 9001}, {4, 4096}, {1, 1}, {0, 5}}) {
      check_chain(mesh, shape, Placements<Shard<0>>{}, Placements<Replicate>{});
      check_chain(mesh, shape, Placements<Shard<1>>{}, Placements<Shard<0>>{});
    }
  });
}

TEST_CASE("reductions that end a run have the bits of calls, for rows of any length") {
  on_ranks({1, 2, 5}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    for (const std::array<index_t, 2> shape :
         {std::array<index_t, 2>{3, 7}, {200, 101}, {9, 1024}, {4, 3000}, {700, 1}, {0, 5}}) {
      const auto x = irregular<float, Placements<Shard<0>>>(mesh, shape, 1);
      const auto y = irregular<float, Placements<Shard<0>>>(mesh, shape, 2);
      const auto row = irregular<float, Placements<Replicate>>(mesh, std::array{shape[1]}, 3);
      check_like_eager(chain_with_reductions, x, y, row);
    }
    for (const std::array<index_t, 3> shape :
         {std::array<index_t, 3>{3, 4, 5}, {70, 6, 9}, {1, 32, 32}, {2, 0, 3}}) {
      const auto x = irregular<double, Placements<Shard<0>>>(mesh, shape, 1);
      const auto y = irregular<double, Placements<Shard<0>>>(mesh, shape, 2);
      check_like_eager(chain_to_a_number, x, y);
    }
  });
}

TEST_CASE("a run ends with the reductions of its rows that fit in a block") {
  const auto rows = [](const auto& x) { return sum(exp(mul(x, 2.0f)), dim<1>{}); };
  const auto columns = [](const auto& x) { return sum(exp(mul(x, 2.0f)), dim<0>{}); };
  const auto reductions = [](const auto& f, index_t length) {
    const spmd::Program program = spmd::expand(spmd::trace(f, spmd::arg<float>("x", {4, length})),
                                               std::array{spmd::schema(Shard<0>{})});
    const auto runs = spmd::fuse_elementwise(program);
    REQUIRE(runs.size() == 1);
    return runs[0].end - runs[0].reductions;
  };
  CHECK(reductions(rows, 1000) == 1);
  CHECK(reductions(rows, 5000) == 0);
  CHECK(reductions(columns, 1000) == 0);
}

TEST_CASE("an array whose view a run reads is not overwritten before") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    check_like_eager(chain_with_a_view, irregular<float, Placements<Replicate>>(
                                            mesh, std::array<index_t, 2>{150, 150}, 1));
  });
}

TEST_CASE("a run ends where extents or placements change, and has two operations or more") {
  const auto f = [](const auto& x, const auto& w) {
    const auto y = exp(matmul(tanh(add(x, x)), w));
    return std::tuple(y, mul(y, y));
  };
  const spmd::Program program =
      spmd::expand(spmd::trace(f, spmd::arg<float>("x", {8, 4}), spmd::arg<float>("w", {4, 6})),
                   std::array{spmd::schema(Shard<0>{}), spmd::schema(Replicate{})});
  const auto runs = spmd::fuse_elementwise(program);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].end - runs[0].begin == 2);  // add, tanh
  CHECK(runs[1].end - runs[1].begin == 2);  // exp, mul
  CHECK(spmd::is_internal(program, runs[0], program.code[std::size_t(runs[0].begin)].first));
  CHECK(!spmd::is_internal(program, runs[0], program.code[std::size_t(runs[0].begin) + 1].first));
}
