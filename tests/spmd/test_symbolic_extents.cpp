// Programs whose extents contain symbols: one program for every batch size, with the bits of eager
// calls. What they refuse and print: test_symbols.cpp.
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/convolutions/windows.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/pad.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/then.hpp>
#include <cleave/spmd/traced_factories.hpp>
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

/// Whether outputs of a program have the types, extents and bits of those of calls.
template <class... Y>
bool same_outputs(const std::tuple<Y...>& outputs, const std::tuple<Y...>& expected) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return ((std::get<K>(outputs).shape() == std::get<K>(expected).shape() &&
             same_bits(std::get<K>(outputs).to_local(), std::get<K>(expected).to_local())) &&
            ...);
  }(std::index_sequence_for<Y...>{});
}

/// Runs a program on inputs and compares it with f of them.
template <class F, class... X>
void check_symbolic_run(spmd::Runner<TestDevice>& runner, const F& f, const X&... x) {
  std::apply(
      [&](const auto&... y) {
        const std::tuple expected{resolve(y)...};
        CHECK(same_outputs(runner.template run<decltype(resolve(y))...>(x...), expected));
      },
      as_tuple(f(x...)));
}

/// Operations that compute with extents.
struct ExtentsOfValues {
  constexpr auto operator()(const auto& x) const {
    const index_t n = x.extent(0), width = x.extent(1);
    const auto flat = flatten(x);                             // n * width
    const auto tall = reshape(x, {2 * n, width / 2});         // rows in two
    const auto back = unflatten(flat, dim<0>{}, {n, width});  //
    const auto one = expand(slice(x, dim<1>{}, 0, 1), dim<1>{}, n + 1);
    const auto ends = pad(x, dim<0>{}, 1, n);
    const auto half = slice(x, dim<0>{}, n / 2, n);  // rounds, as in calls
    const auto few = n > 4 ? mul(x, 2.0f) : x;       // chooses, as in calls
    return std::tuple(tall, sub(back, softmax(x, dim<1>{})), one, ends, half, few,
                      mean(x, dim<0>{}), mul(sum(x), 1.0f / float(x.size())));
  }
};

struct SymbolicFactories {
  constexpr auto operator()(const auto& x) const {
    const index_t n = x.extent(0);
    const auto places = arange<float>(n, x.mesh());
    const auto noise = randn<float>({n, x.extent(1)}, x.mesh());
    return std::tuple(add(mul(x, noise), unsqueeze(places, dim<1>{})),
                      matmul(eye<float>(n, x.mesh()), x),
                      add(x, full<float>({n, 1}, float(n), x.mesh())));
  }
};

struct SymbolicWindows {
  constexpr auto operator()(const auto& x) const { return windows(x, dim<0>{}, Window{3, 2}); }
};

/// A step of training: the loss, and the gradients of all.
struct SymbolicStep {
  constexpr auto operator()(const auto& input, const auto& weight, const auto& classes) const {
    const auto x = requires_grad(input);
    const auto w = requires_grad(weight);
    const auto loss = cross_entropy(matmul(relu(x), w), classes);
    backward(loss);
    return std::tuple(detach(loss), grad(x), grad(w));
  }
};

constexpr auto symbolic_step = spmd::frozen([] {
  return spmd::trace(SymbolicStep{}, arg<float>("x", {extent("batch"), 6}), arg<float>("w", {6, 5}),
                     arg<index_t>("classes", {extent("batch")}));
});
constexpr std::array symbolic_step_schemas{schema(S0{}), schema(R{}), schema(S0{})};
constexpr auto symbolic_step_program =
    spmd::frozen([] { return spmd::expand(symbolic_step, symbolic_step_schemas); });
// for every batch: one all-reduce of the loss, one of the gradient of w
static_assert(spmd::count(symbolic_step_program, StepKind::all_reduce) == 2);
static_assert(spmd::communications(symbolic_step_program) == 2);

template <class Mesh>
auto symbolic_classes(const Mesh& mesh, index_t batch) {
  return irregular<index_t, Placements<S0>>(mesh, std::array{batch}, 3);
}

/// The extents that tests run with: none, one, fewer than ranks, uneven and even over them.
constexpr std::array<index_t, 7> symbolic_batches{7, 1, 8, 0, 2, 12, 7};

}  // namespace

TEST_CASE("one program runs with every extent and has the bits of calls") {
  const spmd::Graph graph =
      spmd::trace(ExtentsOfValues{}, arg<float, TestDevice>("x", {extent("n"), 4}));
  const auto check = [&]<class P>(World& world, P p) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const spmd::Program program = spmd::expand(graph, std::array{schema(p)});
    spmd::Runner runner(program, mesh);
    for (const index_t n : symbolic_batches) {
      INFO("n = ", n);
      check_symbolic_run(runner, ExtentsOfValues{},
                         irregular<float, Placements<P>>(mesh, std::array<index_t, 2>{n, 4}, 1));
    }
  };
  on_ranks({1, 2, 3, 4}, [&](World& world) {
    check(world, S0{});
    check(world, S1{});
    check(world, R{});
  });
}

TEST_CASE("factories inside of a program have the extents of the run") {
  const spmd::Graph graph =
      spmd::trace(SymbolicFactories{}, arg<float, TestDevice>("x", {extent("n"), 4}));
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    spmd::Runner runner(spmd::expand(graph, std::array{schema(S0{})}), mesh);
    for (const index_t n : symbolic_batches) {
      INFO("n = ", n);
      const auto x = irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{n, 4}, 1);
      manual_seed(world, 7);
      const auto expected = SymbolicFactories{}(x);
      manual_seed(world, 7);
      std::apply(
          [&](const auto&... y) {
            CHECK(same_outputs(runner.template run<decltype(resolve(y))...>(x),
                               std::tuple{resolve(y)...}));
          },
          expected);
    }
  });
}

TEST_CASE("windows of a symbolic extent") {
  const spmd::Graph graph =
      spmd::trace(SymbolicWindows{}, arg<float, TestDevice>("x", {2 * extent("n") + 1, 4}));
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    spmd::Runner runner(spmd::expand(graph, std::array{schema(S0{})}), mesh);
    for (const index_t n : {5, 1, 2, 9})
      check_symbolic_run(
          runner, SymbolicWindows{},
          irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{2 * n + 1, 4}, 1));
  });
}

TEST_CASE("a training step that is a constant runs with every batch") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto w = irregular<float, Placements<R>>(mesh, std::array<index_t, 2>{6, 5}, 2);
    for (const index_t batch : symbolic_batches) {
      INFO("batch = ", batch);
      const auto x = irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{batch, 6}, 1);
      const auto classes = symbolic_classes(mesh, batch);
      const auto outputs = spmd::run<symbolic_step_program>(mesh, x, w, classes);
      std::apply([&](const auto&... y) { CHECK(same_outputs(outputs, std::tuple{resolve(y)...})); },
                 SymbolicStep{}(x, w, classes));
    }
  });
}

TEST_CASE("the sum of a program is that of loops for every extent") {
  const auto f = [](const auto& x) {
    return mul(sum(mul(x, x), dim<0>{}), 1.0 / double(x.extent(0)));
  };
  const spmd::Graph graph = spmd::trace(f, arg<double, TestDevice>("x", {extent("n"), 3}));
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    spmd::Runner runner(spmd::expand(graph, std::array{schema(S0{})}), mesh);
    using Y = DTensor<double, 1, std::remove_const_t<decltype(mesh)>, Placements<R>>;
    for (const index_t n : {3, 1, 10}) {
      const auto x = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{n, 3}, 1);
      const auto [y] = runner.template run<Y>(x);
      const auto all = x.full_tensor().to(Host{});
      const auto result = y.to_local().to(Host{});
      for (index_t j = 0; j < 3; ++j) {
        double expected = 0;
        for (index_t i = 0; i < n; ++i) expected += all(i, j) * all(i, j);
        CHECK(result(j) == doctest::Approx(expected / double(n)));
      }
    }
  });
}

TEST_CASE("a function is traced once for each set of extents") {
  int traces = 0;
  const auto f = [&traces](const auto& x, const auto& y) {
    ++traces;
    return matmul(x, y);
  };
  on_ranks({1}, [&](World& world) {
    traces = 0;
    const auto mesh = init_device_mesh<dp>(world, {1}, TestDevice{});
    const spmd::Graph graph =
        spmd::trace(f, arg<float, TestDevice>("x", {extent("rows"), extent("inner")}),
                    arg<float, TestDevice>("y", {extent("inner"), 3}));
    CHECK(traces == 1);
    spmd::Runner runner(spmd::expand(graph, std::array{schema(R{}), schema(R{})}), mesh);
    const auto run = [&](index_t rows, index_t inner) {
      check_symbolic_run(
          runner, [](const auto& x, const auto& y) { return matmul(x, y); },
          irregular<float, Placements<R>>(mesh, std::array{rows, inner}, 1),
          irregular<float, Placements<R>>(mesh, std::array<index_t, 2>{inner, 3}, 2));
    };
    CHECK(traces == 1);
    for (int repeat = 0; repeat < 2; ++repeat) run(2, 5), run(5, 2), run(2, 4);
    CHECK(traces == 4);
    for (index_t rows = 10; rows < 80; ++rows) run(rows, 1);  // more than are kept
    CHECK(traces == 74);
    run(79, 1);
    CHECK(traces == 74);
    run(2, 5);
    CHECK(traces == 75);
  });
}

TEST_CASE("joined programs have the symbols of both") {
  const auto first = [](const auto& x, const auto& w) { return matmul(x, w); };
  const auto second = [](const auto& y, const auto& z) { return mul(relu(y), z); };
  using spmd::Graph;
  const Graph forward = spmd::trace(first, arg<float, TestDevice>("x", {extent("n"), 4}),
                                    arg<float, TestDevice>("w", {4, extent("width")}));
  const Graph backward =  // symbols in another order, and a condition more
      spmd::trace(second, arg<float, TestDevice>("y", {extent("n"), extent("width")}),
                  arg<float, TestDevice>("z", {extent("width").at_most(9)}));
  const auto both = [&](const auto& x, const auto& w, const auto& z) {
    return second(first(x, w), z);
  };
  on_ranks({1, 2, 3}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const spmd::Program joined =
        spmd::then(spmd::expand(forward, std::array{schema(S0{}), schema(R{})}),
                   spmd::expand(backward, std::array{schema(S0{}), schema(R{})}));
    spmd::Runner runner(joined, mesh);
    for (const auto& [n, width] : {std::array<index_t, 2>{5, 3}, {1, 1}, {8, 9}, {5, 3}})
      check_symbolic_run(runner, both,
                         irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{n, 4}, 1),
                         irregular<float, Placements<R>>(mesh, std::array<index_t, 2>{4, width}, 2),
                         irregular<float, Placements<R>>(mesh, std::array{width}, 3));
    using Y = DTensor<float, 2, std::remove_const_t<decltype(mesh)>, Placements<S0>>;
    CHECK(contains(error_of([&] {
                     runner.template run<Y>(
                         irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{5, 4}, 1),
                         irregular<float, Placements<R>>(mesh, std::array<index_t, 2>{4, 10}, 2),
                         irregular<float, Placements<R>>(mesh, std::array<index_t, 1>{10}, 3));
                   }),
                   "width is 10, but must be at most 9"));
  });
}

TEST_CASE("ranks outside of a mesh run a symbolic program without knowing extents") {
  on_ranks({3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {2}, std::vector<int>{0, 1}, TestDevice{});
    const auto f = [](const auto& x) { return sum(x, dim<0>{}); };
    const spmd::Graph graph =
        spmd::trace(f, arg<float, TestDevice>("x", {extent("n").at_least(1), 4}));
    spmd::Runner runner(spmd::expand(graph, std::array{schema(S0{})}), mesh);
    using Y = DTensor<float, 1, std::remove_const_t<decltype(mesh)>, Placements<R>>;
    for (const index_t n : {5, 1, 5}) {
      const auto x = full<float>({n, 4}, 2.0f, mesh, S0{});
      const auto [y] = runner.template run<Y>(x);
      if (!mesh.is_member()) continue;
      const auto sums = y.to_local().to(Host{});
      for (index_t j = 0; j < 4; ++j) CHECK(sums(j) == 2.0f * float(n));
    }
  });
}

TEST_CASE("outputs have the same placements for all extents") {
  const auto f = [](const auto& x) { return reshape(x, {x.extent(0), 4 * x.extent(2)}); };
  const spmd::Graph graph =
      spmd::trace(f, arg<float, TestDevice>("x", {extent("n"), 4, extent("m")}));
  on_ranks({1, 2, 3, 4}, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const auto check = [&]<class P>(P p, const spmd::ExpandOptions& options) {
      const spmd::Program program = spmd::expand(graph, std::array{schema(p)}, options);
      spmd::Runner runner(program, mesh);
      const spmd::PlacedValue& output = program.values[std::size_t(program.outputs[0].value)];
      for (const std::array<index_t, 2>& extents :
           {std::array<index_t, 2>{5, 3}, {1, 3}, {1, 1}, {0, 2}, {4, 0}, {3, 1}, {8, 5}}) {
        const index_t n = extents[0], m = extents[1];
        INFO("n = ", n, ", m = ", m);
        const std::array<index_t, 3> shape{n, 4, m};
        const auto x = irregular<float, Placements<P>>(mesh, shape, 1);
        const std::array inputs{spmd::erased(x)};
        const spmd::ErasedTensor y = runner(inputs)[0];
        CHECK(y.layout == output.layout);
        CHECK(y.shape == Shape(std::array<index_t, 2>{n, 4 * m}));
        const auto same = [&]<class Q>(Q) {
          using Y = DTensor<float, 2, std::remove_const_t<decltype(mesh)>, Placements<Q>>;
          if (!(Y::layout == y.layout)) return false;
          const auto whole = spmd::typed<Y>(y, mesh).full_tensor().to(Host{});
          const auto all = x.full_tensor().to(Host{});
          for (index_t i = 0; i < n; ++i)
            for (index_t j = 0; j < 4 * m; ++j)
              if (whole(i, j) != all(i, j / m, j % m)) return false;
          return true;
        };
        CHECK((same(S0{}) || same(S1{}) || same(R{})));
      }
    };
    for (const Shape& ranks : {Shape{}, mesh.extents()}) {
      check(S0{}, {.mesh = ranks});
      check(S1{}, {.mesh = ranks});
      check(Shard<2>{}, {.mesh = ranks});
    }
  });
}
