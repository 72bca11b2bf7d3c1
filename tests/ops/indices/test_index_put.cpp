// index_put and index_get by several arrays of indices, against naive loops, under all placements.
#include <array>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/indices/index_put.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

using Extents = std::array<index_t, 3>;

/// Indices [count] below `extent`; with `repeats`, some are equal.
Tensor<index_t, 1> indices_below(index_t extent, index_t count, index_t step) {
  const Tensor<index_t, 1> x({count});
  for (index_t n = 0; n < count; ++n) x(n) = (n * step) % extent;
  return x;
}

}  // namespace

TEST_CASE("elements named by two arrays are put, added and read, shards uneven or empty") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    each_placements<1, Replicate, Shard<0>, Shard<1>, Shard<2>, Partial<Sum>>([&](auto p) {
      each_placements<1, Replicate, Shard<0>, Shard<1>>([&](auto q) {
        each_placements<1, Replicate, Shard<0>>([&](auto r) {
          for (const auto& [extents, count] : {std::pair{Extents{5, 3, 2}, index_t(6)},
                                               {Extents{2, 7, 1}, index_t(3)},
                                               {Extents{4, 4, 3}, index_t(0)}}) {
            const auto x = placed<double, decltype(p)>(mesh, extents, 0);
            const auto v =
                placed<double, decltype(q)>(mesh, std::array<index_t, 2>{count, extents[2]}, 1);
            const auto a = expected(x, 0), b = expected(v, 1);
            const auto i = indices_below(extents[0], count, 3);
            const auto j = indices_below(extents[1], count, 2);
            const auto di = distribute_tensor(i, mesh, decltype(r){});
            const auto dj = distribute_tensor(j, mesh, Replicate{});
            auto put = a, added = a;
            Array<double> read({count, extents[2]});
            for (index_t n = 0; n < count; ++n)
              for (index_t k = 0; k < extents[2]; ++k) {
                put.at({i(n), j(n), k}) = b.at({n, k});
                added.at({i(n), j(n), k}) += b.at({n, k});
                read.at({n, k}) = a.at({i(n), j(n), k});
              }
            check_equal(index_put(x, std::tie(di, dj), v), put);
            check_equal(index_put(x, std::tie(di, dj), v, accumulate), added);
            check_equal(index_get(x, std::tie(di, dj)), read);
          }
        });
      });
    });
  });
}

TEST_CASE(
    "on two axes that shard both indexed dimensions nothing is sent, even if indices repeat") {
  on_ranks({4, 6}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / 2, 2}, TestDevice{});
    const auto x =
        placed<double, Placements<Shard<0>, Shard<1>>>(mesh, std::array<index_t, 2>{5, 3}, 0);
    const Tensor<index_t, 1> i({5}, {4, 0, 4, 2, 4}), j({5}, {2, 1, 2, 0, 1});
    const Tensor<double, 1> v({5}, {100, 200, 300, 400, 500});
    const auto whole = [&](const auto& y) {
      return distribute_tensor(y, mesh, Replicate{}, Replicate{});
    };
    const auto di = whole(i), dj = whole(j);
    const auto dv = whole(v);
    auto put = expected(x, 0), added = put, filled = put;
    for (index_t n = 0; n < 5; ++n) {
      put.at({i(n), j(n)}) = v(n);
      added.at({i(n), j(n)}) += v(n);
      filled.at({i(n), j(n)}) = 7;
    }
    CommTrace trace(world);
    const auto y = index_put(x, std::tie(di, dj), dv);
    const auto z = index_put<explicit_communication>(x, std::tie(di, dj), dv, accumulate);
    const auto w = index_put(x, std::tie(di, dj), 7);
    CHECK(trace.events().empty());
    static_assert(std::is_same_v<decltype(y), decltype(x)>);
    check_equal(y, put);
    check_equal(z, added);
    check_equal(w, filled);
  });
}

TEST_CASE("fewer arrays than dimensions name slices, and wrong indices are named") {
  const Tensor<double, 2> x({3, 2}, {0, 1, 2, 3, 4, 5});
  const Tensor<index_t, 2> i({1, 2}, {2, 0});
  const Tensor<double, 3> v({1, 2, 2}, {10, 11, 12, 13});
  const auto y = index_put(x, std::tie(i), v);
  for (index_t k = 0; k < 2; ++k) {
    CHECK(y(0, k) == 12 + double(k));
    CHECK(y(1, k) == 2 + double(k));
    CHECK(y(2, k) == 10 + double(k));
    CHECK(x(2, k) == 4 + double(k));  // not changed
  }
  const Tensor<index_t, 1> high({2}, {1, 2}), low({2}, {-1, 0}), valid({2}, {0, 2});
  const Tensor<double, 1> w({2}, {1, 2});
  CHECK(contains(error_of([&] { index_put(x, std::tie(valid, high), w); }),
                 "index 2 is not in [0, 2)"));
  CHECK(
      contains(error_of([&] { index_get(x, std::tie(low, high)); }), "index -1 is not in [0, 3)"));
  CHECK(contains(error_of([&] { index_put(x, std::tie(valid, valid), w, accumulate); }),
                 "index 2 is not in [0, 2)"));
}
