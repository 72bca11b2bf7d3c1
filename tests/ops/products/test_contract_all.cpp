// Products of several arrays under many placements, and their gradients.
#include <array>
#include <complex>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/products/einsum.hpp>

#include "../placed.hpp"
#include "naive_product.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("a product of three arrays is the sum over all indices, uneven and empty, complex too") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    using T = std::complex<double>;
    for (const index_t b : {3, 0})
      each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
        each_placements<1, Replicate, Partial<Sum>>([&](auto q) {
          const auto x = placed<T, decltype(p)>(mesh, std::array<index_t, 2>{5, b}, 0);
          const auto v = placed<T, decltype(q)>(mesh, std::array<index_t, 2>{b, 2}, 1);
          const auto w = placed<T, decltype(p)>(mesh, std::array<index_t, 2>{2, 3}, 2);
          const auto y =
              naive_product<T>("ab,bc,cd->da", {expected(x, 0), expected(v, 1), expected(w, 2)});
          check_equal(einsum("ab,bc,cd->da"_ein, x, v, w), y);
          check_equal(einsum<Placements<Shard<1>>>("ab,bc,cd->da"_ein, x, v, w), y);
        });
      });
  });
}

TEST_CASE("a product of four arrays on two axes has the values and the bytes of its plan") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    each_placements<2, Replicate, Shard<1>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, std::array<index_t, 2>{8, 4}, 0);
      const auto v =
          placed<double, Placements<Shard<0>, Shard<0>>>(mesh, std::array<index_t, 2>{4, 12}, 1);
      const auto w = placed<double, decltype(p)>(mesh, std::array<index_t, 2>{12, 4}, 2);
      const auto u =
          placed<double, Placements<Replicate, Shard<1>>>(mesh, std::array<index_t, 2>{4, 8}, 3);
      using Asked = Placements<Shard<0>, Shard<1>>;
      const ContractionPlan plan = explain<Asked>("ab,bc,cd,de->ae"_ein, {}, x, v, w, u);
      CommTrace trace(world);
      const auto y = einsum<Asked>("ab,bc,cd,de->ae"_ein, x, v, w, u);
      CHECK(trace.received_bytes() <= plan.bytes);
      check_equal(y, naive_product<double>("ab,bc,cd,de->ae", {expected(x, 0), expected(v, 1),
                                                               expected(w, 2), expected(u, 3)}));
    });
  });
}

TEST_CASE("gradients of a product of three arrays are products of the others") {
  on_ranks({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 2>{4, 3}, 0);
    const auto v = placed<double, Placements<Shard<1>>>(mesh, std::array<index_t, 2>{3, 5}, 1);
    const auto w = placed<double, Placements<Replicate>>(mesh, std::array<index_t, 2>{5, 2}, 2);
    const auto tx = requires_grad(x);
    const auto tv = requires_grad(v);
    const auto tw = requires_grad(w);
    const auto y = einsum("ab,bc,cd->ad"_ein, tx, tv, tw);
    backward(sum(square(y)) * 0.5);
    const Array<double> a = expected(x, 0), b = expected(v, 1), c = expected(w, 2);
    const Array<double> g = naive_product<double>("ab,bc,cd->ad", {a, b, c});
    check_equal(grad(tx), naive_product<double>("ad,bc,cd->ab", {g, b, c}));
    check_equal(grad(tv), naive_product<double>("ab,ad,cd->bc", {a, g, c}));
    check_equal(grad(tw), naive_product<double>("ab,bc,ad->cd", {a, b, g}));
  });
}
