#include <array>
#include <complex>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/products/matmul.hpp>

#include "../placed.hpp"
#include "../products.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("a product is right for all placements of its operands on one axis") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    check_all<double, 1, Replicate, Shard<0>, Shard<1>, Partial<Sum>, Partial<Avg>, Partial<Max>,
              Partial<Min>>(mesh, {{5, 6, 7}, {1, 2, 1}, {4, 0, 3}, {0, 3, 2}, {8, 8, 8}});
    check_all<std::int64_t, 1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>(mesh, {{5, 3, 7}});
    check_all<std::complex<float>, 1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>(mesh,
                                                                                   {{3, 5, 2}});
    check_all<float, 1, Replicate, Shard<0>, Shard<1>, Partial<Product>>(mesh, {{3, 5, 2}});
  });
}

TEST_CASE("the placements of a product follow from those of its operands") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    CommTrace trace(world);
    // y[S0,S1] = x[S0,R] · w[R,S1]
    const auto x =
        placed<float, Placements<Shard<0>, Replicate>>(mesh, std::array<index_t, 2>{5, 6}, 0);
    const auto w =
        placed<float, Placements<Replicate, Shard<1>>>(mesh, std::array<index_t, 2>{6, 7}, 1);
    const auto y = matmul(x, w);
    static_assert(std::is_same_v<decltype(y)::placements_type, Placements<Shard<0>, Shard<1>>>);
    // y[S0,P] = x[S0,S1] · w[R,S0]
    const auto u =
        placed<float, Placements<Shard<0>, Shard<1>>>(mesh, std::array<index_t, 2>{5, 6}, 0);
    const auto v =
        placed<float, Placements<Replicate, Shard<0>>>(mesh, std::array<index_t, 2>{6, 7}, 1);
    const auto z = matmul(u, v);
    static_assert(std::is_same_v<decltype(z)::placements_type, Placements<Shard<0>, Partial<Sum>>>);
    CHECK(trace.events().empty());
  });
}

TEST_CASE("a product has the requested placements") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const std::array<index_t, 2> a{5, 6}, b{6, 7};
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto q) {
        each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto to) {
          const auto x = placed<float, decltype(p)>(mesh, a, 0);
          const auto w = placed<float, decltype(q)>(mesh, b, 1);
          const auto y = matmul<decltype(to)>(x, w);
          static_assert(std::is_same_v<typename decltype(y)::placements_type, decltype(to)>);
          check_equal(y, naive_product(expected(x, 0), expected(w, 1)));
        });
      });
    });
    const auto x = placed<float, Placements<Shard<1>>>(mesh, a, 0);
    const auto w = placed<float, Placements<Shard<0>>>(mesh, b, 1);
    matmul<explicit_communication>(x, w);
    matmul<explicit_communication, Placements<Replicate>>(x, w);
  });
}

TEST_CASE("transposed local storage needs no copy") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    using P = Placements<Shard<0>>;
    const auto transposed =
        placed<double, Placements<Shard<1>>>(mesh, std::array<index_t, 2>{6, 5}, 0);
    using X = DTensor<double, 2, std::remove_const_t<decltype(mesh)>, P>;
    const auto x = X::unchecked(transposed.to_local().transpose(0, 1), mesh, {5, 6});
    const auto w = placed<double, Placements<Replicate>>(mesh, std::array<index_t, 2>{6, 3}, 1);
    const auto y = matmul(x, w);
    const auto from = expected(transposed, 0);
    const auto a =
        array_of<double>({5, 6}, [&](const naive::Indices& i) { return from.at({i[1], i[0]}); });
    check_equal(y, naive_product(a, expected(w, 1)));
  });
}

TEST_CASE("operands that do not fit are refused with their extents") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    using P = Placements<Shard<0>>;
    const auto x = placed<float, P>(mesh, std::array<index_t, 2>{5, 6}, 0);
    const std::string text = error_of([&] { matmul(x, x); });
    CHECK(text.find("matmul: the extents of 'k' in ik,kj->ij differ: operand 1 has 5, preceding "
                    "operands have 6 [shapes [5, 6] and [5, 6]; placements (Shard(0)) and "
                    "(Shard(0)); mesh tp=2; rank ") == 0);
  });
}

TEST_CASE("operands on different meshes of one type are refused") {
  on_ranks({4}, [](World& world) {
    const auto wide = init_device_mesh<dp, tp>(world, {1, 4}, TestDevice{});
    const auto tall = init_device_mesh<dp, tp>(world, {4, 1}, TestDevice{});
    using P = Placements<Replicate, Replicate>;
    const auto x = placed<float, P>(wide, std::array<index_t, 2>{2, 2}, 0);
    const auto w = placed<float, P>(tall, std::array<index_t, 2>{2, 2}, 1);
    const std::string text = error_of([&] { matmul(x, w); });
    CHECK(text.find("matmul: the operands are on different meshes [") == 0);
    CHECK(text.find("mesh dp=1 x tp=4 and dp=4 x tp=1") != text.npos);
  });
}
