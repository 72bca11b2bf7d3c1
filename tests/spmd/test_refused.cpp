// Errors of running programs.
#include <array>
#include <string>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::spmd;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

using S0 = Shard<0>;

Program doubled(const Layout& schema_of_x) {
  return expand(trace([](const auto& x) { return add(x, x); }, arg<float>("x", {6, 4})),
                std::array{schema_of_x});
}

template <class Mesh>
using Rows = DTensor<float, 2, Mesh, Placements<S0>>;

}  // namespace

TEST_CASE("an input of another type, shape or placement is refused, with both") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    using Y = Rows<std::remove_cvref_t<decltype(mesh)>>;
    const Program program = doubled(schema(S0{}));
    const auto with = [&](const auto& x) {
      return error_of([&] { static_cast<void>(cleave::spmd::run<Y>(program, mesh, x)); });
    };
    CHECK(with(zeros<float>({6, 4}, mesh, S0{})).empty());
    const std::string shape = with(zeros<float>({5, 4}, mesh, S0{}));
    CHECK(contains(shape,
                   "spmd::run: input 0 'x' is float32 [5, 4] (Shard(0)), the program takes "
                   "float32 [6, 4] (Shard(0)) [shapes [5, 4]; placements (Shard(0)); mesh "
                   "dp=" +
                       std::to_string(world.size()) + "; rank "));
    CHECK(contains(with(zeros<double>({6, 4}, mesh, S0{})), "is float64 [6, 4] (Shard(0))"));
    CHECK(contains(with(zeros<float>({6, 4}, mesh, Shard<1>{})), "is float32 [6, 4] (Shard(1))"));
    CHECK(contains(with(zeros<float>({6}, mesh, S0{})), "is float32 [6] (Shard(0))"));
    CHECK(with(zeros<float>({6, 4}, mesh, S0{})).empty());
  });
}

TEST_CASE("outputs of other types, and another number of inputs or outputs, are refused") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2});
    using Mesh = std::remove_cvref_t<decltype(mesh)>;
    using Y = Rows<Mesh>;
    using Whole = DTensor<float, 2, Mesh, Placements<Replicate>>;
    const auto x = zeros<float>({6, 4}, mesh, S0{});
    Runner runner(doubled(schema(S0{})), mesh);
    CHECK(contains(error_of([&] { static_cast<void>(runner.run<Whole>(x)); }),
                   "output 0 is float32 [6, 4] (Shard(0)), the call expects float32 with 2 "
                   "dimensions (Replicate)"));
    CHECK(contains(error_of([&] { static_cast<void>(runner.run<Y, Y>(x)); }),
                   "the program has 1 outputs, not 2"));
    CHECK(contains(error_of([&] { static_cast<void>(runner.run<Y>(x, x)); }),
                   "the program takes 1 inputs, not 2"));
  });
}

TEST_CASE("a program is refused on a mesh with another number of axes, or on another mesh") {
  on_ranks({2}, [](World& world) {
    const auto square = init_device_mesh<dp, tp>(world, {2, 1});
    CHECK(contains(error_of([&] { Runner(doubled(schema(S0{})), square); }),
                   "the program is for 1 mesh axes, not for 2"));
    const auto alone = square[tp{}];  // one rank
    Runner runner(doubled(schema(S0{})), init_device_mesh<tp>(world, {2}));
    const auto x = zeros<float>({6, 4}, alone, S0{});
    using Y = Rows<std::remove_cvref_t<decltype(alone)>>;
    CHECK(contains(error_of([&] { static_cast<void>(runner.run<Y>(x)); }),
                   "on another mesh than the program's"));
  });
}

TEST_CASE("a program that could not be expanded is not run") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {1});
    CHECK(contains(error_of([&] { Runner(doubled(schema(Shard<2>{})), mesh); }),
                   "the program could not be expanded: input 'x': its schema shards a dimension "
                   "that it does not have"));
  });
}

TEST_CASE("a kernel's error is that of an eager call, and the runner can be used again") {
  on_ranks({1}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {1});
    const auto f = [](const auto& x) { return one_hot<float>(x, 3); };
    auto x = zeros<std::int64_t>({4}, mesh, S0{});
    using Y = Rows<std::remove_cvref_t<decltype(mesh)>>;
    Runner runner(expand(trace(f, arg<std::int64_t>("x", {4})), schemas_of(x)), mesh);
    x.to_local()(2) = 7;
    const std::string eager = error_of([&] { static_cast<void>(f(x)); });
    CHECK(contains(eager, "one_hot"));
    CHECK(error_of([&] { static_cast<void>(runner.run<Y>(x)); }) == eager);
    x.to_local()(2) = 1;
    const auto [y] = runner.run<Y>(x);
    CHECK(y.to_local()(2, 1) == 1);
  });
}
