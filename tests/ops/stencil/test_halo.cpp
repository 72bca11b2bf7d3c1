// exchange_halo: ghosts against naive loops, what stencils receive after it, and writes that make
// ghosts out of date.
#include <cmath>
#include <limits>
#include <optional>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/initialisers.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/stencil/exchange_halo.hpp>

#include "../naive_stencils.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// The same array with a margin.
template <class Mesh, int Rank, class... P>
auto in_margin(const Tensor<double, Rank>& whole, const Margin& width, const Mesh& mesh, P... p) {
  index_t extents[Rank];
  for (int d = 0; d < Rank; ++d) extents[d] = whole.extent(d);
  auto u = full<double>(extents, std::numeric_limits<double>::quiet_NaN(), mesh, p..., width);
  u.to_local().copy_(distribute_tensor(whole, mesh, p...).to_local());
  return u;
}

/// The element at a global index, which may be beyond an edge; nothing where there is none.
std::optional<double> naive_element(const std::vector<double>& values, const Indices& shape,
                                    const BeyondAll& beyond, const Indices& at) {
  for (std::size_t d = 0; d < shape.size(); ++d)
    if ((at[d] < 0 || at[d] >= shape[d]) && beyond[d][at[d] < 0 ? 0 : 1].kind == '-')
      return std::nullopt;
  return NaiveField<double>{&values, shape, &beyond, {0, 0}}(at[0], at[1]);
}

/// Compares all elements of a Halo in two dimensions with naive ones.
template <class X>
bool has_naive_ghosts(const Halo<X>& halo, const Tensor<double, 2>& whole,
                      const BeyondAll& beyond) {
  const auto values = elements_of(whole);
  const auto elements = halo.elements();
  const Box box = halo.box(), own = halo.tensor().local_box();
  if (own.empty()) return elements.empty();
  bool same = Shape(elements.shape()) == box.extents();
  for (index_t i = box.begin[0]; same && i < box.end[0]; ++i)
    for (index_t j = box.begin[1]; j < box.end[1]; ++j) {
      const bool is_corner =
          (i < own.begin[0] || i >= own.end[0]) && (j < own.begin[1] || j >= own.end[1]);
      if (is_corner && !halo.reach().corners) continue;
      const auto expected =
          naive_element(values, {whole.extent(0), whole.extent(1)}, beyond, {i, j});
      same = same && (!expected || *expected == elements(i - box.begin[0], j - box.begin[1]));
    }
  return same;
}

template <class E, class Mesh, class... P>
void check_halo(const E& of, index_t rows, index_t columns, const Mesh& mesh, P... p) {
  const auto whole = numbered<double>({rows, columns});
  const BeyondAll beyond = beyond_all(of, 2);
  const auto u = in_margin(whole, margin(3), mesh, p...);
  CHECK(has_naive_ghosts(exchange_halo(u, of), whole, beyond));
  CHECK(has_naive_ghosts(exchange_halo(u, star(2, Sides{-1, 2}), of), whole, beyond));
  CHECK(has_naive_ghosts(exchange_halo(u, box(1, 0), of), whole, beyond));
  CHECK(same_bits(u.full_tensor(), elements_of(whole)));
}

/// Stencils read the ghosts and receive nothing.
template <class E, class Mesh, class... P>
void check_apply(const E& of, index_t rows, index_t columns, const Mesh& mesh, P... p) {
  const auto whole = numbered<double>({rows, columns});
  const BeyondAll beyond = beyond_all(of, 2);
  const auto u = in_margin(whole, margin(3), mesh, p...);
  const auto expected = [&](const auto& stencil) {
    return naive_results<double, double, 1>(stencil, {rows, columns}, {elements_of(whole)}, beyond,
                                            {0, 0}, {rows, columns});
  };
  const auto h = exchange_halo(u, of);
  const CommTrace trace(mesh);
  const auto v = apply(Heat{}, h), w = apply(Nine{}, h), x = apply(Unequal{}, h);
  const auto y = apply(Heat{}, h, edges(none));  // the edges are those of the exchange
  CHECK(trace.received_messages() == 0);
  CHECK(same_bits(v.full_tensor(), expected(Heat{})));
  CHECK(same_bits(w.full_tensor(), expected(Nine{})));
  CHECK(same_bits(x.full_tensor(), expected(Unequal{})));
  CHECK(same_bits(y.full_tensor(), expected(Heat{})));
}

template <class F>
void each_placement(World& world, const F& f) {
  const auto line = init_device_mesh<tp>(world, {world.size()});
  f(line, Shard<0>{});
  f(line, Shard<1>{});
  f(line, Replicate{});
  if (world.size() % 2 != 0) return;
  const auto grid = init_device_mesh<dp, tp>(world, {2, world.size() / 2});
  f(grid, Shard<0>{}, Shard<1>{});
  f(grid, Shard<1>{}, Shard<1>{});
  f(grid, Replicate{}, Shard<0>{});
}

template <class F>
void each_edges(const F& f) {
  f(edges(periodic));
  f(edges(dirichlet(by_position), neumann));
  f(edges(sides(mirror, dirichlet(2)), periodic));
  f(edges(neumann, sides(zero, mirror)));
}

/// The text of the error with which a stencil refuses a Halo.
template <class X>
std::string refusal(const Halo<X>& h) {
  return error_of([&] { apply(Heat{}, h); });
}

constexpr const char* out_of_date =
    "the tensor was written after exchange_halo, so its ghosts are out of date";

}  // namespace

TEST_CASE("ghosts in margins are those of naive loops, for uneven, thin and empty shards") {
  on_ranks({1, 2, 3, 4, 6, 7}, [](World& world) {
    each_placement(world, [](const auto& mesh, auto... p) {
      const auto check = [&](const auto& of) {
        check_halo(of, 13, 10, mesh, p...);
        check_halo(of, 5, 9, mesh, p...);
      };
      const auto check_few = [&](const auto& of) { check_halo(of, 1, 3, mesh, p...); };
      each_edges(check);
      each_edges(check_few);
      check(edges(none));
      check_few(edges(none));
      check(edges(sides(none, neumann), periodic));
    });
  });
}

TEST_CASE("stencils read the ghosts of a Halo and receive nothing") {
  on_ranks({1, 2, 3, 4, 6, 7}, [](World& world) {
    each_placement(world, [](const auto& mesh, auto... p) {
      each_edges([&](const auto& of) {
        check_apply(of, 13, 10, mesh, p...);
        check_apply(of, 5, 9, mesh, p...);
      });
    });
  });
}

TEST_CASE("several tensors are exchanged in one message per neighbour") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto a = numbered<double>({12, 5}, 1), b = numbered<double>({12, 5}, 2),
               c = numbered<double>({13, 4}, 3);
    const auto u = in_margin(a, margin(1), mesh, Shard<0>{}),
               v = in_margin(b, margin(2, 0), mesh, Shard<0>{}),
               w = in_margin(c, margin(1), mesh, Shard<0>{});
    const CommTrace trace(world);
    const auto [hu, hv, hw] = exchange_halo(u, v, w, edges(periodic, zero));
    CHECK(trace.received_messages() == (world.size() == 2 ? 1 : 2));
    if (world.size() == 2) CHECK(trace.received_bytes() == (2 * 5 + 4 * 5 + 2 * 4) * 8);
    const BeyondAll beyond = beyond_all(edges(periodic, zero), 2);
    CHECK(has_naive_ghosts(hu, a, beyond));
    CHECK(has_naive_ghosts(hv, b, beyond));
    CHECK(has_naive_ghosts(hw, c, beyond));
    CHECK(hv.reach() == box(2, 0));
    const auto expected = elements_of(apply(Weighted{}, a, b, edges(periodic, zero)));
    const auto f = in_margin(b, margin(1), mesh, Shard<0>{});
    const auto h = exchange_halo(f, reach_of<Weighted, 1>, edges(periodic, zero));
    const CommTrace silent(world);
    const auto both = apply(Weighted{}, hu, h);
    CHECK(silent.received_messages() == 0);
    const auto one = apply(Weighted{}, hu, f, edges(periodic, zero));  // receives one field
    CHECK(silent.received_messages() == 1);
    CHECK(same_bits(both.full_tensor(), expected));
    CHECK(same_bits(one.full_tensor(), expected));
  });
}

TEST_CASE("local tensors have a Halo of values beyond their edges") {
  const auto whole = numbered<double>({4, 3});
  on_ranks({1}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {1});
    const auto u = in_margin(whole, margin(1), mesh, Replicate{}).to_local();
    const auto h = exchange_halo(u, edges(periodic, dirichlet(9)));
    CHECK(same_bits(apply(Nine{}, h),
                    elements_of(apply(Nine{}, whole, edges(periodic, dirichlet(9))))));
    CHECK(h.elements()(0, 1) == whole(3, 0));
    CHECK(h.elements()(1, 0) == 9);
    u.fill_(1);
    CHECK(contains(refusal(h), out_of_date));
  });
}

TEST_CASE("a Halo cannot be read after a write to its tensor") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto whole = numbered<double>({13, 6});
    const auto u = in_margin(whole, margin(1), mesh, Shard<0>{});
    const auto x = distribute_tensor(whole, mesh, Shard<0>{});
    const auto refused_after = [&](const auto& write) {
      const auto h = exchange_halo(u, edges(periodic));
      apply(Heat{}, h);
      write();
      const std::string text = refusal(h);
      const bool in_elements = contains(error_of([&] { h.elements(); }), out_of_date);
      if (u.to_local().empty()) return true;  // nothing was written on this rank
      return in_elements && contains(text, std::string("stencil: ") + out_of_date) &&
             contains(text, "[13, 6]") && contains(text, "Shard(0)") && contains(text, "tp=") &&
             contains(text, "rank " + std::to_string(world.rank()));
    };
    CHECK(refused_after([&] { u.to_local().fill_(2); }));
    CHECK(refused_after([&] { u.to_local().slice(1, 0, 1).fill_(2); }));
    CHECK(refused_after([&] { u.to_local().copy_(x.to_local()); }));
    CHECK(refused_after([&] { u += x; }));
    CHECK(refused_after([&] { add(out(u), x, x); }));
    CHECK(refused_after([&] { map_([](double a, double b) { return a + b; }, u, x); }));
    CHECK(refused_after([&] { apply(out(u), Heat{}, x, edges(periodic)); }));
    CHECK(refused_after([&] { uniform_(u); }));
    CHECK(refused_after([&] { constant_(u, 1.0); }));
    CHECK(refused_after([&] { orthogonal_(u); }));
    CHECK(refused_after([&] {
      if (!u.to_local().empty()) u.to_local()(0, 0) = 3;
      note_change(Host{}, u.to_local().storage());
    }));
    // reads
    const auto h = exchange_halo(u, edges(periodic));
    const auto sum = u + x;
    const auto there = u.redistribute(Replicate{});
    apply(Heat{}, x, edges(periodic));
    apply(Twice{}, u);
    CHECK(refusal(h).empty());
    apply(out(u), Twice{}, h);  // the element itself alone
    CHECK((u.to_local().empty() || contains(refusal(h), out_of_date)));
  });
}

TEST_CASE("a Halo cannot be read after its margin was filled again") {
  on_ranks({1, 2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto u = in_margin(numbered<double>({13, 6}), margin(1), mesh, Shard<0>{});
    const auto h = exchange_halo(u, edges(periodic));
    const auto other = exchange_halo(u, edges(zero));
    const std::string text = "the margin was filled again after this exchange_halo";
    if (!u.to_local().empty()) CHECK(contains(refusal(h), text));
    CHECK(refusal(other).empty());
    apply(Heat{}, u, edges(neumann));
    if (!u.to_local().empty()) CHECK(contains(refusal(other), text));
  });
}

TEST_CASE("what exchange_halo cannot do is an error on all ranks") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto whole = numbered<double>({7, 6});
    const auto u = in_margin(whole, margin(1), mesh, Shard<0>{});
    const std::string narrow = error_of([&] { exchange_halo(u, star(1, 2), edges(periodic)); });
    CHECK(contains(narrow, "exchange_halo: the margin [1, 1] is narrower than the ghosts [1, 2]"));
    CHECK(contains(narrow, "rank " + std::to_string(world.rank())));
    CHECK(contains(error_of([&] { exchange_halo(u, star(1), edges(periodic)); }),
                   "exchange_halo: the reach star(1) and the tensor differ in their number of "
                   "dimensions"));
    CHECK(contains(error_of([&] {
                     exchange_halo(in_margin(numbered<double>({1, 6}), margin(1), mesh, Shard<0>{}),
                                   edges(sides(none, neumann)));
                   }),
                   "dimension 0 has fewer elements than the margin mirrors, and an edge `none`"));
    CHECK(
        contains(error_of([&] { exchange_halo(distribute_tensor(whole, mesh, Shard<0>{})); }),
                 "exchange_halo: the tensor has no margin; make it by a factory with margin(..)"));
    const auto five = exchange_halo(u, star(1, 1), edges(periodic));
    CHECK(contains(error_of([&] { apply(Nine{}, five); }),
                   "stencil: field 0 is read at box(1, 1), but exchange_halo received star(1, 1)"));
    const auto columns = distribute_tensor(whole, mesh, Shard<1>{});
    CHECK(contains(error_of([&] { apply(Weighted{}, columns, five, edges(periodic)); }),
                   "stencil: "));
    const auto cut = exchange_halo(u, edges(none, zero));
    CHECK(contains(error_of([&] { apply(Heat{}, cut); }),
                   "stencil: edges are `none` in a sharded dimension"));
    const auto inside = exchange_halo(u, edges(zero, none));
    CHECK(same_bits(apply(Heat{}, inside).full_tensor(),
                    elements_of(apply(Heat{}, whole, edges(zero, none)))));
  });
}

}  // namespace stencil_tests
