// Extents that are symbols: what a program requires of them, prints of them and refuses. Values:
// test_symbolic_extents.cpp.
#include <array>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/pad.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/split_moves.hpp>
#include <cleave/spmd/print_program.hpp>
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

/// What the program of x and y, sharded by rows, says of tensors of other extents.
template <class F, class X, class Y>
std::string refusal(World& world, const F& f, const X& x, const Y& y, std::array<index_t, 2> of_x,
                    std::array<index_t, 2> of_y) {
  const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
  const std::array schemas{schema(Shard<0>{}), schema(Shard<0>{})};
  spmd::Runner runner(spmd::expand(spmd::trace(f, x, y), schemas), mesh);
  return error_of([&] {
    const std::array inputs{spmd::erased(irregular<float, Placements<Shard<0>>>(mesh, of_x, 1)),
                            spmd::erased(irregular<float, Placements<Shard<0>>>(mesh, of_y, 2))};
    runner(inputs);
  });
}

constexpr auto symbol_rows = [](const auto& x, const auto&) { return slice(x, dim<0>{}, 0, 3); };

auto symbolic_arg(const char* name, const spmd::Extent& rows) {
  return arg<float, TestDevice>(name, {rows, 4});
}

/// Two layers: the extents of their values.
spmd::Graph layers_of_batch() {
  return spmd::trace(
      [](const auto& x, const auto& w) {
        const auto y = relu(matmul(reshape(x, {x.extent(0) * x.extent(1), 8}), w));
        return slice(y, dim<0>{}, x.extent(0) / 4, x.extent(0) + 1);
      },
      arg<float>("x", {extent("batch").divisible_by(4), 2 * extent("half") - 1, 8}),
      arg<float>("w", {8, 6}));
}

}  // namespace

TEST_CASE("extents of a run that do not fit are errors that name the symbol") {
  const auto batch = extent("batch");
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto equal = refusal(world, symbol_rows, symbolic_arg("x", batch),
                               symbolic_arg("y", batch), {6, 4}, {5, 4});
    CHECK(contains(equal,
                   "input 'y' has extent 5 in dimension 0, but the program takes batch = 6, "
                   "as batch is 6 by input 'x'"));
    CHECK(contains(equal, "[shapes [6, 4], [5, 4]"));
    const auto twice = [&](index_t rows_of_x, index_t rows_of_y) {
      return refusal(world, symbol_rows, symbolic_arg("x", 2 * batch + 1),
                     symbolic_arg("y", batch + extent("other")), {rows_of_x, 4}, {rows_of_y, 4});
    };
    CHECK(contains(twice(6, 9),
                   "input 'x' has extent 6 in dimension 0, but the program takes "
                   "2*batch + 1"));
    CHECK(contains(twice(9, 3),
                   "input 'y' has extent 3 in dimension 0, but the program takes "
                   "batch + other"));
    CHECK(twice(9, 9) == "");
    const auto limited = [&](index_t rows) {
      return refusal(world, symbol_rows,
                     symbolic_arg("x", batch.at_least(3).divisible_by(2).at_most(8)),
                     symbolic_arg("y", batch.divisible_by(3)), {rows, 4}, {rows, 4});
    };
    CHECK(contains(limited(4), "batch is 4, but must be at least 3, at most 8, divisible by 6"));
    CHECK(contains(limited(12), "batch is 12, but must be"));
    CHECK(contains(limited(0), "batch is 0, but must be"));
    CHECK(limited(6) == "");
    const auto other = refusal(world, symbol_rows, symbolic_arg("x", batch),
                               arg<float, TestDevice>("y", {7, 4}), {6, 5}, {7, 4});
    CHECK(contains(other,
                   "input 0 'x' is float32 [6, 5] (Shard(0)), the program takes float32 "
                   "[batch, 4] (Shard(0))"));
    CHECK(contains(refusal(world, symbol_rows, symbolic_arg("x", batch),
                           arg<float, TestDevice>("y", {7, 4}), {6, 4}, {8, 4}),
                   "input 1 'y' is float32 [8, 4] (Shard(0)), the program takes float32 [7, 4]"));
  });
}

TEST_CASE("extents that an operation refuses are an error that names the symbol") {
  on_ranks({1, 2}, [](World& world) {
    const auto text = refusal(world, symbol_rows, symbolic_arg("x", extent("batch")),
                              symbolic_arg("y", extent("batch")), {2, 4}, {2, 4});
    CHECK(contains(text, "slice: "));
    CHECK(contains(text, "; the program runs with batch = 2"));
  });
}

TEST_CASE("a trace refuses symbols that cannot work") {
  const auto f = [](const auto& x) { return mul(x, 2.0f); };
  const auto trace_of = [&](const spmd::Extent& a, const spmd::Extent& b) {
    return error_of([&] { spmd::trace(f, arg<float>("x", {a, b})); });
  };
  CHECK(contains(trace_of(extent("a") + extent("b"), 2),
                 "the extents of the inputs do not determine a"));
  CHECK(trace_of(extent("a") + extent("b"), extent("b")) == "");
  CHECK(contains(trace_of(extent("a").at_least(5), extent("a").at_most(4)),
                 "no extent meets all conditions on a"));
  CHECK(contains(error_of([] { extent("a").at_least(5).at_most(7).divisible_by(4); }),
                 "no extent meets all conditions on a"));
  CHECK(contains(error_of([] { (2 * extent("a")).at_least(5); }), "conditions are on symbols"));
  CHECK(contains(error_of([] { extent("a").divisible_by(0); }), "divisible_by(0)"));
  CHECK(contains(error_of([] {
                   spmd::Extent sum = extent("a");
                   for (const char* name : {"b", "c", "d", "e", "f", "g", "h", "i"})
                     sum = sum + extent(name);
                 }),
                 "a program has at most 8 symbols; i is one more"));
  // two symbols are not equal, although calls would accept equal extents
  CHECK(contains(error_of([] {
                   spmd::trace([](const auto& x, const auto& y) { return matmul(x, y); },
                               arg<float>("x", {3, extent("a")}),
                               arg<float>("y", {extent("b"), 3}));
                 }),
                 "matmul: "));
}

TEST_CASE("samples of extents meet the conditions and differ") {
  spmd::Symbols symbols;
  for (const char* name : {"a", "b", "c", "d"}) symbols.add({name, 0, 7, 1});
  symbols.add({"e", 100000, spmd::Symbol::unbounded, 7});
  symbols.add({"f", 0, spmd::Symbol::unbounded, 32});
  symbols.add({"g", 5, 5, 1});
  const Shape samples = symbols.samples();
  for (int i = 0; i < symbols.count; ++i) {
    CHECK(symbols.of[std::size_t(i)].allows(samples[i]));
    for (int j = 0; j < i && i < 6; ++j) CHECK(samples[i] != samples[j]);
  }
  spmd::Symbols equal;  // these names would have one sample
  equal.add({"a"});
  equal.add({"B"});
  CHECK(equal.samples()[0] != equal.samples()[1]);
  for (const index_t sample : equal.samples()) CHECK(sample % 240 == 0);
  spmd::Symbols one;
  one.add({"f", 0, spmd::Symbol::unbounded, 32});
  CHECK(one.samples()[0] == samples[5]);  // the same in every program
}

TEST_CASE("graphs and programs print their symbols") {
  const spmd::Graph graph = layers_of_batch();
  CHECK(to_string(graph) ==
        "extent batch: divisible by 4\n"
        "extent half\n"
        "%0 = input x  float32 [batch, 2*half - 1, 8]\n"
        "%1 = input w  float32 [8, 6]\n"
        "%2 = reshape(%0)  float32 [2*batch*half - batch, 8]\n"
        "%3 = matmul(%2, %1)  float32 [2*batch*half - batch, 6]\n"
        "%4 = relu(%3)  float32 [2*batch*half - batch, 6]\n"
        "%5 = slice(%4)  float32 [3*batch/4 + 1, 6]\n"
        "return %5\n");
  const World world(dry_communicator(0, 8));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 2});
  const spmd::Graph product =
      spmd::trace([](const auto& x, const auto& w) { return matmul(x, w); },
                  arg<float>("x", {extent("n"), 8}), arg<float>("w", {8, extent("m")}));
  const std::array schemas{schema(Shard<0>{}, Shard<1>{}), schema(Replicate{}, Shard<0>{})};
  // every rank has n/4 of the rows of the product, 4 bytes each, and receives half of them twice
  CHECK(to_string(spmd::expand(product, schemas), mesh) ==
        "extent n\n"
        "extent m\n"
        "%0 = input x  float32 [n, 8] (Shard(0), Shard(1))\n"
        "%1 = input w  float32 [8, m] (Replicate, Shard(0))\n"
        "%2 = matmul(%0, %1)  float32 [n, m] (Shard(0), Partial(sum))\n"
        "%3 = all_reduce(sum) over tp of %2, n*m bytes  float32 [n, m] (Shard(0), Replicate)\n"
        "return %3\n"
        "receives n*m bytes per rank on dp=4 x tp=2\n");
}

TEST_CASE("a number that is no polynomial of the extents is printed as a question mark") {
  const spmd::Graph graph =
      spmd::trace([](const auto& x) { return pad(x, dim<0>{}, 0, x.extent(0) / 7); },
                  arg<float>("x", {extent("n"), 3}));
  CHECK(contains(to_string(graph), "embed(%0)  float32 [?, 3]"));
  // nodes that depend on extents: those of the sample
  const spmd::Graph chosen =
      spmd::trace([](const auto& x) { return x.extent(0) % 480 == 0 ? relu(x) : mul(x, 2.0f); },
                  arg<float>("x", {extent("n"), 3}));
  const Shape sample = chosen.symbols.samples();
  CHECK(contains(to_string(chosen), "with n = " + std::to_string(sample[0]) + ":\n"));
}

TEST_CASE("a symbolic program for given extents is the program that is traced with them") {
  const auto f = [](const auto& x, const auto& w) { return matmul(relu(matmul(x, w)), w); };
  const std::array schemas{schema(Shard<1>{}), schema(Shard<0>{})};
  const spmd::Graph symbolic =
      spmd::trace(f, arg<float>("x", {extent("rows"), extent("width").at_least(2)}),
                  arg<float>("w", {extent("width"), extent("width")}));
  const spmd::Program program = spmd::expand(symbolic, schemas);
  for (const auto& [rows, width] : {std::array<index_t, 2>{5, 3}, {0, 4}, {1, 2}}) {
    const spmd::Graph graph =
        spmd::trace(f, arg<float>("x", {rows, width}), arg<float>("w", {width, width}));
    const spmd::Program expected = spmd::expand(graph, schemas);
    const spmd::Program made = spmd::with_extents(program, {{"width", width}, {"rows", rows}});
    CHECK(same(made, expected));
    CHECK(!is_symbolic(made));
    CHECK(to_string(spmd::with_extents(symbolic, {{"rows", rows}, {"width", width}})) ==
          to_string(graph));
    const std::array<index_t, 1> mesh{3};
    CHECK(received_bytes(made, mesh) == received_bytes(expected, mesh));
  }
  const auto refused = [&](const auto&... of) {
    return error_of([&] { spmd::with_extents(program, {of...}); });
  };
  using spmd::NamedExtent;
  CHECK(contains(refused(NamedExtent{"rows", 2}), "the extent of width is missing"));
  CHECK(contains(refused(NamedExtent{"rows", 2}, NamedExtent{"width", 1}),
                 "width is 1, but must be at least 2"));
  CHECK(contains(refused(NamedExtent{"row", 2}), "there is no symbol row"));
  CHECK(contains(refused(NamedExtent{"rows", -1}), "rows is -1, but must be at least 0"));
}

TEST_CASE("a symbolic program runs after passes; changed in other ways it does not") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {1}, TestDevice{});
    spmd::Program program = spmd::expand(spmd::trace([](const auto& x) { return mul(x, 2.0f); },
                                                     arg<float, TestDevice>("x", {extent("n")})),
                                         std::array{schema(Shard<0>{})});
    const auto f = [](const auto& p) { return spmd::split_moves(p, std::array<index_t, 1>{1}); };
    const spmd::Program passed = spmd::with_passes(program, f);
    CHECK(same(spmd::with_extents(passed, {{"n", 6}}), f(spmd::with_extents(program, {{"n", 6}}))));
    const auto x = irregular<float, Placements<Shard<0>>>(mesh, std::array<index_t, 1>{5}, 1);
    spmd::Runner runner(passed, mesh);
    const auto [y] = runner.template run<std::remove_const_t<decltype(x)>>(x);
    CHECK(same_bits(y.to_local(), mul(x, 2.0f).to_local()));
    CHECK(contains(error_of([&] { spmd::Runner changed(f(program), mesh); }), "was changed"));
    program.remake = {};
    CHECK(contains(error_of([&] { spmd::Runner changed(program, mesh); }), "this one was changed"));
  });
}
