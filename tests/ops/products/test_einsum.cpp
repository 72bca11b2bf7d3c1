#include <array>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/products/matmul.hpp>

#include "../placed.hpp"
#include "errors.hpp"
#include "naive_product.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("an einsum of three arrays is the sum of their products under all placements") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      each_placements<1, Replicate, Shard<1>>([&](auto q) {
        const auto a = placed<double, decltype(p)>(mesh, std::array<index_t, 2>{5, 4}, 0);
        const auto b = placed<double, decltype(q)>(mesh, std::array<index_t, 2>{4, 3}, 1);
        const auto c = placed<double, decltype(p)>(mesh, std::array<index_t, 2>{2, 3}, 2);
        check_equal(einsum("ik,kj,nj->ni"_ein, a, b, c),
                    naive_product<double>("ik,kj,nj->ni",
                                          {expected(a, 0), expected(b, 1), expected(c, 2)}));
      });
    });
  });
}

TEST_CASE("an einsum of one array sums and permutes it") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>, Partial<Sum>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, std::array<index_t, 3>{3, 5, 2}, 0);
      const Array<double> all = expected(x, 0);
      check_equal(einsum("abc->cab"_ein, x),
                  array_of<double>({2, 3, 5}, [&](const naive::Indices& i) {
                    return all.at({i[1], i[2], i[0]});
                  }));
      check_equal(einsum("abc->ca"_ein, x), array_of<double>({2, 3}, [&](const naive::Indices& i) {
                    double sum = 0;
                    for (index_t b = 0; b < 5; ++b) sum += all.at({i[1], b, i[0]});
                    return sum;
                  }));
    });
  });
}

TEST_CASE("stacks of one matrix repeat in products of stacks") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<1>, Shard<2>, Shard<3>, Partial<Sum>>([&](auto p) {
      each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>>([&](auto q) {
        const auto x = placed<double, decltype(p)>(mesh, std::array<index_t, 4>{1, 4, 3, 5}, 0);
        const auto w = placed<double, decltype(q)>(mesh, std::array<index_t, 3>{4, 5, 2}, 1);
        const Array<double> left = expected(x, 0), right = expected(w, 1);
        check_equal(matmul(x, w), array_of<double>({1, 4, 3, 2}, [&](const naive::Indices& i) {
                      double sum = 0;
                      for (index_t k = 0; k < 5; ++k)
                        sum += left.at({0, i[1], i[2], k}) * right.at({i[1], k, i[3]});
                      return sum;
                    }));
      });
    });
    const auto x = placed<double, Placements<Replicate>>(mesh, std::array<index_t, 3>{1, 3, 5}, 0);
    const auto w = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 3>{4, 5, 2}, 1);
    const Array<double> left = expected(x, 0), right = expected(w, 1);
    check_equal(matmul(x, w), array_of<double>({4, 3, 2}, [&](const naive::Indices& i) {
                  double sum = 0;
                  for (index_t k = 0; k < 5; ++k)
                    sum += left.at({0, i[1], k}) * right.at({i[0], k, i[2]});
                  return sum;
                }));
  });
}

TEST_CASE("a contracted dimension of extent 1 does not repeat") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 3>{2, 3, 1}, 0);
    const auto w = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 3>{2, 4, 2}, 1);
    const std::string error = error_of([&] { matmul(x, w); });
    CHECK(error.find("matmul: inner extents differ: 1 in x, 4 in w") != error.npos);
    CHECK(error.find("[2, 3, 1] and [2, 4, 2]") != error.npos);
    CHECK_THROWS_AS(einsum("aij,ajk->aik"_ein, x, w), Error);
  });
}

TEST_CASE("a sharded batch is multiplied without communication") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    using P = Placements<Shard<0>, Shard<1>>;
    const auto q = placed<float, P>(mesh, std::array<index_t, 4>{4, 6, 3, 2}, 0);
    const auto k = placed<float, P>(mesh, std::array<index_t, 4>{4, 6, 5, 2}, 1);
    CommTrace trace(world);
    const auto scores = einsum("bhid,bhjd->bhij"_ein, q, k);
    static_assert(std::is_same_v<decltype(scores)::placements_type, P>);
    CHECK(trace.events().empty());
  });
}
