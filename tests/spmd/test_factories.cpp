// Factories inside of traced functions.
#include <array>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/core/half.hpp>
#include <cleave/dtensor/manual_seed.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/traced_factories.hpp>

#include "each_placements.hpp"
#include "errors.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

/// Each factory meets x [n, m].
struct Factories {
  auto operator()(const auto& x) const {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    const index_t n = x.extent(0), m = x.extent(1);
    return std::tuple(add(x, zeros<T>({n, m}, x.mesh())), mul(x, ones<T>({m}, x.mesh())),
                      add(x, full<T>({n, 1}, T(3), x.mesh())), mul(x, full_like(x, T(2))),
                      add(x, zeros_like(x)), sub(x, ones_like(x)), arange<index_t>(-1, n, x.mesh()),
                      matmul(eye<T>(n, x.mesh()), x), eye<T>(m, x.mesh()));
  }
};

/// Drawn numbers that meet x [n, m].
struct DrawnNumbers {
  auto operator()(const auto& x) const {
    const index_t n = x.extent(0), m = x.extent(1);
    const auto noise = randn<float>({n, m}, x.mesh());
    const auto other = rand<float>({m}, x.mesh());
    return std::tuple(add(x, noise), mul(x, other), noise, randint<index_t>(3, 9, {n}, x.mesh()),
                      bernoulli(0.5, {n, m}, x.mesh()));
  }
};

constexpr auto constant_graph = spmd::frozen([] {
  return spmd::trace(
      [](const auto& x) {
        const index_t n = x.extent(0);
        return add(mul(x, arange<float>(n, x.mesh())), rand<float>({n}, x.mesh()));
      },
      spmd::arg<float>("x", {6}));
});
constexpr std::array constant_schemas{spmd::schema(S0{})};
constexpr auto constant_program =
    spmd::frozen([] { return spmd::expand(constant_graph, constant_schemas); });
static_assert(spmd::communications(constant_program) == 0);

template <class F>
void on_factory_line(World& world, const F& f) {
  f(init_device_mesh<dp>(world, {world.size()}, TestDevice{}));
}

/// The layouts under which a program makes the arrays of a factory.
int made(const spmd::Program& program, std::string_view name, const Layout& layout) {
  int count = 0;
  for (const spmd::Instruction& i : program.code)
    if (i.kind == spmd::InstructionKind::compute && name == i.name)
      count += program.values[std::size_t(i.first)].layout == layout;
  return count;
}
int made(const spmd::Program& program, std::string_view name) {
  int count = 0;
  for (const spmd::Instruction& i : program.code) count += name == i.name;
  return count;
}

}  // namespace

TEST_CASE("factories in a trace give the arrays of the same calls on DTensors") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    on_factory_line(world, [](const auto& mesh) {
      each_placements<1, R, S0, S1, Partial<Sum>>([&](auto p) {
        using P = decltype(p);
        for (const std::array<index_t, 2> extents :
             {std::array<index_t, 2>{5, 3}, {1, 4}, {2, 9}, {0, 3}}) {
          check_like_eager(Factories{}, irregular<float, P>(mesh, extents, 1));
          check_like_eager(Factories{}, irregular<double, P>(mesh, extents, 2));
        }
        check_like_eager(Factories{}, irregular<half, P>(mesh, std::array<index_t, 2>{4, 3}, 1));
        check_like_eager(Factories{},
                         irregular<std::complex<float>, P>(mesh, std::array<index_t, 2>{4, 3}, 1));
      });
    });
  });
}

TEST_CASE("factories in a trace, on two axes, nested shards among them") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{});
    each_placements<2, R, S0, S1>([&](auto p) {
      using P = decltype(p);
      check_like_eager(Factories{}, irregular<double, P>(mesh, std::array<index_t, 2>{5, 7}, 1));
    });
  });
}

TEST_CASE("the elements that a program's factories make are those of their definitions") {
  on_ranks({1, 2, 3, 5}, [](World& world) {
    on_factory_line(world, [](const auto& mesh) {
      using Mesh = std::remove_cvref_t<decltype(mesh)>;
      const index_t n = 7, m = 4;
      const auto x = irregular<double, Placements<S0>>(mesh, std::array{n, m}, 1);
      const auto f = [](const auto& v) {
        const auto columns = arange<double>(2, 6, v.mesh());
        return std::tuple(add(v, columns), mul(v, eye<double>(v.extent(0), v.mesh()).shape()[0]),
                          eye<double>(7, v.mesh(), Shard<1>{}),
                          full<std::int32_t>({7}, 5, v.mesh(), Shard<0>{}));
      };
      spmd::Runner runner(spmd::expand(spmd::trace(f, arg_for(x)), spmd::schemas_of(x)), mesh);
      const auto [sums, products, identity, fives] = runner.template run<
          DTensor<double, 2, Mesh, Placements<S0>>, DTensor<double, 2, Mesh, Placements<S0>>,
          DTensor<double, 2, Mesh, Placements<S1>>, DTensor<std::int32_t, 1, Mesh, Placements<S0>>>(
          x);
      const auto given = x.full_tensor().to(Host{});
      const auto added = sums.full_tensor().to(Host{}), scaled = products.full_tensor().to(Host{});
      const auto ones = identity.full_tensor().to(Host{});
      for (index_t i = 0; i < n; ++i) {
        for (index_t j = 0; j < m; ++j) {
          CHECK(added(i, j) == given(i, j) + double(2 + j));
          CHECK(scaled(i, j) == given(i, j) * 7);
        }
        for (index_t j = 0; j < n; ++j) CHECK(ones(i, j) == (i == j ? 1 : 0));
        CHECK(fives.full_tensor().to(Host{})(i) == 5);
      }
    });
  });
}

TEST_CASE("a factory without placements is made only as its users require, and nothing moves") {
  using namespace spmd;
  const auto f = [](const auto& x) {
    const auto noise = rand<float>({x.extent(0), x.extent(1)}, x.mesh());
    static_cast<void>(ones<float>({3}, x.mesh()));
    return std::tuple(add(x, noise), mul(x, noise), zeros_like(x));
  };
  const Graph graph = trace(f, arg<float>("x", {8, 6}));
  const Program rows = expand(graph, std::array{schema(S0{}, R{})});
  CHECK(made(rows, "rand") == 1);
  CHECK(made(rows, "rand", schema(S0{}, R{})) == 1);
  CHECK(made(rows, "full_like", schema(S0{}, R{})) == 1);
  CHECK(made(rows, "full") == 0);
  CHECK(communications(rows) == 0);
  const Program whole = expand(graph, std::array{schema(R{}, R{})});
  CHECK(made(whole, "rand", schema(R{}, R{})) == 1);
}

TEST_CASE("a factory whose users require several placements is made once for each") {
  using namespace spmd;
  const auto f = [](const auto& x, const auto& y) {
    const auto noise = rand<float>({x.extent(0), x.extent(1)}, x.mesh(), Shard<0>{});
    return std::tuple(add(x, noise), add<Placements<Shard<1>>>(y, noise), noise,
                      redistribute(noise, Replicate{}));
  };
  const Program program = expand(trace(f, arg<float>("x", {8, 6}), arg<float>("y", {8, 6})),
                                 std::array{schema(S0{}), schema(S1{})});
  CHECK(made(program, "rand", schema(S0{})) == 1);
  CHECK(made(program, "rand", schema(S1{})) == 1);
  CHECK(made(program, "rand", schema(R{})) == 1);
  CHECK(communications(program) == 0);
}

TEST_CASE("each run draws the numbers of the same factories called on DTensors") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    on_factory_line(world, [&](const auto& mesh) {
      each_placements<1, R, S0, S1>([&](auto p) {
        using P = decltype(p);
        const auto x = irregular<float, P>(mesh, std::array<index_t, 2>{5, 3}, 1);
        const spmd::Graph graph = spmd::trace(DrawnNumbers{}, arg_for(x));
        CHECK(graph.draws == 4);
        spmd::Runner runner(spmd::expand(graph, spmd::schemas_of(x)), mesh);
        for (std::uint64_t run = 0; run < 2; ++run) {
          manual_seed(world, 5 + run);
          std::apply(
              [&]<class... Y>(const Y&... eager) {
                const RandomState after = random_state(world);
                manual_seed(world, 5 + run);
                const auto outputs = runner.template run<Y...>(x);
                CHECK(random_state(world) == after);
                std::apply(
                    [&](const Y&... y) {
                      CHECK((same_bits(y.to_local(), eager.to_local()) && ...));
                    },
                    outputs);
              },
              DrawnNumbers{}(x));
        }
      });
    });
  });
}

TEST_CASE("factories are nodes of constant programs") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    manual_seed(world, 3);
    const auto x = ones<float>({6}, mesh, S0{});
    const auto [y] = spmd::run<constant_program>(mesh, x);
    manual_seed(world, 3);
    const auto drawn = rand<float>({6}, mesh);
    for (index_t i = 0; i < 6; ++i) CHECK(y.full_tensor()(i) == float(i) + drawn.to_local()(i));
  });
}

TEST_CASE("a factory is a constant of a gradient") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_factory_line(world, [](const auto& mesh) {
      const auto f = [](const auto& given) {
        const auto x = requires_grad(given);
        const auto weights = arange<double>(x.extent(1), x.mesh());
        backward(sum(mul(add(x, ones_like(x)), weights)));
        return grad(x);
      };
      each_placements<1, R, S0, S1>([&](auto p) {
        check_like_eager(f, irregular<double, decltype(p)>(mesh, std::array<index_t, 2>{5, 3}, 1));
      });
    });
  });
}

TEST_CASE("a factory with a negative extent, other placements than axes, or after its trace") {
  using namespace spmd;
  CHECK(contains(error_of([] {
                   static_cast<void>(
                       trace([](const auto& x) { return zeros<float>({2, -1}, x.mesh()); },
                             arg<float>("x", {3})));
                 }),
                 "negative"));
  const Graph graph = trace([](const auto& x) { return zeros<float>({2}, x.mesh(), R{}, R{}); },
                            arg<float>("x", {3}));
  const Program program = expand(graph, std::array{schema(R{})});
  CHECK(to_string(program.fault) ==
        "node 0 (full): its request and the schemas have different numbers of placements");
  CHECK(expand(trace([](const auto& x) { return ones<float>({2}, x.mesh(), Shard<1>{}); },
                     arg<float>("x", {3})),
               std::array{schema(R{})})
            .fault.kind == FaultKind::asked_shard);
  std::optional<TracedMesh<Host>> late;
  static_cast<void>(trace(
      [&](const auto& x) {
        late = x.mesh();
        return x;
      },
      arg<float>("x", {3})));
  CHECK(contains(error_of([&] { static_cast<void>(zeros<float>({2}, *late)); }),
                 "the mesh of a traced value is used after its trace has ended"));
}
