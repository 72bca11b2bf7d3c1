// Passes that save communication: which moves are left, how many bytes, and the same values.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/core/half.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/passes/optimize.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/run_program.hpp>

#include "random_programs.hpp"
#include "ranks.hpp"
#include "valid_program.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::spmd;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

constexpr Shape of_four(std::array<index_t, 1>{4});

/// A function of matrices [8, 8] expanded for one axis, without and with the passes.
template <class F, class... Schemas>
constexpr Program plain_of(const F& f, const Schemas&... schemas) {
  const auto x = [](const Layout&) { return arg<float>("x", {8, 8}); };
  return expand(trace(f, x(schemas)...), std::array{schemas...});
}
template <class F, class... Schemas>
constexpr Program better_of(const F& f, const Schemas&... schemas) {
  return optimize(plain_of(f, schemas...), of_four);
}
constexpr index_t matrix = 8 * 8 * index_t(sizeof(float));

/// A sum that is used by rows only, although it was resolved.
constexpr auto used_by_rows = [](const auto& x, const auto& w, const auto& z) {
  return add(resolve(matmul(x, w)), z);
};
static_assert(count(plain_of(used_by_rows, schema(S1{}), schema(S0{}), schema(S0{})),
                    StepKind::all_reduce) == 1);
static_assert(count(better_of(used_by_rows, schema(S1{}), schema(S0{}), schema(S0{})),
                    StepKind::all_reduce) == 0);
static_assert(count(better_of(used_by_rows, schema(S1{}), schema(S0{}), schema(S0{})),
                    StepKind::reduce_scatter) == 1);
static_assert(received_bytes(better_of(used_by_rows, schema(S1{}), schema(S0{}), schema(S0{})),
                             of_four) == matrix * 3 / 4);

/// A chain on gathered rows, of which every rank needs its own only.
constexpr auto chain_of_rows = [](const auto& x) {
  const auto all = redistribute(x, R{});
  return redistribute(mul(relu(sub(all, relu(all))), 2.0f), S0{});
};
static_assert(communications(plain_of(chain_of_rows, schema(S0{}))) == 1);
static_assert(communications(better_of(chain_of_rows, schema(S0{}))) == 0);

/// The same through a transpose.
constexpr auto columns_of_transposed = [](const auto& x) {
  return redistribute(relu(transpose(redistribute(x, R{}))), S1{});
};
static_assert(communications(plain_of(columns_of_transposed, schema(S0{}))) == 1);
static_assert(communications(better_of(columns_of_transposed, schema(S0{}))) == 0);

/// A gather of numbers that are rounded afterwards.
constexpr auto rounded = [](const auto& x) { return cast<half>(relu(redistribute(x, R{}))); };
static_assert(received_bytes(plain_of(rounded, schema(S0{})), of_four) == matrix * 3 / 4);
static_assert(received_bytes(better_of(rounded, schema(S0{})), of_four) == matrix * 3 / 8);

/// All elements are needed, and the columns.
constexpr auto all_and_columns = [](const auto& x) {
  return std::tuple(redistribute(x, R{}), redistribute(x, S1{}));
};
static_assert(communications(plain_of(all_and_columns, schema(S0{}))) == 2);
static_assert(communications(better_of(all_and_columns, schema(S0{}))) == 1);

/// What is gathered for other users, too, is gathered.
constexpr auto needed_whole = [](const auto& x) {
  const auto all = redistribute(x, R{});
  return std::tuple(redistribute(relu(all), S0{}), all);
};
static_assert(communications(better_of(needed_whole, schema(S0{}))) == 1);

}  // namespace

TEST_CASE("optimized random programs never receive more, and have every bit") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{});
    const Shape& extents = mesh.extents();
    index_t saved = 0, all = 0;
    for (std::uint64_t seed = 101; seed <= 140; ++seed) {
      Choices choose{seed};
      const Graph graph = random_graph(choose, 10 + choose(30));
      const std::vector<Layout> schemas = random_schemas(choose);
      const Program plain = expand(graph, schemas);
      REQUIRE(!plain.fault);
      const Program better = optimize(plain, extents);
      INFO("seed " << seed << "\n"
                   << to_string(plain, mesh.state()) << to_string(better, mesh.state()));
      CHECK(flaw_of(better) == "");
      const index_t before = received_bytes(plain, extents);
      const index_t after = received_bytes(better, extents);
      CHECK(after <= before);
      all += before;
      saved += before - after;
      std::vector<ErasedTensor> inputs;
      for (int i = 0; i < random_inputs; ++i)
        inputs.push_back(part_of_numbers(schemas[std::size_t(i)], mesh.state(), i));
      Runner reference(plain, mesh), runner(better, mesh);
      const auto expected = reference(inputs), outputs = runner(inputs);
      for (std::size_t k = 0; k < expected.size(); ++k) CHECK(are_same(outputs[k], expected[k]));
    }
    CHECK(saved > all / 20);
  });
}

TEST_CASE("programs that write to inputs stay right without their redundant moves") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto f = [](const auto& x, const auto& y) {
      const auto all = redistribute(x, R{});
      const auto whole = sub(all, 3.0);
      add_(x, redistribute(mul(all, 2.0), S0{}));
      return std::tuple(whole, redistribute(y, R{}),
                        redistribute(relu(redistribute(y, R{})), S0{}));
    };
    const auto x = arg<double, TestDevice>("x", {edge, edge});
    const std::array schemas{schema(S0{}), schema(S0{})};
    const Program plain = expand(trace(f, x, x), schemas);
    REQUIRE(!plain.fault);
    Runner reference(plain, mesh), runner(optimize(plain, mesh), mesh);
    const auto inputs = [&] {
      return std::vector{part_of_numbers(schemas[0], mesh.state(), 0),
                         part_of_numbers(schemas[1], mesh.state(), 1)};
    };
    const auto a = inputs(), b = inputs();
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto expected = reference(a), outputs = runner(b);
      CHECK(are_same(a[0], b[0]));
      for (std::size_t k = 0; k < expected.size(); ++k) CHECK(are_same(outputs[k], expected[k]));
    }
  });
}
