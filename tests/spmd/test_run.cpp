// The interpreter compared with eager calls, bit by bit.
#include <array>
#include <complex>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/from_local.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/indices/one_hot.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "each_placements.hpp"
#include "like_eager.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using R = Replicate;
using S0 = Shard<0>;
using S1 = Shard<1>;
using Sums = Partial<Sum>;

template <class F>
void on_square(World& world, const F& f) {
  f(init_device_mesh<dp, tp>(world, {world.size() == 6 ? 3 : 2, 2}, TestDevice{}));
}

template <class T, class Mesh, class X, class W1, class B1, class W2>
void check_layers(const Mesh& mesh, X, W1, B1, W2) {
  check_like_eager(TwoLayers{}, irregular<T, X>(mesh, std::array<index_t, 2>{7, 5}, 1),
                   irregular<T, W1>(mesh, std::array<index_t, 2>{5, 9}, 2),
                   irregular<T, B1>(mesh, std::array<index_t, 1>{9}, 3),
                   irregular<T, W2>(mesh, std::array<index_t, 2>{9, 3}, 4));
}

/// Two results with different dimensions: for a sharded matrix, one is sharded, the other Partial.
struct SumsOfBoth {
  static constexpr const char* name = "sums_of_rows_and_columns";
  static constexpr const char* factors = "ab->a,b";
  template <class T>
  using result_of = Types<T, T>;
  static void kernel(const auto& on, const Task&, const auto& rows, const auto& columns,
                     const auto& x) {
    reduce_dims<Sum>(on, x, 2u, rows);
    reduce_dims<Sum>(on, x, 1u, columns);
  }
};

constexpr auto reductions = [](const auto& x) {
  return std::tuple(sum(x, dim<0>{}), mean(x, dim<1>{}), max(x, dim<1>{}), min(x),
                    prod(x, dim<0>{}), sum(square(x)));
};
constexpr auto with_numbers = [](const auto& x) {
  const auto y = sub(mul(x, 2.5f), 1.0f);
  return std::tuple(y, add(3.0f, y), relu(mul(y, -0.5f)), div(sum(y), 7.0f));
};
constexpr auto extremes = [](const auto& x) {
  return std::tuple(argmin(x, dim<0>{}), argmax(x, dim<0>{}), argmax(x, dim<1>{}));
};

}  // namespace

TEST_CASE("a program of two layers gives the results of eager calls, on one axis") {
  on_ranks({1, 2, 3, 4, 5, 6, 7}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      using P = Placements<R>;
      using Q0 = Placements<S0>;
      using Q1 = Placements<S1>;
      using QS = Placements<Sums>;
      check_layers<float>(mesh, Q0{}, P{}, P{}, P{});    // data parallel
      check_layers<float>(mesh, P{}, Q1{}, Q0{}, Q0{});  // tensor parallel
      check_layers<double>(mesh, Q1{}, Q0{}, P{}, Q1{});
      check_layers<double>(mesh, QS{}, Q1{}, QS{}, Q0{});
    });
  });
}

TEST_CASE("a program of two layers gives the results of eager calls, on two axes") {
  on_ranks({4, 6}, [](World& world) {
    on_square(world, [](const auto& mesh) {
      using P = Placements<R, R>;
      check_layers<float>(mesh, Placements<S0, R>{}, Placements<R, S1>{}, Placements<R, S0>{},
                          Placements<R, S0>{});
      check_layers<double>(mesh, Placements<S0, S0>{}, Placements<S1, S1>{}, P{},
                           Placements<S0, S1>{});
      check_layers<float>(mesh, Placements<Sums, S1>{}, P{}, Placements<S0, Sums>{},
                          Placements<S1, S0>{});
    });
  });
}

TEST_CASE("complex products are those of eager calls") {
  on_ranks({1, 3, 4}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto f = [](const auto& x, const auto& w) {
        const auto y = matmul(x, w);
        return std::tuple(y, conj(transpose(y)), sum(y, dim<0>{}));
      };
      using Complex = std::complex<float>;
      const auto x = irregular<Complex, Placements<S1>>(mesh, std::array<index_t, 2>{4, 7}, 1);
      check_like_eager(f, x,
                       irregular<Complex, Placements<S0>>(mesh, std::array<index_t, 2>{7, 3}, 2));
      check_like_eager(f, x,
                       irregular<Complex, Placements<Sums>>(mesh, std::array<index_t, 2>{7, 3}, 2));
    });
  });
}

TEST_CASE("reductions, numbers and several results are those of eager calls") {
  on_ranks({1, 2, 3, 7}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      each_placements<1, R, S0, S1, Sums>([&](auto p) {
        using P = decltype(p);
        for (const std::array<index_t, 2> extents : {std::array<index_t, 2>{5, 3}, {2, 9}}) {
          check_like_eager(reductions, irregular<double, P>(mesh, extents, 1));
          check_like_eager(with_numbers, irregular<float, P>(mesh, extents, 2));
          check_like_eager(extremes, irregular<float, P>(mesh, extents, 3));   // keys
          check_like_eager(extremes, irregular<double, P>(mesh, extents, 4));  // pairs
        }
      });
    });
  });
}

TEST_CASE("on two axes, nested shards among them, too") {
  on_ranks({4}, [](World& world) {
    on_square(world, [](const auto& mesh) {
      each_placements<2, S0, S1, Sums>([&](auto p) {
        using P = decltype(p);
        constexpr std::array<index_t, 2> extents{5, 7};
        check_like_eager(reductions, irregular<float, P>(mesh, extents, 1));
        check_like_eager(extremes, irregular<float, P>(mesh, extents, 2));
      });
    });
  });
}

TEST_CASE("results of one node may lie differently") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto f = [](const auto& x) {
        const auto [rows, columns] = call_op(SumsOfBoth{}, x);
        const auto [more, others] = call_op<Placements<Shard<0>>>(SumsOfBoth{}, square(x));
        return std::tuple(exp(rows), tanh(columns), more, others);
      };
      each_placements<1, R, S0, S1, Sums>([&](auto p) {
        check_like_eager(f, irregular<double, decltype(p)>(mesh, std::array<index_t, 2>{5, 6}, 1));
      });
    });
  });
}

TEST_CASE("placements requested inside of a trace are those of eager calls") {
  on_ranks({1, 2, 4, 5}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto f = [](const auto& x, const auto& w) {
        const auto y = matmul<Placements<Shard<-1>>>(x, w);
        const auto z = redistribute(y, Shard<0>{});
        const auto t = transpose(z);
        return std::tuple(y, z, t, add<Placements<Replicate>>(t, 1.0),
                          matmul<explicit_communication>(redistribute(x, Replicate{}),
                                                         redistribute(w, Replicate{})));
      };
      each_placements<1, R, S0, S1, Sums>([&](auto p) {
        check_like_eager(f, irregular<double, decltype(p)>(mesh, std::array<index_t, 2>{6, 5}, 1),
                         irregular<double, Placements<S1>>(mesh, std::array<index_t, 2>{5, 3}, 2));
      });
    });
  });
}

TEST_CASE("extents of 1 repeat in programs as in eager calls") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto f = [](const auto& x, const auto& row) {
        return std::tuple(add(x, row), mul(row, x), sum(sub(x, row), dim<0>{}));
      };
      each_placements<1, R, S0, S1>([&](auto p) {
        const auto x = irregular<float, decltype(p)>(mesh, std::array<index_t, 2>{5, 4}, 1);
        check_like_eager(f, x,
                         irregular<float, Placements<R>>(mesh, std::array<index_t, 2>{1, 4}, 2));
        check_like_eager(f, x,
                         irregular<float, Placements<S1>>(mesh, std::array<index_t, 2>{1, 4}, 2));
      });
    });
  });
}

TEST_CASE("operations with extents or places of their own give the results of eager calls") {
  on_ranks({1, 2, 3}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto f = [](const auto& classes) {
        const auto y = one_hot<float>(classes, 6);
        return std::tuple(y, sum(y, dim<0>{}), unsqueeze(sum(y, dim<1>{}), dim<0>{}));
      };
      each_placements<1, R, S0>([&](auto p) {
        check_like_eager(f,
                         irregular<std::int64_t, decltype(p)>(mesh, std::array<index_t, 1>{7}, 1));
      });
    });
  });
}

TEST_CASE("outputs may be inputs, the same value twice, and views of each other") {
  on_ranks({1, 2, 4}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto f = [](const auto& x) {
        const auto y = relu(x);
        return std::tuple(x, y, y, transpose(y), redistribute(x, Shard<0>{}));
      };
      check_like_eager(f, irregular<float, Placements<R>>(mesh, std::array<index_t, 2>{3, 4}, 1));
      check_like_eager(f, irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{3, 4}, 1));
      check_like_eager(f,
                       irregular<float, Placements<Sums>>(mesh, std::array<index_t, 2>{3, 4}, 1));
    });
  });
}

TEST_CASE("a redistributed value shares no elements with its source, as in eager calls") {
  on_ranks({1, 2}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      using P = Placements<S0>;
      using Y = DTensor<float, 1, std::remove_cvref_t<decltype(mesh)>, Placements<R>>;
      const auto x = irregular<float, P>(mesh, std::array<index_t, 1>{2 * mesh.size()}, 1);
      const spmd::Graph graph =
          spmd::trace([](const auto& v) { return redistribute(v, Replicate{}); }, arg_for(x));
      const spmd::Program program = spmd::expand(graph, spmd::schemas_of(x));
      spmd::Runner runner(program, mesh);
      const auto [y] = runner.template run<Y>(x);
      CHECK(y.to_local().data() != x.to_local().data());
    });
  });
}

TEST_CASE("a program redistributes a shared value once and frees values after their last use") {
  on_ranks({2}, [](World& world) {
    on_line(world, [](const auto& mesh) {
      const auto x = irregular<float, Placements<S0>>(mesh, std::array<index_t, 2>{6, 5}, 1);
      const auto f = [](const auto& v) {
        const auto sums = sum(v, dim<0>{});
        return std::tuple(exp(sums), tanh(sums), square(sums));
      };
      using Y = DTensor<float, 1, std::remove_cvref_t<decltype(mesh)>, Placements<S0>>;
      spmd::Runner runner(spmd::expand(spmd::trace(f, arg_for(x)), spmd::schemas_of(x)), mesh);
      const CommTrace trace(mesh.communicator());
      const auto [a, b, c] = runner.template run<Y, Y, Y>(x);
      CHECK(trace.count() == 1);
      CHECK_FALSE(a.to_local().shared());
      CHECK_FALSE(c.to_local().shared());
    });
  });
}

TEST_CASE("ranks outside of a mesh take no part in a program") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, std::vector<int>{0, 1}, TestDevice{});
    const auto local = Tensor<double, 1>({2}, {1, 2}).to(TestDevice{});
    const auto x = from_local(local, mesh, Shard<0>{});  // [4] on every rank of the mesh
    const auto f = [](const auto& v) { return std::tuple(add(v, 1.0), sum(v)); };
    const spmd::Graph graph = spmd::trace(f, spmd::arg<double, TestDevice>("x", {4}));
    spmd::Runner runner(spmd::expand(graph, spmd::schemas_of(x)), mesh);
    using Mesh = std::remove_cvref_t<decltype(mesh)>;
    using Y = DTensor<double, 1, Mesh, Placements<Shard<0>>>;
    using Total = DTensor<double, 0, Mesh, Placements<Replicate>>;
    const auto [y, total] = runner.run<Y, Total>(x);
    if (!mesh.is_member()) return;
    CHECK(y.full_tensor().to(Host{})(3) == 3);
    CHECK(total.to_local().item() == 6);
  });
}
