// Passes over programs whose extents contain symbols: applied again for the extents of a run.
#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/fit_memory.hpp>
#include <cleave/spmd/passes/optimize.hpp>
#include <cleave/spmd/then.hpp>
#include <cleave/spmd/trace_function.hpp>
#include <cleave/spmd/with_extents.hpp>

#include "errors.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;
using spmd::arg;
using spmd::extent;
using spmd::schema;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

/// Two gradients over a batch, and a sum that is used by rows only.
struct SumsOverBatch {
  constexpr auto operator()(const auto& x, const auto& y) const {
    const auto rows = resolve(matmul(x, transpose(y)));
    return std::tuple(resolve(matmul(transpose(x), y)), resolve(sum(mul(x, y), dim<0>{})),
                      mul(rows, 1.0f / float(x.extent(0) + 1)));
  }
};

spmd::Graph sums_over_batch() {
  return spmd::trace(SumsOverBatch{}, arg<float, TestDevice>("x", {extent("batch").at_most(12), 4}),
                     arg<float, TestDevice>("y", {extent("batch"), 4}));
}

constexpr std::array schemas_of_batch{schema(S0{}), schema(S0{})};

/// Fewer collectives for every batch: what the compiler sees are those of a sample.
constexpr auto host_graph = spmd::frozen([] {
  return spmd::trace(SumsOverBatch{}, arg<float>("x", {extent("batch").at_most(12), 4}),
                     arg<float>("y", {extent("batch"), 4}));
});
constexpr auto optimized = spmd::frozen([] {
  return spmd::optimize(spmd::expand(host_graph, schemas_of_batch), std::array<index_t, 1>{2});
});
static_assert(spmd::is_symbolic(optimized));
static_assert(spmd::rounds(optimized, StepKind::all_reduce) == 1);

constexpr std::array<index_t, 5> batches_of_passes{7, 1, 0, 12, 7};

}  // namespace

TEST_CASE("an optimized program with symbols is optimized for the extents of each run") {
  const spmd::Graph graph = sums_over_batch();
  on_ranks({1, 2, 3, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const spmd::Program plain = spmd::expand(graph, schemas_of_batch);
    const spmd::Program better = spmd::optimize(plain, mesh);
    CHECK(spmd::is_symbolic(better));
    spmd::Runner runner(better, mesh);
    for (const index_t batch : batches_of_passes) {
      INFO("batch = ", batch);
      const spmd::Program known = spmd::with_extents(plain, {{"batch", batch}});
      const spmd::Program made = spmd::with_extents(better, {{"batch", batch}});
      CHECK(same(made, spmd::optimize(known, mesh)));
      CHECK(received_bytes(made, mesh.extents()) <= received_bytes(known, mesh.extents()));
      const std::array<index_t, 2> shape{batch, 4};
      const auto x = irregular<float, Placements<S0>>(mesh, shape, 1);
      const auto y = irregular<float, Placements<S0>>(mesh, shape, 2);
      spmd::Runner reference(known, mesh);
      const std::array inputs{spmd::erased(x), spmd::erased(y)};
      const auto expected = reference(inputs), results = runner(inputs);
      REQUIRE(results.size() == 3);
      using Square = DTensor<float, 2, std::remove_const_t<decltype(mesh)>, Placements<R>>;
      using Column = DTensor<float, 1, std::remove_const_t<decltype(mesh)>, Placements<R>>;
      const auto square = spmd::typed<Square>(results[0], mesh);
      const auto column = spmd::typed<Column>(results[1], mesh);
      CHECK(same_bits(square.to_local(), spmd::typed<Square>(expected[0], mesh).to_local()));
      CHECK(same_bits(column.to_local(), spmd::typed<Column>(expected[1], mesh).to_local()));
      // the same by loops
      const auto a = x.full_tensor().to(Host{}), b = y.full_tensor().to(Host{});
      const auto products = square.to_local().to(Host{});
      const auto sums = column.to_local().to(Host{});
      for (index_t i = 0; i < 4; ++i) {
        double total = 0;
        for (index_t n = 0; n < batch; ++n) total += double(a(n, i)) * double(b(n, i));
        CHECK(sums(i) == doctest::Approx(total).epsilon(1e-5));
        for (index_t j = 0; j < 4; ++j) {
          double product = 0;
          for (index_t n = 0; n < batch; ++n) product += double(a(n, i)) * double(b(n, j));
          CHECK(products(i, j) == doctest::Approx(product).epsilon(1e-5));
        }
      }
    }
    CHECK(contains(error_of([&] { spmd::with_extents(better, {{"batch", 13}}); }),
                   "batch is 13, but must be at most 12"));
  });
}

TEST_CASE("an optimized constant program runs with every batch") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    for (const index_t batch : batches_of_passes) {
      const std::array<index_t, 2> shape{batch, 4};
      const auto x = irregular<float, Placements<S0>>(mesh, shape, 1);
      const auto y = irregular<float, Placements<S0>>(mesh, shape, 2);
      const auto [products, sums, rows] = spmd::run<optimized>(mesh, x, y);
      const auto [expected_products, expected_sums, expected_rows] = SumsOverBatch{}(x, y);
      CHECK(same_bits(products.to_local(), expected_products.to_local()));
      CHECK(same_bits(sums.to_local(), expected_sums.to_local()));
      CHECK(same_bits(rows.to_local(), resolve(expected_rows).to_local()));
    }
  });
}

TEST_CASE("passes after each other, and after then, are all applied for the extents of a run") {
  const auto step = [](const auto& x) { return resolve(sum(mul(x, x), dim<0>{})); };
  const auto rest = [](const auto& total, const auto& y) {
    return std::tuple(add(total, resolve(sum(y, dim<0>{}))), resolve(sum(mul(y, y), dim<0>{})));
  };
  const std::array<index_t, 1> ranks{4};
  const spmd::Program program = spmd::then(
      spmd::expand(spmd::trace(step, arg<float>("x", {extent("n").at_most(8), 4})),
                   std::array{schema(S0{})}),
      spmd::expand(spmd::trace(rest, arg<float>("total", {4}), arg<float>("y", {extent("m"), 4})),
                   std::array{schema(R{}), schema(S0{})}));
  const auto passes = [&](const spmd::Program& p) {
    return spmd::optimize(spmd::fit_memory(p, ranks, 1 << 20), ranks);
  };
  for (const spmd::Program& made : {passes(program), spmd::with_passes(program, passes)}) {
    const auto expected = passes(spmd::with_extents(program, {{"n", 5}, {"m", 3}}));
    CHECK(same(spmd::with_extents(made, {{"n", 5}, {"m", 3}}), expected));
    CHECK(made.symbols.of[std::size_t(made.symbols.find("n"))].at_most == 8);
  }
}

TEST_CASE("a limit of memory holds for the extents of each run") {
  // needed twice, far from each other: computed again instead of kept
  const auto f = [](const auto& x) {
    const auto first = exp(x), second = exp(first), third = exp(second);
    const auto sums = [](const auto& v) { return sum(v, dim<0>{}); };
    return std::tuple(sums(third), sums(mul(third, second)), sums(mul(second, first)));
  };
  const std::array<index_t, 1> ranks{1};
  const auto of = [&](const spmd::Extent& rows) {
    return spmd::expand(spmd::trace(f, arg<float, TestDevice>("x", {rows, 4})),
                        std::array{schema(R{})});
  };
  const spmd::Program program = of(extent("rows").at_most(100));
  index_t limit = value_bytes(spmd::with_extents(program, {{"rows", 100}}), ranks);
  const auto fitted = [&] { return spmd::fit_memory(program, ranks, limit); };
  const spmd::Program plenty = fitted();
  for (const index_t rows : {100, 7}) {
    const spmd::Program known = spmd::with_extents(program, {{"rows", rows}});
    CHECK(same(spmd::with_extents(plenty, {{"rows", rows}}), known));
  }
  limit = 1;
  CHECK(contains(error_of(fitted), "the limit is 1; the program runs with rows = 100"));
  // one that holds for a sample need not hold for a run: it is an error then
  on_ranks({1}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {1}, TestDevice{});
    const spmd::Program unbounded = of(extent("rows"));
    const index_t sample = unbounded.symbols.samples()[0];
    spmd::Runner runner(
        spmd::fit_memory(unbounded, ranks,
                         value_bytes(spmd::with_extents(unbounded, {{"rows", sample}}), ranks)),
        mesh);
    const auto run = [&](index_t rows) {
      const std::array inputs{
          spmd::erased(irregular<float, Placements<R>>(mesh, std::array<index_t, 2>{rows, 4}, 1))};
      return error_of([&] { runner(inputs); });
    };
    CHECK(run(sample) == "");
    CHECK(run(3) == "");
    CHECK(
        contains(run(4 * sample), "; the program runs with rows = " + std::to_string(4 * sample)));
    CHECK(runner.peak_bytes() <= value_bytes(spmd::with_extents(unbounded, {{"rows", 3}}), ranks));
  });
}
