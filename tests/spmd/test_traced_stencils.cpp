// Stencils inside of traced functions.
#include <array>
#include <complex>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/core/half.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/grad/tracked_stencil.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd/traced_factories.hpp>
#include <cleave/spmd/traced_stencil.hpp>

#include "each_placements.hpp"
#include "errors.hpp"
#include "like_eager.hpp"

namespace traced_stencil_tests {

using namespace cleave;
using namespace cleave::testing;

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

struct Heat : Stencil {
  static constexpr const char* name = "heat";
  float c = 0.25f;
  constexpr auto operator()(const auto& u) const {
    using V = decltype(u(0, 0));
    return u(0, 0) + V(c) * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - V(4) * u(0, 0));
  }
};
/// Products of complex numbers are not constant expressions with every compiler.
struct DeclaredHeat : Heat {
  static constexpr auto reach = star(1, 1);
};
struct Corners : Stencil {
  constexpr auto operator()(const auto& u, const auto& v) const {
    return u(-2, 1) * v(0, 0) - u(1, -1) * v(0, 3);
  }
};
struct Velocity : Stencil {
  constexpr auto operator()(const auto& vx, const auto& vy, const auto& p, auto dt) const {
    using V = decltype(p(0, 0));
    return std::tuple{vx(0, 0) - V(dt) * (p(1, 0) - p(0, 0)),
                      vy(0, 0) - V(dt) * (p(0, 1) - p(0, -1))};
  }
};
/// Leapfrog: the next step and this one.
struct Leap : Stencil {
  constexpr auto operator()(const auto& now, const auto& before) const {
    using V = decltype(now(0, 0));
    return std::tuple{now(1, 0) + now(0, -1) - V(0.5f) * before(0, 0), now(0, 0)};
  }
};
struct Halve : Stencil {
  static constexpr auto stride = coarsen(2);
  constexpr auto operator()(const auto& u) const { return u(0, 0) + u(1, 1); }
};
struct Double : Stencil {
  static constexpr auto stride = refine(2);
  constexpr auto operator()(const auto& u) const { return u(0, 0); }
};
struct Ramp {
  constexpr double operator()(index_t i, index_t j) const { return 0.5 * double(i) - double(j); }
};

template <class F>
void on_planes(World& world, const F& f) {
  f(init_device_mesh<dp>(world, {world.size()}, TestDevice{}),
    Types<Placements<R>, Placements<S0>, Placements<S1>, Placements<Partial<Sum>>>{});
  if (world.size() % 2 == 0)
    f(init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{}),
      Types<Placements<S0, S1>, Placements<S1, S1>, Placements<R, S0>>{});
}

/// Calls a function of stencils on fields of several extents, under all placements.
template <class T, class F>
void check_field(World& world, const F& f) {
  on_planes(world, [&]<class... P>(const auto& mesh, Types<P...>) {
    for (const std::array<index_t, 2> extents : {std::array<index_t, 2>{13, 10}, {5, 9}, {3, 4}})
      (check_like_eager(f, irregular<T, P>(mesh, extents, 1)), ...);
  });
}

TEST_CASE("a stencil in a program has the bits of the same call on DTensors, with all edges") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto with = [](const auto& of) {
      return [of](const auto& u) { return apply(Heat{}, u, of); };
    };
    check_field<double>(world, with(edges(periodic)));
    check_field<double>(world, with(edges(dirichlet(1.5))));
    check_field<double>(world, with(edges(none)));
    check_field<double>(world, with(edges(dirichlet(Ramp{}), sides(neumann, none))));
    check_field<float>(world, with(edges(periodic, mirror)));
  });
}

TEST_CASE("half and complex elements, and a call without edges") {
  on_ranks({1, 3}, [](World& world) {
    check_field<half>(world, [](const auto& u) { return apply(Heat{}, u, edges(zero)); });
    check_field<std::complex<float>>(
        world, [](const auto& u) { return apply(DeclaredHeat{}, u, edges(periodic)); });
    check_field<double>(world, [](const auto& u) { return apply(Heat{}, u); });
  });
}

TEST_CASE("the elements that programs of stencils compute are those of naive loops") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    on_planes(world, [&]<class... P>(const auto& mesh, Types<P...>) {
      const auto check = [&]<class Q>(Types<Q>) {
        constexpr index_t n = 7, m = 5;
        using Mesh = std::remove_cvref_t<decltype(mesh)>;
        const auto u = irregular<double, Q>(mesh, std::array{n, m}, 1);
        const auto f = [](const auto& x) {
          const auto twice = apply(repeat<2>(Heat{}), x, edges(periodic, dirichlet(2)));
          return apply(Heat{}, mul(twice, 2.0), edges(none));
        };
        spmd::Runner runner(spmd::expand(spmd::trace(f, arg_for(u)), spmd::schemas_of(u)), mesh);
        using Y = DTensor<double, 2, Mesh, without_partials_t<Q>>;
        const auto [y] = runner.template run<Y>(u);
        const auto whole = u.full_tensor().to(Host{}), result = y.full_tensor().to(Host{});
        std::vector<double> now(whole.data(), whole.data() + n * m);
        const auto step = [&](auto read, index_t begin) {
          std::vector<double> next = now;
          for (index_t i = begin; i < n - begin; ++i)
            for (index_t j = begin; j < m - begin; ++j)
              next[std::size_t(i * m + j)] =
                  read(i, j) + 0.25 * (read(i - 1, j) + read(i + 1, j) + read(i, j - 1) +
                                       read(i, j + 1) - 4 * read(i, j));
          now = next;
        };
        const auto at = [&](index_t i, index_t j) {
          return j < 0 || j >= m ? 2.0 : now[std::size_t((i + n) % n * m + j)];
        };
        step(at, 0), step(at, 0);
        for (double& x : now) x *= 2;
        step(at, 1);
        REQUIRE(result.shape() == std::array<index_t, 2>{n - 2, m - 2});
        for (index_t i = 1; i < n - 1; ++i)
          for (index_t j = 1; j < m - 1; ++j)
            CHECK(result(i - 1, j - 1) == now[std::size_t(i * m + j)]);
      };
      (check(Types<P>{}), ...);
    });
  });
}

TEST_CASE("fields with other placements take those of the first, and numbers are operands") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      each_placements<1, R, S0, S1, Partial<Sum>>([&](auto p) {
        using P = decltype(p);
        const std::array<index_t, 2> extents{6, 7};
        const auto vx = irregular<double, P>(mesh, extents, 1);
        const auto vy = irregular<double, Placements<S1>>(mesh, extents, 2);
        const auto pressure = irregular<double, Placements<S0>>(mesh, extents, 3);
        check_like_eager(
            [](const auto& x, const auto& y, const auto& q) {
              const auto [a, b] = apply(Velocity{}, x, y, q, 0.5, edges(periodic, neumann));
              return std::tuple(a, b, apply(Corners{}, b, q, edges(none, zero)), add(a, q));
            },
            vx, vy, pressure);
      });
    });
  });
}

TEST_CASE("coarser and finer results, and repeated stencils") {
  on_ranks({1, 2, 4}, [](World& world) {
    check_field<double>(world, [](const auto& u) {
      const auto coarse = apply(Halve{}, u, edges(periodic));
      return std::tuple(coarse, apply(Double{}, coarse, edges(zero)),
                        apply(repeat<3>(Heat{}), u, edges(mirror)));
    });
  });
}

TEST_CASE("targets of stencils in a trace stand for the results, arguments are written") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      using Mesh = std::remove_cvref_t<decltype(mesh)>;
      const std::array<index_t, 2> extents{6, 5};
      const auto u = irregular<double, Placements<S0>>(mesh, extents, 1);
      const auto v = irregular<double, Placements<S0>>(mesh, extents, 2);
      const auto f = [](const auto& x, const auto& y) {
        apply(out(y), Heat{}, x, edges(periodic));
        return add(x, y);
      };
      const auto expected = apply(Heat{}, u, edges(periodic));
      spmd::Runner runner(
          spmd::expand(spmd::trace(f, arg_for(u), arg_for(v)), spmd::schemas_of(u, v)), mesh);
      const auto [y] = runner.template run<DTensor<double, 2, Mesh, Placements<S0>>>(u, v);
      CHECK(same_bits(v.to_local(), expected.to_local()));
      CHECK(same_bits(y.to_local(), add(u, expected).to_local()));
    });
  });
}

TEST_CASE("gradients of stencils are nodes, too") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto gradient_with = [](const auto& of) {
      return [of](const auto& given) {
        const auto x = requires_grad(given);
        backward(sum(mul(apply(Heat{}, apply(Heat{}, x, of), of), 3.0)));
        return grad(x);
      };
    };
    check_field<double>(world, gradient_with(edges(periodic)));
    check_field<double>(world, gradient_with(edges(dirichlet(1.5), neumann)));
  });
}

TEST_CASE("gradients of coarser and finer results are nodes, too") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      each_placements<1, R, S0, S1>([&](auto p) {
        const auto f = [](const auto& given) {
          const auto x = requires_grad(given);
          const auto coarse = apply(Halve{}, x, edges(periodic));
          backward(sum(mul(apply(Double{}, coarse, edges(periodic)), 3.0)));
          return grad(x);
        };
        check_like_eager(f, irregular<double, decltype(p)>(mesh, std::array<index_t, 2>{8, 6}, 1));
      });
    });
  });
}

TEST_CASE("margins of arguments, and ranks outside of the mesh") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, std::vector<int>{0, 1}, TestDevice{});
    using Mesh = std::remove_cvref_t<decltype(mesh)>;
    const auto u = zeros<double>({5, 4}, mesh, Shard<0>{}, margin(1));
    if (mesh.is_member())
      u.to_local().copy_(
          irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{5, 4}, 1).to_local());
    const auto f = [](const auto& x) { return apply(Heat{}, x, edges(periodic)); };
    spmd::Runner runner(spmd::expand(spmd::trace(f, spmd::arg<double, TestDevice>("x", {5, 4})),
                                     spmd::schemas_of(u)),
                        mesh);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto [y] = runner.run<DTensor<double, 2, Mesh, Placements<S0>>>(u);
      const auto expected = f(u);
      if (mesh.is_member()) CHECK(same_bits(y.to_local(), expected.to_local()));
    }
  });
}

TEST_CASE("a program counts the fields that a stencil exchanges") {
  using namespace spmd;
  const Graph graph =
      trace([](const auto& u, const auto& v) { return apply(Corners{}, u, v, edges(periodic)); },
            arg<float>("u", {8, 6}), arg<float>("v", {8, 6}));
  CHECK(communications(expand(graph, std::array{schema(S0{}), schema(S0{})})) == 1);
  CHECK(communications(expand(graph, std::array{schema(S1{}), schema(S1{})})) == 2);
  CHECK(communications(expand(graph, std::array{schema(R{}), schema(R{})})) == 0);
  const Program moved = expand(graph, std::array{schema(S0{}), schema(S1{})});
  CHECK(count(moved, StepKind::all_to_all) == 1);
  CHECK(communications(moved, std::array<index_t, 1>{1}) == 0);
}

TEST_CASE("repeated steps of a program make one exchange, and are one node") {
  using namespace spmd;
  const Graph graph =
      trace([](const auto& u) { return apply(repeat<3>(Heat{}), u, edges(periodic, zero)); },
            arg<float>("u", {8, 6}));
  CHECK(graph.nodes.size() == 1);
  CHECK(communications(expand(graph, std::array{schema(S0{})})) == 1);
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto u = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{12, 5}, 1);
    const auto q = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{12, 5}, 2);
    check_like_eager(
        [](const auto& now, const auto& before) {
          const auto [a, b] = apply(repeat<2>(Leap{}), now, before, edges(periodic, neumann));
          return std::tuple(add(a, b), apply(repeat<2>(Heat{}), a, edges(periodic)));
        },
        u, q);
    Runner runner(
        expand(trace([](const auto& x) { return apply(repeat<3>(Heat{}), x, edges(zero)); },
                     arg_for(u)),
               schemas_of(u)),
        mesh);
    using Y = DTensor<double, 2, std::remove_cvref_t<decltype(mesh)>, Placements<S0>>;
    const CommTrace once(mesh);
    runner.template run<Y>(u);
    CHECK(once.received_messages() == (world.rank() == 1 && world.size() == 3 ? 2 : 1));
    CHECK(once.received_bytes() == once.received_messages() * 3 * 5 * 8);
  });
  CHECK(contains(error_of([] {
                   static_cast<void>(
                       trace([](const auto& u) { return apply(repeat<2>(Heat{}), u); },
                             arg<float>("u", {8, 6})));
                 }),
                 "heat: repeat requires edges other than `none`"));
}

TEST_CASE("a traced stencil that reads more than there is") {
  const std::string error = error_of([] {
    static_cast<void>(
        spmd::trace([](const auto& u) { return apply(Heat{}, u); }, spmd::arg<float>("u", {1, 3})));
  });
  CHECK(contains(error, "heat: dimension 0 with edges `none` has fewer elements"));
  CHECK(contains(error, "[1, 3]"));
}

}  // namespace traced_stencil_tests
