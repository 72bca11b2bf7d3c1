// Operations on tensors that are cut in other ways than by chunks: which placements results have,
// and which operands are redistributed; values of all operations are verified elsewhere.
#include <algorithm>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/convolutions/conv.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/products/linear.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/cumsum.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/stencil/apply.hpp>

#include "ranks.hpp"

using namespace cleave;

namespace {

/// Integers, so that sums are exact in any order.
Tensor<double, 2> numbers(index_t rows, index_t columns) {
  const Tensor<double, 2> x({rows, columns});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = double(i * i % 17);
  return x;
}

template <class X>
bool equal(const X& a, const X& b) {
  return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.size(), b.data());
}

template <class X, class... P>
inline constexpr bool is_placed = std::is_same_v<typename X::placements_type, Placements<P...>>;

struct Laplace : Stencil {
  constexpr auto operator()(const auto& u) const {
    return u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4. * u(0, 0);
  }
};

}  // namespace

TEST_CASE("equally cut operands need no communication, and results are cut in the same way") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {3});
    const auto a = numbers(7, 8), b = numbers(8, 5);
    const auto check = [&](auto along) {
      using P = decltype(along);
      const auto x = distribute_tensor(a, mesh, along);
      const auto sum = call_op<explicit_communication>(ops::Add{}, x, x);
      static_assert(is_placed<decltype(sum), P>);
      CHECK(equal(sum.full_tensor(), a + a));
      const auto turned = transpose(x);
      CHECK(equal(turned.full_tensor(), transpose(a).clone()));
      CHECK(equal(cleave::sum(x, dim<0>{}).full_tensor(), cleave::sum(a, dim<0>{})));
      CHECK(equal(cumsum(x, dim<1>{}).full_tensor(), cumsum(a, dim<1>{})));
      CHECK(equal(matmul(x, distribute_tensor(b, mesh, along)).full_tensor(), matmul(a, b)));
    };
    check(BlockCyclic<0, 2>{});
    check(BlockCyclic<1, 1>{});
    check(Balanced<0>{});
    check(Owned<2>{});
  });
}

TEST_CASE("results of operations on cut tensors have the placements of their factors") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {2});
    const auto x = distribute_tensor(numbers(6, 8), mesh, BlockCyclic<1, 3>{});
    const auto w = distribute_tensor(numbers(8, 5), mesh, BlockCyclic<0, 3>{});
    static_assert(is_placed<decltype(transpose(x)), BlockCyclic<0, 3>>);
    static_assert(is_placed<decltype(cleave::sum(x, dim<0>{})), BlockCyclic<0, 3>>);
    static_assert(is_placed<decltype(cleave::sum(x, dim<1>{})), Partial<Sum>>);
    static_assert(is_placed<decltype(matmul(x, w)), Partial<Sum>>);
    const auto shard = distribute_tensor(numbers(6, 8), mesh, Shard<1>{});
    static_assert(is_placed<decltype(x + shard), BlockCyclic<1, 3>>);
    static_assert(is_placed<decltype(shard + x), Shard<1>>);
    CHECK(equal((x + shard).full_tensor(), (shard + x).full_tensor()));
    const auto owned = distribute_tensor(numbers(6, 8), mesh, Owned<1>{});
    static_assert(is_placed<decltype(transpose(owned)), Owned<1, 1>>);
  });
}

TEST_CASE("stencils work on parts that are ranges") {
  on_ranks({3, 5}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()});
    const auto whole = numbers(7, 6);
    const auto expected = apply(Laplace{}, whole, edges(zero));
    CHECK(equal(
        apply(Laplace{}, distribute_tensor(whole, mesh, Balanced<0>{}), edges(zero)).full_tensor(),
        expected));
    CHECK(equal(
        apply(Laplace{}, distribute_tensor(whole, mesh, Balanced<1>{}), edges(zero)).full_tensor(),
        expected));
    CHECK(equal(
        apply(Laplace{}, distribute_tensor(whole, mesh, Owned<1>{}), edges(zero)).full_tensor(),
        expected));
  });
}

TEST_CASE("a bias is added once, however features are cut") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<axes::tp>(world, {world.size()});
    const auto x = numbers(3, 4), weight = numbers(5, 4);
    const Tensor<double, 1> bias({5});
    for (index_t n = 0; n < 5; ++n) bias.data()[n] = double(100 + n);
    const Tensor<double, 2> expected({3, 5});
    for (index_t i = 0; i < 3; ++i)
      for (index_t n = 0; n < 5; ++n) {
        double sum = bias.data()[n];
        for (index_t k = 0; k < 4; ++k) sum += x.data()[i * 4 + k] * weight.data()[n * 4 + k];
        expected.data()[i * 5 + n] = sum;
      }
    const auto check = [&](auto features) {
      CAPTURE(to_string(Placements<decltype(features)>{}));
      const auto placed = distribute_tensor(x, mesh, features);
      const auto filters = distribute_tensor(weight, mesh, features);
      CHECK(equal(linear(placed, filters, distribute_tensor(bias, mesh, Replicate{})).full_tensor(),
                  expected));
      // images of one pixel and filters of one tap multiply the same features
      const auto images = x.reshape<4>({3, 4, 1, 1}), taps = weight.reshape<4>({5, 4, 1, 1});
      const auto y =
          conv2d(distribute_tensor(images, mesh, features), distribute_tensor(taps, mesh, features),
                 distribute_tensor(bias, mesh, Replicate{}));
      CHECK(equal(y.full_tensor().template reshape<2>({3, 5}), expected));
    };
    check(Owned<0, 1>{});
    check(Owned<1, 1>{});
    check(Shard<1>{});
    check(Balanced<1>{});
    check(BlockCyclic<1, 1>{});
    check(BlockCyclic<1, 3>{});
  });
}
