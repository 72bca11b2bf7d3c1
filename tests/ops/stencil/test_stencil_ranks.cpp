// Stencils on distributed fields: the bits of one rank, the bytes and messages of neighbours.
#include <complex>
#include <cstdint>

#include <cleave/comm/trace.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "../naive_stencils.hpp"
#include "../naive_strides.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// Compares a stencil under some placements with the same one on one rank, which test_stencil.cpp
/// compares with naive loops.
template <class T = double, class S, class E, class Mesh, std::size_t Rank, class... P>
void check_placed(const S& stencil, const E& of, const Mesh& mesh, const index_t (&extents)[Rank],
                  P... p) {
  const auto whole = numbered<T>(extents);
  const auto u = distribute_tensor(whole, mesh, p...);
  const auto expected = elements_of(apply(stencil, whole, of));
  const auto v = apply(stencil, u, of);
  CHECK(same_bits(v.full_tensor(), expected));
  const auto target = apply(stencil, u, of);
  target.to_local().fill_(T(-1));
  apply(out(target), stencil, u, of);
  CHECK(same_bits(target.full_tensor(), expected));
}

template <class S, class E>
void check_line_on(World& world, const E& of) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  for (const index_t n : {1, 2, 3, 5, 8, 13, 30})
    if (error_of([&] { apply(S{}, numbered<double>({n}), of); }).empty())
      check_placed(S{}, of, mesh, {n}, Shard<0>{});
}

template <class E>
void check_plane_on(World& world, const E& of) {
  const auto line = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  const auto check = [&](auto stencil, const auto& mesh, auto... p) {
    check_placed(stencil, of, mesh, {13, 10}, p...);
    check_placed(stencil, of, mesh, {5, 9}, p...);
  };
  check(Heat{}, line, Shard<0>{});
  check(Nine{}, line, Shard<1>{});
  check(Unequal{}, line, Shard<0>{});
  check(Unequal{}, line, Replicate{});
  check_placed(Position{}, edges(neumann), line, {3, 4, 5}, Shard<1>{});
  if (world.size() % 2 != 0) return;
  const auto grid = init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{});
  check(Heat{}, grid, Shard<0>{}, Shard<1>{});
  check(Nine{}, grid, Shard<0>{}, Shard<1>{});
  check(Unequal{}, grid, Shard<1>{}, Shard<1>{});
  check(Nine{}, grid, Replicate{}, Shard<0>{});
}

}  // namespace

TEST_CASE(
    "a stencil has the same bits on any number of ranks, also where shards are thin or empty") {
  on_ranks({1, 2, 3, 4, 5, 7}, [](World& world) {
    check_line_on<Line<-1, 1>>(world, edges(periodic));
    check_line_on<Line<-2, 4>>(world, edges(periodic));
    check_line_on<Line<-5, 0>>(world, edges(sides(neumann, dirichlet(2))));
    check_line_on<Line<-1, 3>>(world, edges(mirror));
    check_line_on<Line<-2, 4>>(world, edges(sides(none, neumann)));
    check_line_on<Line<-2, 1>>(world, edges(none));
    check_line_on<Line<-3, 3>>(world, edges(dirichlet(by_position)));
  });
}

TEST_CASE("elements of all types have the same bits on any number of ranks") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto check = [&]<class... T>(Types<T...>) {
      for (const index_t n : {5, 13}) {
        (check_placed<T>(DeclaredLine<-1, 2>{}, edges(periodic), mesh, {n}, Shard<0>{}), ...);
        (check_placed<T>(DeclaredLine<-1, 2>{}, edges(sides(neumann, dirichlet(2))), mesh, {n},
                         Shard<0>{}),
         ...);
      }
    };
    check(Types<float, half, bfloat16, std::int32_t, std::complex<float>, std::complex<double>>{});
  });
}

TEST_CASE("a stencil in two dimensions has the same bits under all placements") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    check_plane_on(world, edges(periodic));
    check_plane_on(world, edges(dirichlet(by_position), neumann));
    check_plane_on(world, edges(periodic, sides(none, mirror)));
    check_plane_on(world, edges(none));
  });
}

TEST_CASE("sums that round have the same bits on every mesh of a device") {
  on_ranks({1, 2, 4}, [](World& world) {
    Tensor<double, 2> whole({13, 10});
    for (index_t i = 0; i < whole.size(); ++i) whole.data()[i] = 1.0 / double(3 + i * 7 % 11);
    const auto of = edges(periodic, sides(mirror, dirichlet(0.1)));
    const auto expected = elements_of(apply(Heat{{}, 0.1}, whole.to(TestDevice{}), of));
    const auto check = [&](const auto& mesh, auto... p) {
      const auto v = apply(Heat{{}, 0.1}, distribute_tensor(whole, mesh, p...), of);
      CHECK(same_bits(v.full_tensor(), expected));
    };
    check(init_device_mesh<tp>(world, {world.size()}, TestDevice{}), Shard<1>{});
    if (world.size() % 2 != 0) return;
    check(init_device_mesh<dp, tp>(world, {2, world.size() / 2}, TestDevice{}), Shard<0>{},
          Shard<1>{});
  });
}

TEST_CASE("coarser and finer results, and several steps, have the same bits on a device") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    check_placed(Restrict<2, 2>{}, edges(periodic), mesh, {13, 10}, Shard<0>{});
    check_placed(Interpolate{}, edges(neumann, zero), mesh, {5, 4}, Shard<0>{});
    check_placed(Nearest{}, edges(none), mesh, {4, 7}, Shard<1>{});
    const auto of = edges(periodic, zero);
    const auto whole = numbered<double>({7, 5});
    const auto steps = apply(repeat<3>(Heat{}), distribute_tensor(whole, mesh, Shard<0>{}), of);
    CHECK(same_bits(steps.full_tensor(),
                    elements_of(apply(Heat{}, apply(Heat{}, apply(Heat{}, whole, of), of), of))));
  });
}

TEST_CASE("several fields are exchanged in one message per neighbour") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto vx = numbered<double>({12, 5}, 1), vy = numbered<double>({12, 5}, 2),
               p = numbered<double>({12, 5}, 3);
    const auto of = edges(periodic);
    const auto [x, y] = apply(Velocity{}, vx, vy, p, of);
    const auto rows = [&](const auto& t) { return distribute_tensor(t, mesh, Shard<0>{}); };
    const auto field = rows(vx), second = rows(vy), other = rows(p);
    const CommTrace trace(world);
    const auto [a, b] = apply(Velocity{}, field, second, other, of);
    CHECK(trace.received_bytes() == 5 * 8);  // only p is read beyond, at one side
    CHECK(trace.received_messages() == 1);
    CHECK(same_bits(a.full_tensor(), elements_of(x)));
    CHECK(same_bits(b.full_tensor(), elements_of(y)));
    const CommTrace both(world);
    apply(Weighted{}, field, other, of);  // a row of each, from the same neighbour
    CHECK(both.received_bytes() == 2 * 5 * 8);
    CHECK(both.received_messages() == 1);
  });
}

TEST_CASE("a star reads no corners, a box does") {
  on_ranks({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, TestDevice{});
    const auto u = distribute_tensor(numbered<double>({32, 32}), mesh, Shard<0>{}, Shard<1>{});
    const CommTrace star(world);
    apply(Heat{}, u, edges(zero));
    CHECK(star.received_bytes() == 2 * 16 * 8);
    CHECK(star.received_messages() == 2);
    const CommTrace corners(world);
    apply(Nine{}, u, edges(zero));
    CHECK(corners.received_bytes() == 33 * 8);
    CHECK(corners.received_messages() == 3);
    const auto replicas = distribute_tensor(numbered<double>({9}), mesh, Replicate{}, Replicate{});
    const CommTrace silent(world);
    apply(Line<-1, 1>{}, replicas, edges(periodic));
    CHECK(silent.events().empty());
  });
}

namespace {

/// Sums of eight fields, at the neighbours in rows and columns or at all eight neighbours.
struct StarOfEight : Stencil {
  constexpr auto operator()(const auto&... u) const {
    return (... + (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1)));
  }
};
struct BoxOfEight : Stencil {
  constexpr auto operator()(const auto&... u) const {
    return (... + (u(-1, -1) + u(1, 1) + u(-1, 1) + u(1, -1)));
  }
};

/// What a rank receives of each of the eight fields, as apply plans it.
template <class S>
constexpr auto planned(const Shape& mesh, const Shape& at, EdgeKind edge) {
  using D = double;
  constexpr auto reaches = detail::field_reaches_of<S, D, D, D, D, D, D, D, D>;
  std::array<redistribution::NeedCounts, 8> counts{};
  for (std::size_t k = 0; k < 8; ++k) {
    detail::FieldWindow field;
    field.domain = Shape(std::array<index_t, 2>{7, 8});
    field.reach = reaches[k];
    for (auto& side : field.edges.side) side[0].kind = side[1].kind = edge;
    const auto needs = detail::field_needs(field, layout_of<Placements<Shard<0>, Shard<1>>, 2>,
                                           Box::of(field.domain));
    counts[k] = redistribution::need_counts(needs.needs, mesh, at);
  }
  return counts;
}
template <class S>
constexpr bool inner_rank_receives(const redistribution::NeedCounts& expected) {
  for (const EdgeKind edge : {EdgeKind::value, EdgeKind::periodic})
    for (const auto& counts :
         planned<S>(Shape(std::array<index_t, 2>{3, 3}), Shape(std::array<index_t, 2>{1, 1}), edge))
      if (!(counts == expected)) return false;
  return true;
}
static_assert(inner_rank_receives<StarOfEight>({12, 0, 4}));  // 4 sides of 3
static_assert(inner_rank_receives<BoxOfEight>({16, 0, 8}));   // and 4 corners

/// Compares the plan, and what a call receives, with naive loops over the elements of other ranks.
template <class S, class E>
void check_neighbours(const auto& mesh, const E& of, EdgeKind edge, bool corners) {
  const auto field = [&](int k) {
    return distribute_tensor(numbered<double>({7, 8}, k), mesh, Shard<0>{}, Shard<1>{});
  };
  const std::array fields{field(0), field(1), field(2), field(3),
                          field(4), field(5), field(6), field(7)};
  const auto held_at = [&](const Indices& at) {
    return naive::elements(fields[0].layout, {7, 8}, naive::to_indices(mesh.extents()), at);
  };
  const auto distance = [&](index_t a, index_t b, index_t n) {
    const index_t apart = std::abs(a - b);
    return edge == EdgeKind::periodic ? std::min(apart, n - apart) : apart;
  };
  const Indices own = naive::to_indices(mesh.coordinate());
  index_t elements = 0, messages = 0;
  for (const Indices& peer : naive::all_indices(naive::to_indices(mesh.extents()))) {
    index_t found = 0;
    for (const Indices& theirs : peer == own ? std::vector<Indices>{} : held_at(peer)) {
      bool is_read = false;
      for (const Indices& mine : held_at(own)) {
        const index_t rows = distance(mine[0], theirs[0], 7),
                      columns = distance(mine[1], theirs[1], 8);
        is_read = is_read || (corners ? std::max(rows, columns) : rows + columns) == 1;
      }
      found += is_read;
    }
    elements += found, messages += found > 0;
  }
  for (const auto& counts : planned<S>(mesh.extents(), mesh.coordinate(), edge))
    CHECK(counts == redistribution::NeedCounts{elements, 0, int(messages)});
  const CommTrace trace(mesh);
  std::apply([&](const auto&... u) { apply(S{}, u..., of); }, fields);
  CHECK(trace.received_messages() == messages);
  CHECK(trace.received_bytes() == 8 * elements * 8);
}

}  // namespace

TEST_CASE("eight fields are received in one message from each neighbour, as planned") {
  on_ranks({4, 9}, [](World& world) {
    const index_t rows = world.size() == 9 ? 3 : 2;
    const auto mesh = init_device_mesh<dp, tp>(world, {rows, rows}, TestDevice{});
    check_neighbours<StarOfEight>(mesh, edges(zero), EdgeKind::value, false);
    check_neighbours<StarOfEight>(mesh, edges(periodic), EdgeKind::periodic, false);
    check_neighbours<BoxOfEight>(mesh, edges(zero), EdgeKind::value, true);
    check_neighbours<BoxOfEight>(mesh, edges(periodic), EdgeKind::periodic, true);
  });
}

TEST_CASE("fields with other placements are redistributed to those of the first") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto u = numbered<double>({7, 6}, 1), c = numbered<double>({7, 6}, 2);
    const auto expected = elements_of(apply(Weighted{}, u, c, edges(neumann)));
    const auto v = apply(Weighted{}, distribute_tensor(u, mesh, Shard<1>{}),
                         distribute_tensor(c, mesh, Shard<0>{}), edges(neumann));
    static_assert(std::is_same_v<decltype(v.placements()), Placements<Shard<1>>>);
    CHECK(same_bits(v.full_tensor(), expected));
    const auto addend = from_local(u.to(TestDevice{}), mesh, Partial<Sum>{}, {7, 6});
    const auto twice = apply(Heat{}, addend, edges(zero));
    static_assert(std::is_same_v<decltype(twice.placements()), Placements<Replicate>>);
    CHECK(twice.to_local().to(Host{})(3, 3) ==
          double(world.size()) * apply(Heat{}, u, edges(zero))(3, 3));
  });
}

TEST_CASE("staggered fields have one element more") {
  on_ranks({1, 2, 3, 5}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto u = numbered<double>({9, 4}, 1), c = numbered<double>({10, 5}, 2);
    const auto expected = elements_of(apply(Weighted{}, u, c, edges(none, zero)));
    const auto v = apply(Weighted{}, distribute_tensor(u, mesh, Shard<0>{}),
                         distribute_tensor(c, mesh, Shard<0>{}), edges(none, zero));
    CHECK(same_bits(v.full_tensor(), expected));
    CHECK(v.shape()[0] == 8);
  });
}

TEST_CASE("stencils on distributed fields report their errors on all ranks") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto u = distribute_tensor(numbered<double>({7, 6}), mesh, Shard<0>{});
    const auto longer = distribute_tensor(numbered<double>({8, 6}), mesh, Shard<0>{});
    const std::string text = error_of([&] { apply(Weighted{}, u, longer, edges(periodic)); });
    CHECK(
        contains(text, "stencil: dimension 0 is periodic, and the fields' extents 7 and 8 differ"));
    CHECK(contains(text, "rank " + std::to_string(world.rank())));
    CHECK(contains(error_of([&] { apply(out(longer), Heat{}, u, edges(periodic)); }),
                   "stencil: the target and the result differ in mesh or extents"));
    const auto other = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    CHECK(same_bits(apply(Heat{}, distribute_tensor(numbered<double>({7, 6}), other, Shard<0>{}),
                          edges(periodic))
                        .full_tensor(),
                    elements_of(apply(Heat{}, numbered<double>({7, 6}), edges(periodic)))));
  });
}

}  // namespace stencil_tests
