// Operations in place inside of traced functions.
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/spmd/call_program.hpp>
#include <cleave/spmd/then.hpp>

#include "each_placements.hpp"
#include "errors.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;

template <class X>
X copy_of(const X& x) {
  return X::unchecked(x.to_local().clone(), x.mesh(), x.shape());
}

/// Calls f on copies of x, runs its program on other copies, and compares results and arguments.
template <class F, class First, class... X>
void check_updates(const F& f, const First& first, const X&... x) {
  const std::tuple eager_arguments{copy_of(first), copy_of(x)...};
  const std::tuple arguments{copy_of(first), copy_of(x)...};
  const auto eager =
      std::apply([&](const auto&... a) { return as_tuple(f(a...)); }, eager_arguments);
  const spmd::Program program =
      spmd::expand(spmd::trace(f, arg_for(first), arg_for(x)...), spmd::schemas_of(first, x...));
  INFO(to_string(program, first.mesh()));
  REQUIRE(!program.fault);
  spmd::Runner runner(program, first.mesh());
  std::apply(
      [&]<class... Y>(const Y&... y) {
        const auto outputs = std::apply(
            [&](const auto&... a) { return runner.template run<Y...>(a...); }, arguments);
        std::apply(
            [&](const auto&... output) {
              CHECK((same_bits(output.to_local(), y.to_local()) && ...));
            },
            outputs);
      },
      eager);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    CHECK((same_bits(std::get<I>(arguments).to_local(), std::get<I>(eager_arguments).to_local()) &&
           ...));
  }(std::make_index_sequence<sizeof...(X) + 1>{});
}

struct Momentum {
  constexpr auto operator()(const auto& w, const auto& v, const auto& g) const {
    mul_(v, 0.5);
    add_(v, g);
    w -= mul(v, 0.25);
    return sum(w);
  }
};
constexpr auto momentum_graph = spmd::frozen([] {
  using spmd::arg;
  return spmd::trace(Momentum{}, arg<double>("w", {5, 3}), arg<double>("v", {5, 3}),
                     arg<double>("g", {5, 3}));
});
static_assert(momentum_graph.inputs[0].updated >= 0 && momentum_graph.inputs[1].updated >= 0 &&
              momentum_graph.inputs[2].updated < 0);

}  // namespace

TEST_CASE("in-place operations in a trace change the arguments of a run as they change DTensors") {
  on_ranks({1, 2, 3, 7}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      each_placements<1, R, S0, S1>([&](auto p) {
        using P = decltype(p);
        const auto make = [&](std::uint64_t n) {
          return irregular<double, P>(mesh, std::array<index_t, 2>{5, 3}, n);
        };
        check_updates(
            [](const auto& w, const auto& v, const auto& g) {
              const auto before = exp(w);
              const auto same = w;
              mul_(v, 0.5);
              add_(v, g);
              w -= mul(v, 0.25);
              relu_(same);
              return std::tuple(before, exp(w), w, transpose(v), g);
            },
            make(1), make(2), make(3));
      });
    });
  });
}

TEST_CASE("the results of operations may be written to arguments and to temporary values") {
  on_ranks({1, 2, 4}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto x = irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{4, 4}, 1);
      const auto y = irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{4, 4}, 2);
      check_updates(
          [](const auto& a, const auto& b) {
            const auto c = add(a, b);
            mul(out(c), c, 2.0f);
            exp(out(a), b);  // a = exp(b), of the old b
            softmax(out(b), b, dim<1>{});
            add_(b, a);
            map_([](float p, float q) { return p - q; }, c, a);
            return std::tuple(c, sub(a, b));
          },
          x, y);
    });
  });
}

TEST_CASE("a target keeps what was written to it when the operand changes later") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto a = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{4, 5}, 1);
      const auto b = irregular<double, Placements<S1>>(mesh, std::array<index_t, 2>{5, 4}, 2);
      check_updates(
          [](const auto& x, const auto& y) {
            const auto c = exp(x);
            call_op(out(x), ops::Permute<1, 0>{}, y);
            transpose(out(c), y);
            add_(y, 1.0);
            return std::tuple(c, x, y);
          },
          a, b);
      check_updates(
          [](const auto& x, const auto& y) {
            call_op(out(y), ops::Permute<1, 0>{}, x);
            add_(x, 1.0);
            return y;
          },
          a, b);
    });
  });
}

TEST_CASE("copy_ changes its target, in calls and in programs, which also redistribute") {
  on_ranks({1, 2, 3, 7}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      // [y, x] = [x, x + y] by way of a copy that must not follow x
      const auto swapped = [](const auto& y, const auto& x) {
        const auto before = mul(y, 1.0);
        copy_(before, y);
        copy_(y, x);
        add_(x, before);
        copy_(y, y);
        return before;
      };
      each_placements<1, R, S0, S1>([&](auto p) {
        using P = decltype(p);
        const std::array<index_t, 2> extents{5, 3};
        const auto y = irregular<double, P>(mesh, extents, 1);
        const auto x = irregular<double, P>(mesh, extents, 2);
        check_updates(swapped, y, x);
        const auto was_y = y.full_tensor().to(Host{}), was_x = x.full_tensor().to(Host{});
        const auto new_y = copy_of(y), new_x = copy_of(x);
        swapped(new_y, new_x);
        const auto is_y = new_y.full_tensor().to(Host{}), is_x = new_x.full_tensor().to(Host{});
        for (index_t i = 0; i < 15; ++i) {
          CHECK(is_y.data()[i] == was_x.data()[i]);
          CHECK(is_x.data()[i] == was_x.data()[i] + was_y.data()[i]);
        }

        const auto rows = irregular<double, Placements<S0>>(mesh, extents, 3);
        const auto copied = [](const auto& to, const auto& from) {
          copy_(to, from);
          return std::tuple<>{};
        };
        const spmd::Program program =
            spmd::expand(spmd::trace(copied, arg_for(y), arg_for(rows)), spmd::schemas_of(y, rows));
        spmd::Runner(program, mesh).template run<>(y, rows);
        CHECK(same_bits(y.full_tensor(), rows.full_tensor()));
      });
      const auto wide = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{6, 3}, 4);
      const auto here = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{5, 3}, 5);
      CHECK(contains(error_of([&] { copy_(here, wide); }),
                     "copy_: the target and the result differ in mesh or extents"));
    });
  });
}

TEST_CASE("a program that updates its arguments is a constant, and its steps may be joined") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const std::array schemas{spmd::schema(S0{}), spmd::schema(S0{}), spmd::schema(S0{})};
    const spmd::Program program = spmd::expand(momentum_graph, schemas);
    REQUIRE(!program.fault);
    int writes = 0;
    for (const spmd::Instruction& i : program.code)
      writes += i.kind == spmd::InstructionKind::write;
    CHECK(writes == 2);
    CHECK(program.code.back().kind == spmd::InstructionKind::write);
    CHECK(contains(to_string(program, mesh), "write %"));
    CHECK(contains(to_string(momentum_graph), "write %"));
    const auto half = spmd::expand(spmd::trace(
                                       [](const auto& x) {
                                         x *= 2.0;
                                         return x;
                                       },
                                       spmd::arg<double, TestDevice>("x", {4})),
                                   std::array{spmd::schema(S0{})});
    const spmd::Program twice = spmd::then(half, half);
    using Y = DTensor<double, 1, std::remove_cvref_t<decltype(mesh)>, Placements<S0>>;
    const auto x = irregular<double, Placements<S0>>(mesh, std::array<index_t, 1>{4}, 1);
    const auto given = x.full_tensor().to(Host{});
    spmd::Runner runner(twice, mesh);
    const auto [y] = runner.template run<Y>(x);
    for (index_t i = 0; i < 4; ++i) {
      CHECK(y.full_tensor().to(Host{})(i) == 4 * given(i));
      CHECK(x.full_tensor().to(Host{})(i) == 4 * given(i));
    }
  });
}

TEST_CASE("a changed argument is redistributed to its placements before it is written") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto w = irregular<double, Placements<R>>(mesh, std::array<index_t, 2>{3, 2}, 1);
      const auto x = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{6, 3}, 2);
      const auto y = irregular<double, Placements<S0>>(mesh, std::array<index_t, 2>{6, 2}, 3);
      const auto before = w.to_local().clone().to(Host{});
      const auto f = [](const auto& weights, const auto& a, const auto& b) {
        weights -= mul(matmul(transpose(a), b), 0.5);
        return std::tuple<>{};
      };
      const spmd::Program program = spmd::expand(spmd::trace(f, arg_for(w), arg_for(x), arg_for(y)),
                                                 spmd::schemas_of(w, x, y));
      spmd::Runner(program, mesh).template run<>(w, x, y);
      const auto after = w.to_local().to(Host{});
      const auto a = x.full_tensor().to(Host{}), b = y.full_tensor().to(Host{});
      for (index_t i = 0; i < 3; ++i)
        for (index_t j = 0; j < 2; ++j) {
          double slope = 0;
          for (index_t n = 0; n < 6; ++n) slope += a(n, i) * b(n, j);
          CHECK(std::abs(after(i, j) - (before(i, j) - slope / 2)) < 1e-12);
        }
    });
  });
}

TEST_CASE("arguments are written by programs that take composites apart, too") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      each_placements<1, R, S0, S1>([&](auto p) {
        const auto x = irregular<double, decltype(p)>(mesh, std::array<index_t, 2>{4, 5}, 1);
        const auto before = x.full_tensor().clone().to(Host{});
        const auto f = [](const auto& v) {
          const auto unused = softmax(v, dim<0>{});
          static_cast<void>(unused);
          v += softmax(v, dim<1>{});
          return std::tuple<>{};
        };
        spmd::Runner runner(spmd::expand(spmd::trace(f, arg_for(x)), spmd::schemas_of(x)), mesh);
        runner.template run<>(x);
        const auto after = x.full_tensor().to(Host{});
        for (index_t i = 0; i < 4; ++i) {
          double sum = 0;
          for (index_t j = 0; j < 5; ++j) sum += std::exp(before(i, j));
          for (index_t j = 0; j < 5; ++j)
            CHECK(std::abs(after(i, j) - before(i, j) - std::exp(before(i, j)) / sum) < 1e-12);
        }
      });
    });
  });
}

TEST_CASE("changes in place that a trace cannot represent are errors") {
  using namespace spmd;
  const auto traced = [](const auto& f) {
    return error_of(
        [&] { static_cast<void>(trace(f, arg<float>("x", {3, 3}), arg<float>("y", {1, 3}))); });
  };
  CHECK(contains(traced([](const auto& x, const auto&) {
                   add_(transpose(x), 1.0f);
                   return x;
                 }),
                 "add: result of permute [3, 3] of the trace of (x, y) is a view and cannot be "
                 "changed in place in a traced function"));
  CHECK(contains(traced([](const auto& x, const auto&) {
                   const auto view = transpose(x);
                   add_(x, 1.0f);
                   return view;
                 }),
                 "trace: result of permute [3, 3] of the trace of (x, y) is a view of a value "
                 "that was changed in place later"));
  CHECK(contains(traced([](const auto& x, const auto& y) {
                   add_(y, x);
                   return y;
                 }),
                 "add: argument 'y' [1, 3] of the trace of (x, y): the target and the result "
                 "differ in extents [shapes [3, 3] to [1, 3]]"));
  CHECK(contains(traced([](const auto& x, const auto& y) {
                   const auto w = requires_grad(x);
                   const auto loss = sum(square(w));
                   add_(x, 1.0f);
                   backward(loss);
                   return y;
                 }),
                 "was changed in place after the operation had used it"));
  const Graph graph = trace(
      [](const auto& x) {
        exp_(x);
        return x;
      },
      arg<float>("x", {3}));
  CHECK(to_string(expand(graph, std::array{schema(Partial<Sum>{})}).fault) ==
        "input 'x': it is Partial and changed in place; redistribute it before, or declare another "
        "schema");
}

TEST_CASE("an argument that repeats elements is not written") {
  on_ranks({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    using X = DTensor<float, 1, std::remove_cvref_t<decltype(mesh)>, Placements<R>>;
    const auto one = Tensor<float, 1>({1}, {2.0f});
    const auto x =
        X::unchecked(Tensor<float, 1>::adopt(one.data(), {4}, {0}, one.storage()), mesh, {4});
    const auto f = [](const auto& v) {
      add_(v, 1.0f);
      return std::tuple<>{};
    };
    const spmd::Program program =
        spmd::expand(spmd::trace(f, spmd::arg<float>("x", {4})), spmd::schemas_of(x));
    CHECK(contains(error_of([&] { spmd::Runner(program, mesh).template run<>(x); }), "repeats"));
  });
}
