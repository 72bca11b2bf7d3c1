// Stencils between grids: restriction, interpolation, corrections, on any number of ranks.
#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "../naive_strides.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

template <class S, class T, std::size_t Rank, class E>
NaiveGrids<T, 1> naive_grid_of(const index_t (&extents)[Rank], const E& of) {
  return {{Indices(extents, extents + Rank)},
          {naive_stride<Rank>(S::stride)},
          {elements_of(numbered<T>(extents))},
          beyond_all(of, int(Rank))};
}

/// The extents of the result: of the field, rounded up.
Indices natural_extents(const Indices& shape, const NaiveStride& stride) {
  Indices extents;
  for (std::size_t d = 0; d < shape.size(); ++d)
    extents.push_back((shape[d] * stride.den[d] + stride.num[d] - 1) / stride.num[d]);
  return extents;
}

bool has_edge_none(const BeyondAll& beyond) {
  for (const auto& [low, high] : beyond)
    if (low.kind == '-' || high.kind == '-') return true;
  return false;
}

template <std::size_t Rank>
std::array<index_t, Rank> array_of_extents(const Indices& from) {
  std::array<index_t, Rank> to;
  std::copy(from.begin(), from.end(), to.begin());
  return to;
}

/// A field with a margin, which is filled with numbers that must not be read.
template <class T, class Mesh, std::size_t Rank, class... P>
auto with_filled_margin(const Tensor<T, int(Rank)>& whole, const index_t (&extents)[Rank],
                        index_t width, const Mesh& mesh, P... p) {
  const auto u = empty<T>(extents, mesh, p..., margin(width));
  const auto part = u.to_local();
  if (const auto* margin = detail::margin_around(part.storage(), part.view())) {
    index_t n = 1;
    for (int d = 0; d < int(Rank); ++d) n *= part.extent(d) + 2 * margin->width[d];
    std::fill_n(static_cast<T*>(margin->memory.get()), n, T(-77));
  }
  part.copy_(distribute_tensor(whole, mesh, p...).to_local());
  return u;
}

/// Compares a stencil of one field with naive loops: on a Tensor, on DTensors, with margins, and
/// with targets of other extents.
template <class T, class S, class E, class Mesh, std::size_t Rank, class... P>
void check_strided(const S& stencil, const E& of, const Mesh& mesh, const index_t (&extents)[Rank],
                   P... p) {
  const auto grid = naive_grid_of<S, T>(extents, of);
  const Indices natural = natural_extents(grid.shape[0], grid.stride[0]);
  const auto [begin, end] = grid.domain(stencil, natural);
  for (std::size_t d = 0; d < Rank; ++d)
    if (begin[d] > end[d]) return;
  const auto whole = numbered<T>(extents);
  const auto expected = grid.template results<T>(stencil, begin, end);
  const auto u = distribute_tensor(whole, mesh, p...);
  CAPTURE(extents[0]);
  CAPTURE(mesh.size());
  CHECK(same_bits(apply(stencil, whole, of), expected));
  const auto v = apply(stencil, u, of);
  CHECK(same_bits(v.full_tensor(), expected));
  v.to_local().fill_(T(-1));
  apply(out(v), stencil, u, of);
  CHECK(same_bits(v.full_tensor(), expected));
  for (const index_t width : {1, 4}) {
    const auto x = with_filled_margin(whole, extents, width, mesh, p...);
    for (int again = 0; again < 2; ++again)
      CHECK(same_bits(apply(stencil, x, of).full_tensor(), expected));
  }
  if (has_edge_none(grid.beyond)) return;
  for (const index_t more : {-1, 1, 2}) {
    Indices other = natural;
    for (index_t& n : other) n = std::max(n + more, index_t(0));
    const auto wanted = grid.template results<T>(stencil, Indices(Rank, 0), other);
    const Tensor<T, int(Rank)> target(array_of_extents<Rank>(other));
    apply(out(target), stencil, whole, of);
    CHECK(same_bits(target, wanted));
    const auto placed = distribute_tensor(target, mesh, p...);
    placed.to_local().fill_(T(-1));
    apply(out(placed), stencil, u, of);
    CHECK(same_bits(placed.full_tensor(), wanted));
  }
}

/// The same stencils with a declared reach.
template <int Lo, int Hi, int N>
struct DeclaredCoarse : Coarse<Lo, Hi, N> {
  static constexpr auto reach = star(Sides{Lo, Hi});
};
template <int Lo, int Hi, int N>
struct DeclaredFine : Fine<Lo, Hi, N> {
  static constexpr auto reach = star(Sides{Lo, Hi + 1});
};

template <class S, class T = double, class E>
void check_strided_line(World& world, const E& of) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()});
  for (const index_t n : {1, 2, 3, 5, 8, 13, 30}) {
    if (!error_of([&] { apply(S{}, numbered<T>({n}), of); }).empty()) continue;
    check_strided<T>(S{}, of, mesh, {n}, Shard<0>{});
  }
  const auto nested = init_device_mesh<dp, tp>(world, {1, world.size()});
  check_strided<T>(S{}, of, nested, {17}, Shard<0>{}, Shard<0>{});
}

template <int Lo, int Hi, class E>
void check_strided_lines(World& world, const E& of) {
  check_strided_line<Coarse<Lo, Hi, 1>>(world, of);
  check_strided_line<Coarse<Lo, Hi, 2>>(world, of);
  check_strided_line<Coarse<Lo, Hi, 3>>(world, of);
  check_strided_line<Fine<Lo, Hi, 1>>(world, of);
  check_strided_line<Fine<Lo, Hi, 2>>(world, of);
  check_strided_line<Fine<Lo, Hi, 3>>(world, of);
}

template <class E>
void check_strided_planes(World& world, const E& of) {
  const auto line = init_device_mesh<tp>(world, {world.size()});
  const auto check_on = [&](auto stencil, const auto& mesh, auto... p) {
    check_strided<double>(stencil, of, mesh, {13, 10}, p...);
    check_strided<double>(stencil, of, mesh, {4, 7}, p...);
  };
  check_on(Restrict<2, 2>{}, line, Shard<0>{});
  check_on(Restrict<1, 3>{}, line, Shard<1>{});
  check_on(Interpolate{}, line, Shard<1>{});
  check_on(Nearest{}, line, Shard<0>{});
  check_on(Mean{}, line, Replicate{});
  if (world.size() % 2 != 0) return;
  const auto grid = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
  check_on(Restrict<3, 2>{}, grid, Shard<0>{}, Shard<1>{});
  check_on(Mean{}, grid, Shard<1>{}, Shard<0>{});
  check_on(Interpolate{}, grid, Shard<0>{}, Shard<1>{});
  check_on(Interpolate{}, grid, Shard<1>{}, Shard<1>{});
  check_on(Nearest{}, grid, Replicate{}, Shard<1>{});
}

}  // namespace

TEST_CASE("results that are coarser or finer than a field are those of loops on any ranks") {
  on_ranks({1, 2, 3, 4, 5, 7}, [](World& world) {
    check_strided_lines<-1, 1>(world, edges(periodic));
    check_strided_lines<-2, 1>(world, edges(sides(neumann, dirichlet(2))));
    check_strided_lines<0, 1>(world, edges(mirror));
    check_strided_lines<-1, 3>(world, edges(dirichlet(by_position)));
    check_strided_lines<-2, 4>(world, edges(none));
    check_strided_lines<0, 1>(world, edges(sides(none, neumann)));
    check_strided_lines<-1, 0>(world, edges(sides(zero, none)));
    check_strided_lines<0, 0>(world, edges(none));
  });
}

TEST_CASE("elements of all types move between grids") {
  on_ranks({1, 3}, [](World& world) {
    check_strided_line<Coarse<-1, 1, 2>, float>(world, edges(periodic));
    check_strided_line<Fine<-1, 1, 2>, half>(world, edges(neumann));
    check_strided_line<Coarse<-1, 2, 3>, std::int32_t>(world, edges(zero));
    check_strided_line<DeclaredCoarse<-1, 2, 2>, std::complex<double>>(world, edges(periodic));
    check_strided_line<DeclaredFine<-1, 1, 2>, std::complex<float>>(world, edges(dirichlet(2.0)));
    check_strided_line<DeclaredFine<-2, 0, 3>>(world, edges(neumann));
  });
}

TEST_CASE("planes and boxes move between grids under all placements") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    check_strided_planes(world, edges(periodic));
    check_strided_planes(world, edges(dirichlet(by_position), neumann));
    check_strided_planes(world, edges(mirror, sides(none, zero)));
    check_strided_planes(world, edges(none));
    const auto line = init_device_mesh<tp>(world, {world.size()});
    check_strided<double>(Restrict3{}, edges(zero, periodic, neumann), line, {5, 3, 8}, Shard<0>{});
    check_strided<double>(Restrict3{}, edges(mirror), line, {4, 6, 7}, Shard<2>{});
    check_strided<double>(Interpolate3{}, edges(none), line, {3, 4, 2}, Shard<1>{});
    check_strided<double>(Interpolate3{}, edges(periodic, zero, neumann), line, {2, 3, 5},
                          Shard<2>{});
  });
}

TEST_CASE("fields of different grids are read by one stencil") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    for (const index_t n : {4, 9, 14}) {
      const index_t m = (n + 1) / 2;
      const auto u = numbered<double>({n, 6}, 1), e = numbered<double>({m, 3}, 2),
                 c = numbered<double>({n, 6}, 3);
      const NaiveGrids<double, 3> grids{
          {Indices{n, 6}, Indices{m, 3}, Indices{n, 6}},
          {naive_stride<2>({}), naive_stride<2>(refine(2)), naive_stride<2>({})},
          {elements_of(u), elements_of(e), elements_of(c)},
          beyond_all(edges(neumann), 2)};
      const auto expected = grids.results<double>(Correct{}, {0, 0}, {n, 6});
      const auto rows = [&](const auto& x) { return distribute_tensor(x, mesh, Shard<0>{}); };
      const auto fine = rows(u), coarse = rows(e), other = rows(c);
      CHECK(
          same_bits(apply(Correct{}, fine, coarse, other, edges(neumann)).full_tensor(), expected));
      apply(out(fine), Correct{}, fine, coarse, other, edges(neumann));  // in place
      CHECK(same_bits(fine.full_tensor(), expected));
    }
  });
}

TEST_CASE("a rank receives what its part of a coarser or finer result reads beyond its own") {
  const auto bytes = [](World& world, auto stencil, index_t n, bool is_periodic) {
    using S = decltype(stencil);
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const index_t extents[] = {n};
    const auto grid = naive_grid_of<S, double>(extents, edges(zero));
    const auto u = distribute_tensor(numbered<double>(extents), mesh, Shard<0>{});
    const CommTrace trace(world);
    const auto v =
        is_periodic ? apply(stencil, u, edges(periodic)) : apply(stencil, u, edges(zero));
    const auto own = u.local_box(), part = v.local_box();
    index_t expected = 0;
    if (!part.empty()) {
      const auto [begin, end] = grid.reads(stencil, 0, {part.begin[0]}, {part.end[0]});
      for (index_t i = begin[0]; i < end[0]; ++i) {
        const index_t at = is_periodic ? (i % n + n) % n : i;
        expected += at >= 0 && at < n && (at < own.begin[0] || at >= own.end[0]);
      }
    }
    CAPTURE(n);
    CAPTURE(world.size());
    CHECK(trace.received_bytes() == 8 * expected);
  };
  on_ranks({2, 3, 4, 7}, [&](World& world) {
    for (const index_t n : {3, 8, 13, 16, 31, 40})
      for (const bool is_periodic : {false, true}) {
        bytes(world, Coarse<-1, 1, 2>{}, n, is_periodic);
        bytes(world, Coarse<0, 1, 2>{}, n, is_periodic);
        bytes(world, Coarse<-1, 2, 3>{}, n, is_periodic);
        bytes(world, Fine<0, 0, 2>{}, n, is_periodic);
        bytes(world, Fine<-1, 0, 2>{}, n, is_periodic);
        bytes(world, Fine<0, 0, 3>{}, n, is_periodic);
      }
  });
}

TEST_CASE("linear interpolation receives one row, and only from one side") {
  static_assert(reach_of<Interpolate> == box(Sides{0, 1}, Sides{0, 1}));
  static_assert(detail::field_reaches_of<Interpolate, double>[0].maps[0] == DimMap{1, 2, 0, 1});
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto u = distribute_tensor(numbered<double>({16, 5}), mesh, Shard<0>{});
    const CommTrace trace(world);
    const auto v = apply(Interpolate{}, u, edges(none));  // 31 x 9 vertices
    CHECK(v.shape() == std::array<index_t, 2>{31, 9});
    CHECK(trace.received_bytes() <= 5 * 8);
    CHECK(trace.received_messages() <= 1);
  });
}

TEST_CASE("targets of other extents are refused where edges are none") {
  const auto u = numbered<double>({9});
  const Tensor<double, 1> four({4}), three({3});
  apply(out(three), Coarse<-1, 1, 2>{}, u);  // 2, 4, 6: elements 1 .. 3
  CHECK(contains(error_of([&] { apply(out(four), Coarse<-1, 1, 2>{}, u); }),
                 "stencil: extents differ: the result has [3]"));
  CHECK(contains(error_of([&] { apply(out(u), Coarse<-1, 1, 2>{}, u, edges(zero)); }),
                 "stencil: the target shares elements with a field whose neighbours are read"));
}

}  // namespace stencil_tests
