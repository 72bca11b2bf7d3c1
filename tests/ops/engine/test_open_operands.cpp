// Operations on tensors whose cut points or blocks are chosen at run time: results are cut as the
// operands, and operands that are cut otherwise are redistributed, or an error names both.
#include <algorithm>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/apply_op.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/reductions/argmax.hpp>
#include <cleave/ops/reductions/cumsum.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>
#include <cleave/ops/stencil/apply.hpp>

#include "errors.hpp"
#include "ranks.hpp"

using namespace cleave;

namespace {

/// Integers, so that sums are exact in any order.
Tensor<double, 2> cut_integers(index_t rows, index_t columns) {
  const Tensor<double, 2> x({rows, columns});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i * i % 17);
  return x;
}

/// The sum over one dimension, of element pairs, and so on: naive loops over the global arrays.
template <class F>
Tensor<double, 2> cut_array(index_t rows, index_t columns, const F& f) {
  const Tensor<double, 2> y({rows, columns});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) y.data()[i * columns + j] = f(i, j);
  return y;
}
double cut_element(const Tensor<double, 2>& x, index_t i, index_t j) {
  return x.data()[i * x.shape()[1] + j];
}

template <class A, class B>
bool same_as_naive(const A& a, const B& b) {
  return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.size(), b.data());
}

struct CutLaplace : Stencil {
  constexpr auto operator()(const auto& u) const {
    return u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4. * u(0, 0);
  }
};

/// Three kinds for dimension 0 of 7 indices on three ranks.
template <class F>
void each_open_cut(const F& f) {
  f(Cuts<0>{0, 4, 4, 7});
  f(Cuts<0>{0, 0, 0, 7});
  f(BlockCyclic<0>(2));
}

struct DoubledCut {
  static constexpr const char* factors = "ij->ij";
};

}  // namespace

TEST_CASE("results of equally cut operands are cut in the same way, without communication") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {3});
    const auto a = cut_integers(7, 8), b = cut_integers(7, 5);
    each_open_cut([&](auto along) {
      const auto x = distribute_tensor(a, mesh, along);
      const auto y = distribute_tensor(b, mesh, along);
      CAPTURE(to_string(x.placements()));
      const auto stays = [&](const auto& z) {
        return to_string(z.placements()) == to_string(x.placements());
      };
      const auto sum = call_op<explicit_communication>(ops::Add{}, x, x);
      static_assert(std::is_same_v<decltype(sum.placements()), Placements<decltype(along)>>);
      CHECK(stays(sum));
      CHECK(same_as_naive(sum.full_tensor(), cut_array(7, 8, [&](auto i, auto j) {
                            return 2 * cut_element(a, i, j);
                          })));
      CHECK(stays(x * 3.));
      CHECK(stays(zeros_like(x)));
      CHECK((stays(cumsum(x, dim<1>{})) || !x.layout.is_box()));
      CHECK(stays(transpose(transpose(x))));
      CHECK(same_as_naive(transpose(x).full_tensor(),
                          cut_array(8, 7, [&](auto i, auto j) { return cut_element(a, j, i); })));
      const auto rows = cleave::sum(x, dim<1>{});
      CHECK(stays(rows));
      const auto columns = cleave::sum(x, dim<0>{});
      for (index_t j = 0; j < 8; ++j) {
        double expected = 0;
        for (index_t i = 0; i < 7; ++i) expected += cut_element(a, i, j);
        CHECK(columns.full_tensor().data()[j] == expected);
      }
      for (index_t i = 0; i < 7; ++i) {
        double expected = 0;
        for (index_t j = 0; j < 8; ++j) expected += cut_element(a, i, j);
        CHECK(rows.full_tensor().data()[i] == expected);
      }
      const auto product = call_op<explicit_communication>(ops::Matmul{}, transpose(x), y);
      static_assert(std::is_same_v<decltype(product.placements()), Placements<Partial<Sum>>>);
      CHECK(same_as_naive(product.full_tensor(), cut_array(8, 5, [&](auto i, auto j) {
                            double dot = 0;
                            for (index_t k = 0; k < 7; ++k)
                              dot += cut_element(a, k, i) * cut_element(b, k, j);
                            return dot;
                          })));
      const auto twice =
          apply_op<DoubledCut>("twice", [](const Tensor<double, 2>& z) { return z + z; }, x);
      CHECK(stays(twice));
      CHECK(same_as_naive(twice.full_tensor(), sum.full_tensor()));
      auto target = zeros_like(x);
      call_op(out(target), ops::Add{}, x, x);
      CHECK(same_as_naive(target.full_tensor(), sum.full_tensor()));
      CHECK(same_as_naive(redistribute(x, along).to_local(), x.to_local()));
      CHECK(same_as_naive(argmax(x, dim<0>{}).full_tensor(), argmax(a, dim<0>{})));
      CHECK(same_as_naive(cumsum(x, dim<0>{}).full_tensor(), cumsum(a, dim<0>{})));
      CHECK(
          same_as_naive(slice(x, dim<0>{}, 1, 6).full_tensor(), slice(a, dim<0>{}, 1, 6).clone()));
    });
  });
}

TEST_CASE("of operands that are cut otherwise the first one stays, and the trace shows the other") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {3});
    const auto a = cut_integers(7, 8);
    const auto expected = cut_array(7, 8, [&](auto i, auto j) { return 2 * cut_element(a, i, j); });
    each_open_cut([&](auto p) {
      const auto x = distribute_tensor(a, mesh, p);
      const auto check = [&](const auto& y) {
        CHECK(to_string((x + y).placements()) == to_string(x.placements()));
        CHECK(to_string((y + x).placements()) == to_string(y.placements()));
        CHECK(same_as_naive((x + y).full_tensor(), expected));
        CHECK(same_as_naive((y + x).full_tensor(), expected));
      };
      each_open_cut([&](auto q) { check(distribute_tensor(a, mesh, q)); });
      check(distribute_tensor(a, mesh, Shard<0>{}));
      check(distribute_tensor(a, mesh, Shard<1>{}));
      check(distribute_tensor(a, mesh, Balanced<0>{}));
      check(distribute_tensor(a, mesh, Owned<1>{}));
      CHECK(same_as_naive((x + from_local(a, mesh)).full_tensor(), expected));
    });
    const auto x = distribute_tensor(a, mesh, Cuts<0>{0, 4, 4, 7});
    const auto y = distribute_tensor(a, mesh, Cuts<0>{0, 4, 5, 7});
    CommTrace trace(world);
    const auto z = x + y;
    CHECK(trace.count() == 1);
    const std::string error =
        cleave::testing::error_of([&] { call_op<explicit_communication>(ops::Add{}, x, y); });
    CHECK_MESSAGE(cleave::testing::contains(
                      error,
                      "operand 1 would be redistributed from (Cuts(0, [0, 4, 5, 7])) to "
                      "(Cuts(0, [0, 4, 4, 7]))"),
                  error);
    auto target = zeros_like(y);
    const std::string other =
        cleave::testing::error_of([&] { call_op(out(target), ops::Add{}, x, x); });
    CHECK_MESSAGE(cleave::testing::contains(other, "the result has the placements"), other);
  });
}

TEST_CASE("cuts of different dimensions of the operands are not confused") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {2});
    const auto a = cut_integers(7, 6), b = cut_integers(6, 6);
    const auto expected = cut_array(7, 6, [&](auto i, auto j) {
      double dot = 0;
      for (index_t k = 0; k < 6; ++k) dot += cut_element(a, i, k) * cut_element(b, k, j);
      return dot;
    });
    const auto check = [&](auto p, auto q) {
      const auto x = distribute_tensor(a, mesh, p);
      const auto y = distribute_tensor(b, mesh, q);
      CHECK(same_as_naive(matmul(x, y).full_tensor(), expected));
    };
    check(Cuts<0>{0, 2, 7}, Cuts<0>{0, 1, 6});
    check(Cuts<0>{0, 2, 7}, Cuts<1>{0, 1, 6});
    check(Cuts<1>{0, 2, 6}, Cuts<0>{0, 1, 6});
    check(Cuts<1>{0, 2, 6}, Cuts<1>{0, 1, 6});
    check(Cuts<1>{0, 2, 6}, BlockCyclic<0>(1));
    check(BlockCyclic<1>(3), BlockCyclic<1>(1));
    check(Replicate{}, Cuts<1>{0, 5, 6});
    const auto x = distribute_tensor(a, mesh, Cuts<0>{0, 2, 7});
    const auto y = distribute_tensor(a, mesh, Cuts<1>{0, 5, 6});
    const auto sum = call_op<Placements<Cuts<1>>>(ops::Add{}, x, y);
    CHECK(to_string(sum.placements()) == to_string(y.placements()));
    CHECK(same_as_naive(sum.full_tensor(),
                        cut_array(7, 6, [&](auto i, auto j) { return 2 * cut_element(a, i, j); })));
  });
}

TEST_CASE("gradients are cut as their values, and stencils read across cut points") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {3});
    const auto a = cut_integers(7, 8);
    each_open_cut([&](auto p) {
      const auto x = requires_grad(distribute_tensor(a, mesh, p));
      const auto y = distribute_tensor(a, mesh, Shard<1>{});
      backward(cleave::sum(x * x * y));
      CHECK(to_string(grad(x).placements()) == to_string(x.value().placements()));
      CHECK(same_as_naive(grad(x).full_tensor(), cut_array(7, 8, [&](auto i, auto j) {
                            return 2 * cut_element(a, i, j) * cut_element(a, i, j);
                          })));
      const auto z = requires_grad(distribute_tensor(a, mesh, Shard<1>{}));
      backward(cleave::sum(redistribute(z, p) * distribute_tensor(a, mesh, p)));
      CHECK(same_as_naive(grad(z).full_tensor(), a));
    });
    const auto value = [&](index_t i, index_t j) {
      return i < 0 || j < 0 || i >= 7 || j >= 8 ? 0. : cut_element(a, i, j);
    };
    const auto expected = cut_array(7, 8, [&](auto i, auto j) {
      return value(i - 1, j) + value(i + 1, j) + value(i, j - 1) + value(i, j + 1) -
             4 * value(i, j);
    });
    const auto stencil = [&](auto p) {
      const auto y = apply(CutLaplace{}, distribute_tensor(a, mesh, p), edges(zero));
      CHECK(to_string(y.placements()) == to_string(Placements<decltype(p)>(p)));
      CHECK(same_as_naive(y.full_tensor(), expected));
    };
    stencil(Cuts<0>{0, 4, 4, 7});
    stencil(Cuts<0>{0, 0, 1, 7});
    stencil(Cuts<1>{0, 1, 8, 8});
  });
}
