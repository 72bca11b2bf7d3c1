// repeat: the bits of single steps on every mesh, against naive loops, with one exchange.
#include <cmath>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/stencil/exchange_halo.hpp>

#include "../naive_stencils.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// Depends on the position, and reads a coefficient beside the element.
struct Placed : Stencil {
  constexpr auto operator()(const auto& u, const auto& c, auto scale) const {
    return u(0, 0) + scale * (c(0, 1) * u(-1, 1) - u(1, 0)) +
           decltype(scale)(u.index(0) * 3 + u.index(1));
  }
};
/// Two levels in time: replaces both.
struct Wave : Stencil {
  constexpr auto operator()(const auto& u, const auto& before, const auto& speed) const {
    return std::tuple{2 * u(0, 0) - before(0, 0) +
                          speed(0, 0) * (u(-2, 0) + u(2, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0)),
                      1 * u(0, 0)};
  }
};

/// The fields after some steps by naive loops: the results replace the first fields.
template <std::size_t Fields, class S>
std::vector<double> naive_steps(const S& stencil, int steps, const Indices& shape,
                                std::array<std::vector<double>, Fields> fields,
                                const BeyondAll& beyond) {
  for (int step = 0; step < steps; ++step)
    fields[0] =
        naive_results<double, double, Fields>(stencil, shape, fields, beyond, {0, 0}, shape);
  return fields[0];
}

struct NaiveWave {
  double operator()(const auto& u, const auto& before, const auto& speed) const {
    return std::get<0>(Wave{}(u, before, speed));
  }
};
struct NaivePlaced {
  double operator()(const auto& u, const auto& c) const { return Placed{}(u, c, 2.0); }
};

template <class Mesh, class... P>
auto in_margin_of_width(const Tensor<double, 2>& whole, int width, const Mesh& mesh, P... p) {
  auto u =
      full<double>({whole.extent(0), whole.extent(1)}, std::nan(""), mesh, p..., margin(width));
  u.to_local().copy_(distribute_tensor(whole, mesh, p...).to_local());
  return u;
}

template <int Steps, class E, class Mesh, class... P>
void check_repeat(const E& of, const Indices& shape, const Mesh& mesh, P... p) {
  const BeyondAll beyond = beyond_all(of, 2);
  const index_t rows = shape[0], columns = shape[1];
  const auto a = numbered<double>({rows, columns}, 1), b = numbered<double>({rows, columns}, 2);
  const auto u = distribute_tensor(a, mesh, p...), c = distribute_tensor(b, mesh, p...);
  const auto heat = naive_steps<1>(Heat{}, Steps, shape, {elements_of(a)}, beyond);
  CHECK(same_bits(apply(repeat<Steps>(Heat{}), u, of).full_tensor(), heat));
  CHECK(same_bits(apply(repeat<Steps>(Heat{}), a, of), heat));
  for (const int width : {1, 2 * Steps}) {
    const auto v = in_margin_of_width(a, width, mesh, p...);
    CHECK(same_bits(apply(repeat<Steps>(Heat{}), v, of).full_tensor(), heat));
    apply(out(v), repeat<Steps>(Heat{}), u, of);
    CHECK(same_bits(v.full_tensor(), heat));
    if constexpr (Steps > 1) {
      v.to_local().copy_(u.to_local());
      apply(out(v), repeat<Steps>(Heat{}), v, of);  // in place
      CHECK(same_bits(v.full_tensor(), heat));
    }
  }
  const auto unequal = naive_steps<1>(Unequal{}, Steps, shape, {elements_of(a)}, beyond);
  CHECK(same_bits(apply(repeat<Steps>(Unequal{}), u, of).full_tensor(), unequal));
  const auto placed =
      naive_steps<2>(NaivePlaced{}, Steps, shape, {elements_of(a), elements_of(b)}, beyond);
  CHECK(same_bits(apply(repeat<Steps>(Placed{}), u, c, 2.0, of).full_tensor(), placed));
  const auto w = in_margin_of_width(a, 2 * Steps, mesh, p...);
  CHECK(same_bits(apply(repeat<Steps>(Placed{}), w, c, 2.0, of).full_tensor(), placed));
  const auto field = numbered<double>({rows, columns}, 3);
  auto now = a, before = b;
  for (int step = 0; step < Steps; ++step) {
    const auto next = naive_results<double, double, 3>(
        NaiveWave{}, shape, {elements_of(now), elements_of(before), elements_of(field)}, beyond,
        {0, 0}, shape);
    before = now;
    now = Tensor<double, 2>({rows, columns});
    std::copy(next.begin(), next.end(), now.data());
  }
  const auto [x, y] = apply(repeat<Steps>(Wave{}), u, c, distribute_tensor(field, mesh, p...), of);
  CHECK(same_bits(x.full_tensor(), elements_of(now)));
  CHECK(same_bits(y.full_tensor(), elements_of(before)));
}

template <int Steps, class E>
void check_meshes(World& world, const E& of) {
  const auto line = init_device_mesh<tp>(world, {world.size()});
  for (const Indices& shape : {Indices{17, 11}, Indices{5, 4}, Indices{2, 3}}) {
    check_repeat<Steps>(of, shape, line, Shard<0>{});
    check_repeat<Steps>(of, shape, line, Shard<1>{});
    if (world.size() % 2 != 0) continue;
    const auto grid = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
    check_repeat<Steps>(of, shape, grid, Shard<0>{}, Shard<1>{});
    check_repeat<Steps>(of, shape, grid, Shard<1>{}, Shard<1>{});
  }
}

}  // namespace

TEST_CASE("repeated steps with periodic edges have the bits of naive loops") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    check_meshes<1>(world, edges(periodic));
    check_meshes<2>(world, edges(periodic));
    check_meshes<4>(world, edges(periodic));
  });
}
TEST_CASE("repeated steps with values at edges, by position, have the bits of naive loops") {
  on_ranks({1, 2, 3, 4, 6, 7},
           [](World& world) { check_meshes<4>(world, edges(periodic, dirichlet(by_position))); });
}
TEST_CASE("repeated steps with mirrored edges have the bits of naive loops") {
  on_ranks({1, 2, 3, 4, 6}, [](World& world) {
    check_meshes<3>(world, edges(neumann, mirror));
    check_meshes<3>(world, edges(sides(mirror, dirichlet(by_position)), sides(neumann, zero)));
  });
}

TEST_CASE("repeated steps are one exchange of a wide box") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto u = distribute_tensor(numbered<double>({16 * world.size(), 5}), mesh, Shard<0>{});
    const CommTrace single(world);
    auto v = u;
    for (int step = 0; step < 4; ++step) v = apply(Heat{}, v, edges(periodic));
    const CommTrace wide(world);
    const auto w = apply(repeat<4>(Heat{}), u, edges(periodic));
    CHECK(wide.received_messages() == (world.size() == 2 ? 1 : 2));
    CHECK(single.received_messages() == 5 * wide.received_messages());
    CHECK(wide.received_bytes() == 2 * 4 * 5 * 8);
    CHECK(same_bits(w.full_tensor(), elements_of(v.full_tensor())));
  });
}

TEST_CASE("repeat reports what it cannot do on all ranks") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto u = distribute_tensor(numbered<double>({7, 6}), mesh, Shard<0>{});
    const auto longer = distribute_tensor(numbered<double>({8, 6}), mesh, Shard<0>{});
    const std::string shrinks = error_of([&] { apply(repeat<2>(Heat{}), u, edges(zero, none)); });
    CHECK(contains(shrinks, "stencil: repeat requires edges other than `none`"));
    CHECK(contains(shrinks, "rank " + std::to_string(world.rank())));
    CHECK(contains(error_of([&] { apply(repeat<2>(Wave{}), u, longer, u, edges(zero)); }),
                   "stencil: repeat requires fields of equal extents where results replace them: "
                   "[7, 6] and [8, 6] differ"));
  });
}

}  // namespace stencil_tests
