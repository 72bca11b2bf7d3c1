// Gradients of stencils against differences of naive loops, which are exact here: elements are
// small integers, and the stencils are of degree two at most.
#include <algorithm>

#include <cleave/grad.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "../ops/naive_stencils.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

struct Product : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const {
    return u(0, 0) * u(0, 1) + 2 * c(-1, 0) * u(1, -1) - c(0, 0) * c(0, 0) +
           double(u.index(0)) * u(0, 0);
  }
};
struct Pair : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const {
    return std::tuple{u(1, 0) * c(0, 0), u(0, -2) - 3 * c(0, 1)};
  }
};
struct Uneven : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const {
    return u(-2) * c(1) + u(1) * u(0) - 3 * c(-1) + double(c.index(0)) * u(-1);
  }
};
struct Space : Stencil {
  constexpr auto operator()(const auto& u, const auto& c) const {
    return u(-1, 0, 0) * u(1, 0, 0) + c(0, 0, 0) * u(0, 2, 0) - 2 * c(0, 0, -1) + u(0, 0, 1);
  }
};
using Elements = std::vector<double>;

/// A call on two fields, by naive loops.
template <class S>
struct NaiveCall {
  S stencil;
  std::array<Indices, 2> shapes;
  std::array<Elements, 2> fields;
  BeyondAll beyond;

  /// The indices that are computed: all of the first field, except where nothing is beyond an edge.
  std::array<Indices, 2> domain() const {
    Indices begin(shapes[0].size(), 0), end = shapes[0];
    const Reach reaches[] = {reach_of<S, 0>, reach_of<S, 1>};
    for (std::size_t d = 0; d < begin.size(); ++d)
      for (std::size_t k = 0; k < 2; ++k) {
        if (beyond[d][0].kind == '-') begin[d] = std::max(begin[d], index_t(-reaches[k].lo[d]));
        if (beyond[d][1].kind == '-') end[d] = std::min(end[d], shapes[k][d] - reaches[k].hi[d]);
      }
    return {begin, end};
  }

  /// The sum of w * result, of all results, with weights that differ.
  double loss(const Elements& w) const {
    const auto [begin, end] = domain();
    Indices extents = end;
    for (std::size_t d = 0; d < end.size(); ++d) extents[d] -= begin[d];
    double sum = 0;
    std::size_t next = 0;
    for (Indices at : naive::all_indices(extents)) {
      for (std::size_t d = 0; d < end.size(); ++d) at[d] += begin[d];
      const auto y = stencil(NaiveField<double>{&fields[0], shapes[0], &beyond, at},
                             NaiveField<double>{&fields[1], shapes[1], &beyond, at});
      if constexpr (std::is_same_v<S, Pair>)
        sum += w[next++] * (std::get<0>(y) + 2 * std::get<1>(y));
      else sum += w[next++] * y;
    }
    return sum;
  }

  /// Half the difference of f for an element one more and one less.
  template <class F>
  double difference(std::size_t k, std::size_t i, const F& f) {
    const double x = fields[k][i];
    fields[k][i] = x + 1;
    const double above = f();
    fields[k][i] = x - 1;
    const double below = f();
    fields[k][i] = x;
    return (above - below) / 2;
  }
  Elements gradient(std::size_t k, const Elements& w) {
    Elements result;
    for (std::size_t i = 0; i < fields[k].size(); ++i)
      result.push_back(difference(k, i, [&] { return loss(w); }));
    return result;
  }
  /// The gradient in field k of the sum of h * gradient in the first field.
  Elements second(std::size_t k, const Elements& w, const Elements& h) {
    Elements result;
    for (std::size_t i = 0; i < fields[k].size(); ++i)
      result.push_back(difference(k, i, [&] {
        const Elements g = gradient(0, w);
        double sum = 0;
        for (std::size_t j = 0; j < g.size(); ++j) sum += h[j] * g[j];
        return sum;
      }));
    return result;
  }
};

template <class S, class E, class X>
auto loss_of(const S& stencil, const E& of, const X& u, const X& c, const auto& w) {
  if constexpr (std::is_same_v<S, Pair>) {
    const auto [a, b] = apply(stencil, u, c, of);
    return sum(a * w) + sum(b * w * 2.0);
  } else {
    return sum(apply(stencil, u, c, of) * w);
  }
}

void check_elements(const auto& found, const Elements& expected) {
  const auto whole = elements_of(found.full_tensor());
  REQUIRE(whole.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(whole[i] == expected[i]);
}

/// Checks the gradients in both fields under placements p.
///
/// @param more  elements that the second field has more in each dimension
template <bool Second = false, class S, class E, class Mesh, std::size_t Rank, class... P>
void check_gradients(const S& stencil, const E& of, const Mesh& mesh,
                     const index_t (&extents)[Rank], index_t more, P... p) {
  index_t longer[Rank];
  for (std::size_t d = 0; d < Rank; ++d) longer[d] = extents[d] + more;
  const auto u = numbered<double>(extents, 1), c = numbered<double>(longer, 2);
  NaiveCall<S> naive{stencil,
                     {Indices(extents, extents + Rank), Indices(longer, longer + Rank)},
                     {elements_of(u), elements_of(c)},
                     beyond_all(of, int(Rank))};
  if (!error_of([&] { apply(stencil, u, c, of); }).empty()) return;  // thinner than it is read
  index_t results[Rank];
  const auto [begin, end] = naive.domain();
  for (std::size_t d = 0; d < Rank; ++d) results[d] = end[d] - begin[d];
  const auto w = numbered<double>(results, 3);
  const auto place = [&](const auto& t) { return distribute_tensor(t, mesh, p...); };
  const auto x = requires_grad(place(u)), y = requires_grad(place(c));
  backward(loss_of(stencil, of, x, y, place(w)));
  check_elements(grad(x), naive.gradient(0, elements_of(w)));
  check_elements(grad(y), naive.gradient(1, elements_of(w)));
  if constexpr (Second) {
    const auto h = numbered<double>(extents, 4);
    const auto x1 = requires_grad(place(u)), y1 = requires_grad(place(c));
    const auto x2 = requires_grad(x1), y2 = requires_grad(y1);
    backward(loss_of(stencil, of, x2, y2, place(w)));
    backward(sum(grad(x2) * place(h)));
    check_elements(grad(x1), naive.second(0, elements_of(w), elements_of(h)));
    check_elements(grad(y1), naive.second(1, elements_of(w), elements_of(h)));
  }
}

template <class S, class E>
void check_planes(World& world, const S& stencil, const E& of, index_t rows, index_t columns,
                  index_t more = 0) {
  const index_t extents[] = {rows, columns};
  const auto line = init_device_mesh<tp>(world, {world.size()});
  check_gradients(stencil, of, line, extents, more, Shard<0>{});
  if (world.size() % 2 == 0)
    check_gradients(stencil, of, init_device_mesh<dp, tp>(world, {2, world.size() / 2}), extents,
                    more, Shard<0>{}, Shard<1>{});
}

}  // namespace

TEST_CASE("gradients of stencils are those of naive loops on any mesh") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    check_planes(world, Product{}, edges(periodic), 5, 4);
    check_planes(world, Product{}, edges(sides(dirichlet(2.0), zero), dirichlet(by_position)), 5,
                 6);
    check_planes(world, Product{}, edges(neumann), 5, 4);
    check_planes(world, Product{}, edges(sides(none, neumann), sides(mirror, zero)), 5, 3);
    check_planes(world, Weighted{}, edges(mirror, none), 4, 5);
    check_planes(world, Pair{}, edges(zero, periodic), 4, 3);
    check_planes(world, Pair{}, edges(periodic), 2, 1);
    check_planes(world, Pair{}, edges(mirror), 2, 1);
    check_planes(world, Pair{}, edges(neumann), 1, 2);
  });
}

TEST_CASE("gradients are right beyond all edges, also if shards are thin or empty") {
  on_ranks({1, 2, 3, 5}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    const std::tuple kinds{dirichlet(3.0), zero, neumann, mirror, none};
    const auto check = [&](const auto& of) {
      for (const index_t n : {1, 2, 3, 4, 7})
        check_gradients(Uneven{}, of, line, {n}, 0, Shard<0>{});
    };
    check(edges(periodic));
    check(edges(none));
    std::apply(
        [&](const auto&... low) {
          const auto with = [&](const auto& high) { (check(edges(sides(low, high))), ...); };
          with(neumann);
          with(mirror);
        },
        kinds);
  });
}

TEST_CASE("stencils in three dimensions have gradients") {
  on_ranks({1, 4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(
        world, {world.size() > 1 ? 2 : 1, world.size() / 2 + (world.size() == 1)});
    check_gradients(Space{}, edges(neumann, mirror, none), mesh, {3, 4, 3}, 0, Shard<0>{},
                    Shard<1>{});
    check_gradients(Space{}, edges(none, periodic, sides(mirror, neumann)), mesh, {3, 3, 2}, 0,
                    Shard<2>{}, Shard<2>{});
  });
}

TEST_CASE("fields of differing extents have gradients") {
  on_ranks({1, 2, 3}, [](World& world) {
    check_planes(world, Weighted{}, edges(none, zero), 5, 4, 1);
    check_planes(world, Product{}, edges(none), 5, 4, 2);
    check_planes(world, Product{}, edges(none), 5, 4, -1);
    check_planes(world, Weighted{}, edges(zero), 4, 3, -1);
    check_planes(world, Weighted{}, edges(neumann, mirror), 4, 3, 1);
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto u = requires_grad(distribute_tensor(numbered<double>({5, 3}), mesh, Shard<0>{}));
    const auto c = requires_grad(distribute_tensor(numbered<double>({4, 3}), mesh, Shard<0>{}));
    const auto loss = sum(apply(Weighted{}, u, c, edges(neumann)));
    CHECK(contains(error_of([&] { backward(loss); }),
                   "stencil: the gradient with edges that mirror elements requires a field that "
                   "does not end before the result, in dimension 0"));
  });
}

TEST_CASE("gradients of stencils have gradients") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto line = init_device_mesh<tp>(world, {world.size()});
    const auto check = [&](const auto& of) {
      check_gradients<true>(Product{}, of, line, {4, 3}, 0, Shard<0>{});
    };
    check(edges(periodic, neumann));
    check(edges(mirror, zero));
    check(edges(none, periodic));
  });
}

TEST_CASE("repeated steps have the gradient of single ones") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto w = numbered<double>({7, 5}, 2);
    const auto of = edges(periodic);
    const auto u = requires_grad(distribute_tensor(numbered<double>({7, 5}, 1), mesh, Shard<0>{}));
    backward(sum(apply(repeat<3>(Heat{}), u, of) * distribute_tensor(w, mesh, Shard<0>{})));
    std::array<Elements, 1> expected{elements_of(w)};  // Heat is symmetric
    for (int step = 0; step < 3; ++step)
      expected[0] =
          naive_results<double>(Heat{}, {7, 5}, expected, beyond_all(of, 2), {0, 0}, {7, 5});
    CHECK(elements_of(grad(u).full_tensor()) == expected[0]);
  });
}

TEST_CASE("stencils of local tensors and numbers have gradients") {
  const auto x = requires_grad(numbered<double>({3, 4}));
  backward(sum(apply(Source{}, x, 2.0, edges(zero))));
  CHECK(same_bits(grad(x), {0, 2, 2, 2, 0, 2, 2, 2, 0, 2, 2, 2}));
  const auto y = requires_grad(numbered<float>({3, 4}));
  backward(sum(apply(Source{}, y, 2.0f, edges(mirror))));
  CHECK(same_bits(grad(y), {0, 2, 4, 2, 0, 2, 4, 2, 0, 2, 4, 2}));
}

}  // namespace stencil_tests
