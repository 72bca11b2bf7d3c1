#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/pad.hpp>
#include <cleave/ops/shapes/roll.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/shapes/triangle.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace parts {
namespace {

using Extents2 = std::array<index_t, 2>;

/// y[i, j] = f(i, j)
template <class F>
Array<double> matrix(index_t rows, index_t columns, F f) {
  return array_of<double>({rows, columns}, [&](const naive::Indices& i) { return f(i[0], i[1]); });
}

}  // namespace

TEST_CASE("a slice shares the elements and counts from either end") {
  const auto x = held<double, 2>({}, Shape(Extents2{4, 6}), {}, {}, 0);
  const auto y = slice(x, dim<1>{}, 1, -1, 2);
  CHECK(y.shape() == Extents2{4, 2});
  CHECK(y.strides() == Extents2{6, 2});
  CHECK(y.data() == x.data() + 1);
  CHECK(narrow(x, dim<0>{}, -2, 2).data() == x.data() + 12);
  CHECK(select(x, dim<0>{}, -1).data() == x.data() + 18);
  CHECK(slice(x, dim<0>{}, 4, 4).shape() == Extents2{0, 6});
  CHECK(slice(x, dim<0>{}, -4, 4).data() == x.data());
}

TEST_CASE("a dimension is split into parts of given lengths, of one length, or equal ones") {
  const auto x = held<double, 2>({}, Shape(Extents2{4, 6}), {}, {}, 0);
  const auto [q, k, v] = split(x, dim<1>{}, {3, 0, 3});
  CHECK(q.shape() == Extents2{4, 3});
  CHECK(k.shape() == Extents2{4, 0});
  CHECK(v.data() == x.data() + 3);
  const auto rows = split(x, dim<0>{}, 3);
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].shape() == Extents2{1, 6});
  const auto halves = chunk<2>(x, dim<-1>{});
  CHECK(halves[1].data() == x.data() + 3);
  CHECK(error_of([&] { split(x, dim<0>{}, {1, 2}); }) ==
        "split: the lengths add up to 3, the extent is 4 [shapes [4, 6]]");
  CHECK(error_of([&] {
          split(x, dim<0>{}, 0);
        }).find("split: the length must be at least 1, not 0") == 0);
  CHECK(error_of([&] {
          chunk<4>(x, dim<1>{});
        }).find("chunk: an extent of 6 is not divisible by 4") == 0);
}

TEST_CASE("indices out of range are errors, nothing is clamped") {
  const auto x = held<double, 2>({}, Shape(Extents2{4, 6}), {}, {}, 0);
  CHECK(error_of([&] { slice(x, dim<0>{}, 0, 5); }) ==
        "slice: index 5 is not in the extent of 4 [shapes [4, 6]]");
  CHECK(error_of([&] { slice(x, dim<0>{}, -5, 4); }).find("slice: index -5") == 0);
  CHECK(error_of([&] { slice(x, dim<0>{}, 3, 1); }).find("slice: a length is negative: -2") == 0);
  CHECK(error_of([&] {
          slice(x, dim<0>{}, 0, 4, 0);
        }).find("slice: the step must be at least 1, not 0") == 0);
  CHECK(error_of([&] { narrow(x, dim<0>{}, 2, 3); }).find("narrow: index 5") == 0);
  CHECK(error_of([&] { select(x, dim<1>{}, 6); }).find("select: index 6") == 0);
  CHECK(error_of([&] { pad(x, dim<1>{}, -1, 0); }).find("pad: a length is negative: -1") == 0);
  CHECK(error_of([&] { squeeze(x, dim<1>{}); }).find("squeeze: dimension 1 has extent 6, not 1") ==
        0);
  CHECK(error_of([&] { expand(x, dim<0>{}, 2); }).find("expand: dimension 0 has extent 4, not 1") ==
        0);
  CHECK(error_of([&] { tile(x, dim<0>{}, -1); }).find("tile: a length is negative") == 0);
  const auto z = held<double, 2>({}, Shape(Extents2{4, 5}), {}, {}, 0);
  CHECK(error_of([&] { cat(dim<0>{}, x, z); }).find("cat: the extents of") == 0);
}

TEST_CASE("results requested to be sharded along the dimension are computed in parts") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    using Cut = Placements<Shard<1>>;
    const auto x = placed<double, Placements<Replicate>>(mesh, Extents2{3, 7}, 0);
    const auto y = placed<double, Placements<Replicate>>(mesh, Extents2{3, 4}, 1);
    const auto a = expected(x, 0), b = expected(y, 1);
    CommTrace trace(world);
    const auto part = slice<Cut>(x, dim<1>{}, 1, 6, 2);
    const auto wide = pad<Cut>(x, dim<1>{}, 3, 2);
    const auto filled = pad<Cut>(x, dim<1>{}, 3, 2, 0.5);
    const auto joint = cat<Cut>(dim<1>{}, x, y);
    CHECK(trace.events().empty());
    check_equal(part, matrix(3, 3, [&](index_t i, index_t j) { return a.at({i, 1 + 2 * j}); }));
    const auto padded = [&](double value) {
      return matrix(
          3, 12, [&](index_t i, index_t j) { return j < 3 || j >= 10 ? value : a.at({i, j - 3}); });
    };
    check_equal(wide, padded(0));
    check_equal(filled, padded(0.5));
    check_equal(joint, matrix(3, 11, [&](index_t i, index_t j) {
                  return j < 7 ? a.at({i, j}) : b.at({i, j - 7});
                }));
    static_assert(lies<decltype(joint), Shard<1>>);
  });
}

TEST_CASE("a part of a sharded dimension keeps its shards; a triangle needs no other rank") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto x = placed<double, Placements<Shard<0>, Shard<1>>>(mesh, Extents2{5, 7}, 0);
    const auto a = expected(x, 0);
    CommTrace trace(world);
    const auto y = slice(x, dim<1>{}, 2, 6);
    CHECK(trace.count() == 1);
    static_assert(lies<decltype(y), Shard<0>, Shard<1>>);
    const auto thirds = split(x, dim<1>{}, {2, 4, 1});
    CHECK(trace.count() == 4);
    check_equal(thirds[1], matrix(5, 4, [&](index_t i, index_t j) { return a.at({i, j + 2}); }));
    check_equal(y, matrix(5, 4, [&](index_t i, index_t j) { return a.at({i, j + 2}); }));
    trace.clear();
    const auto triangle = tril(x, -1);
    CHECK(trace.count() == 0);
    static_assert(lies<decltype(triangle), Shard<0>, Shard<1>>);
    check_equal(triangle,
                matrix(5, 7, [&](index_t i, index_t j) { return j < i ? a.at({i, j}) : 0; }));
  });
}

namespace {

/// Compares y = op(x) with y[i] = x[source(i)], or `else_` where that is negative, along dimension
/// 0, and what this rank receives with what it lacks of the elements from the first to the last of
/// a slice of some step.
template <class X, class Op, class Source>
void check_read(const X& x, const Op& op, const Source& source, double else_ = 0,
                index_t step = 1) {
  const auto a = expected(x, 0);
  CommTrace trace(x.mesh());
  const auto y = op(x);
  static_assert(lies<std::remove_cvref_t<decltype(y)>, Shard<0>>);
  const naive::Indices mesh{x.mesh().state().size()}, at{x.mesh().state().coordinate()[0]};
  const auto own = naive::owned(x.layout, 0, {x.shape()[0], 3}, mesh, at);
  const auto results = naive::owned(x.layout, 0, {y.shape()[0], 3}, mesh, at);
  index_t lacks = 0;
  for (const index_t i : results)
    for (index_t k = 0; k < (i == results.back() ? 1 : step); ++k)
      lacks += source(i) >= 0 && std::find(own.begin(), own.end(), source(i) + k) == own.end();
  CHECK(trace.received_bytes() == lacks * 3 * 8);
  trace.clear();
  check_equal(y, matrix(y.shape()[0], 3, [&](index_t i, index_t j) {
                return source(i) < 0 ? else_ : a.at({source(i), j});
              }));
}

}  // namespace

TEST_CASE("elements move along a sharded dimension; ranks receive only what they lack") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    for (const index_t n : {0, 1, 5, 16}) {
      const auto x = placed<double, Placements<Shard<0>>>(mesh, Extents2{n, 3}, 0);
      for (const index_t first : {index_t(0), n / 3}) {
        for (const index_t step : {1, 2, 3})
          check_read(
              x, [&](const auto& of) { return slice(of, dim<0>{}, first, n, step); },
              [&](index_t i) { return first + step * i; }, 0, step);
        check_read(
            x, [&](const auto& of) { return pad(of, dim<0>{}, first, 2); },
            [&](index_t i) { return i < first || i >= first + n ? -1 : i - first; });
        check_read(
            x, [&](const auto& of) { return pad(of, dim<0>{}, 1, first, 0.5); },
            [&](index_t i) { return i < 1 || i >= 1 + n ? -1 : i - 1; }, 0.5);
      }
      for (const index_t shift : {0, 1, -2, 23})
        check_read(
            x, [&](const auto& of) { return roll(of, dim<0>{}, shift); },
            [&](index_t i) { return ((i - shift) % n + n) % n; });
      check_read(
          x, [](const auto& of) { return flip(of, dim<0>{}); },
          [&](index_t i) { return n - 1 - i; });
    }
  });
}

TEST_CASE("diagonals beyond a matrix leave all or nothing") {
  const auto x = held<double, 2>({}, Shape(Extents2{2, 3}), {}, {}, 0);
  const auto sum_of_squares = [](const auto& y) {
    double total = 0;
    const auto host = y.to(Host{});
    for (index_t i = 0; i < host.size(); ++i) total += host.data()[i] * host.data()[i];
    return total;
  };
  CHECK(sum_of_squares(tril(x, 9)) == sum_of_squares(x));
  CHECK(sum_of_squares(triu(x, -9)) == sum_of_squares(x));
  CHECK(sum_of_squares(tril(x, -9)) == 0);
  CHECK(sum_of_squares(triu(x, 9)) == 0);
}

TEST_CASE("arrays are rolled, transposed and repeated") {
  const auto x = held<double, 2>({}, Shape(Extents2{2, 5}), {}, {}, 0);
  const auto a = x.clone().to(Host{});
  const auto rolled = roll(x, dim<1>{}, 7).to(Host{});
  const auto transposed = flip(transpose(x), dim<0>{}).to(Host{});
  const auto twice = tile(x, dim<1>{}, 2).to(Host{});
  CHECK(tile(x, dim<1>{}, 0).shape() == Extents2{2, 0});
  const auto layers = stack(dim<-1>{}, x, x).to(Host{});
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 5; ++j) {
      CHECK(rolled(i, (j + 7) % 5) == a(i, j));
      CHECK(transposed(4 - j, i) == a(i, j));
      CHECK(twice(i, j) == a(i, j));
      CHECK(twice(i, j + 5) == a(i, j));
      CHECK(layers(i, j, 1) == a(i, j));
    }
}

}  // namespace parts
