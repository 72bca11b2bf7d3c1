// Gradients of stencils between grids against differences of naive loops, which are exact here:
// elements are small integers, and the stencils are linear or bilinear.
#include <array>

#include <cleave/grad.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "../ops/naive_strides.hpp"
#include "errors.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;
using cleave::testing::contains;
using cleave::testing::error_of;

namespace {

/// Multiplies a field on the fine grid with one on the coarse grid, both at several offsets.
struct CoarseProduct : Stencil {
  static constexpr Stride stride[] = {coarsen(2, 3), Stride{}};
  constexpr auto operator()(const auto& u, const auto& c) const {
    return u(-1, 0) * c(0, 0) + 2 * u(1, 1) * c(0, -1) + u(0, 2);
  }
};
struct FineProduct : Stencil {
  static constexpr Stride stride[] = {refine(2), refine(1, 3)};
  constexpr auto operator()(const auto& e, const auto& c) const {
    const int i = int(e.index(0) % 2);
    return e(i, 0) * c(0, 1) + double(c.index(1)) * e(0, -1) * c(0, 0);
  }
};
/// Reads a coarser and a finer grid than that of the result.
struct Across : Stencil {
  static constexpr Stride stride[] = {refine(3, 2), coarsen(2, 2)};
  constexpr auto operator()(const auto& e, const auto& u) const {
    return std::tuple{e(0, 1) * u(1, 0), e(-1, 0) - 3 * u(0, -1)};
  }
};

/// A call on two fields, by naive loops.
template <class S>
struct NaiveStridedCall {
  S stencil;
  NaiveGrids<double, 2> grids;
  Indices begin, end;  ///< of the results
  std::vector<double> weights;

  double loss() const {
    const auto total = [&](const auto& one, double factor) {
      const auto y = grids.template results<double>(one, begin, end);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += factor * weights[i] * y[i];
      return sum;
    };
    if constexpr (std::is_same_v<S, Across>)
      return total([&](const auto&... f) { return std::get<0>(stencil(f...)); }, 1) +
             total([&](const auto&... f) { return std::get<1>(stencil(f...)); }, 2);
    else return total(stencil, 1);
  }
  /// Half the difference of f for each element of field k one more and one less.
  template <class F>
  std::vector<double> differences(std::size_t k, const F& f) {
    std::vector<double> all;
    for (double& x : grids.values[k]) {
      const double at = x;
      x = at + 1;
      const double above = f();
      x = at - 1;
      const double below = f();
      x = at;
      all.push_back((above - below) / 2);
    }
    return all;
  }
  std::vector<double> gradient(std::size_t k) {
    return differences(k, [&] { return loss(); });
  }
  /// The gradient in field k of the sum of h * gradient in the first field.
  std::vector<double> second(std::size_t k, const std::vector<double>& h) {
    return differences(k, [&] {
      const auto g = gradient(0);
      double sum = 0;
      for (std::size_t i = 0; i < g.size(); ++i) sum += h[i] * g[i];
      return sum;
    });
  }
};

Tensor<double, 2> plane(const Indices& shape, int seed) {
  const index_t extents[] = {shape[0], shape[1]};
  return numbered<double>(extents, seed);
}

/// @param natural  extents of the result where no edge is none: those of the first field, coarser
///                 or finer
template <bool Second = false, class S, class E>
void check_strided_gradients(World& world, const S& stencil, const E& of, const Indices& natural,
                             const std::array<Indices, 2>& shapes) {
  const auto u = plane(shapes[0], 1), c = plane(shapes[1], 2), h = plane(shapes[0], 4);
  NaiveStridedCall<S> naive{stencil,
                            {shapes,
                             {naive_stride<2>(S::stride[0]), naive_stride<2>(S::stride[1])},
                             {elements_of(u), elements_of(c)},
                             beyond_all(of, 2)},
                            {},
                            {},
                            {}};
  const auto [begin, end] = naive.grids.domain(stencil, natural);
  naive.begin = begin, naive.end = end;
  const auto w = plane({end[0] - begin[0], end[1] - begin[1]}, 3);
  naive.weights = elements_of(w);
  const auto loss = [&](const auto& x, const auto& y, const auto& place) {
    if constexpr (std::is_same_v<S, Across>) {
      const auto [a, b] = apply(stencil, x, y, of);
      return sum(a * place(w)) + sum(b * place(w) * 2.0);
    } else {
      return sum(apply(stencil, x, y, of) * place(w));
    }
  };
  const std::array first{naive.gradient(0), naive.gradient(1)};
  std::array<std::vector<double>, 2> second;
  if constexpr (Second) second = {naive.second(0, elements_of(h)), naive.second(1, elements_of(h))};
  const auto is_same = [](const auto& found, const std::vector<double>& expected) {
    return same_bits(found.full_tensor() + 0.0, expected);  // + 0: no -0
  };
  const auto check = [&](const auto& mesh, auto... p) {
    const auto place = [&](const auto& t) { return distribute_tensor(t, mesh, p...); };
    const auto x = requires_grad(place(u)), y = requires_grad(place(c));
    backward(loss(x, y, place));
    CHECK(is_same(grad(x), first[0]));
    CHECK(is_same(grad(y), first[1]));
    if constexpr (Second) {
      const auto x1 = requires_grad(place(u)), y1 = requires_grad(place(c));
      const auto x2 = requires_grad(x1), y2 = requires_grad(y1);
      backward(loss(x2, y2, place));
      backward(sum(grad(x2) * place(h)));
      CHECK(is_same(grad(x1), second[0]));
      CHECK(is_same(grad(y1), second[1]));
    }
  };
  const auto line = init_device_mesh<tp>(world, {world.size()});
  check(line, Shard<0>{});
  check(line, Shard<1>{});
  if (world.size() % 2 == 0)
    check(init_device_mesh<dp, tp>(world, {2, world.size() / 2}), Shard<0>{}, Shard<1>{});
}

}  // namespace

TEST_CASE("gradients of stencils between grids are those of naive loops on any mesh") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto some = edges(sides(dirichlet(2.0), zero), dirichlet(by_position));
    check_strided_gradients(world, CoarseProduct{}, edges(periodic), {3, 2},
                            {Indices{6, 6}, Indices{3, 2}});
    check_strided_gradients(world, CoarseProduct{}, some, {4, 3}, {Indices{7, 8}, Indices{4, 3}});
    check_strided_gradients(world, FineProduct{}, edges(periodic), {4, 6},
                            {Indices{2, 3}, Indices{4, 2}});
    check_strided_gradients(world, FineProduct{}, some, {6, 4}, {Indices{3, 2}, Indices{5, 2}});
    check_strided_gradients(world, Across{}, edges(periodic), {6, 4},
                            {Indices{2, 2}, Indices{12, 8}});
    check_strided_gradients(world, Across{}, some, {6, 4}, {Indices{2, 2}, Indices{11, 9}});
  });
}

TEST_CASE("they are beyond edges that mirror elements, and without what is beyond them") {
  on_ranks({1, 2, 3, 4}, [](World& world) {
    const auto check = [&](const auto& of) {
      check_strided_gradients(world, CoarseProduct{}, of, {4, 3}, {Indices{7, 8}, Indices{4, 3}});
      check_strided_gradients(world, FineProduct{}, of, {6, 6}, {Indices{3, 3}, Indices{6, 2}});
      check_strided_gradients(world, Across{}, of, {6, 6}, {Indices{2, 3}, Indices{12, 13}});
    };
    check(edges(neumann, mirror));
    check(edges(sides(none, neumann), sides(mirror, none)));
    check(edges(none, sides(mirror, dirichlet(2.0))));
    check_strided_gradients(world, Across{}, edges(mirror, neumann), {3, 2},
                            {Indices{1, 1}, Indices{6, 4}});
  });
}

TEST_CASE("gradients of stencils between grids have gradients") {
  on_ranks({1, 3}, [](World& world) {
    check_strided_gradients<true>(world, CoarseProduct{}, edges(periodic), {3, 2},
                                  {Indices{6, 6}, Indices{3, 2}});
    check_strided_gradients<true>(world, CoarseProduct{}, edges(sides(none, zero), mirror), {4, 2},
                                  {Indices{7, 6}, Indices{4, 2}});
    check_strided_gradients<true>(world, FineProduct{}, edges(neumann, none), {4, 6},
                                  {Indices{2, 6}, Indices{4, 2}});
  });
}

TEST_CASE("restriction and interpolation are each other's gradients") {
  on_ranks({1, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = requires_grad(distribute_tensor(numbered<double>({9, 9}), mesh, Shard<0>{}));
    const auto coarse = apply(Restrict<2, 2>{}, x, edges(zero));
    CHECK(coarse.shape() == std::array<index_t, 2>{5, 5});
    backward(sum(coarse));
    CHECK(grad(x).shape() == std::array<index_t, 2>{9, 9});
    const auto odd = requires_grad(distribute_tensor(numbered<double>({9, 9}), mesh, Shard<0>{}));
    const auto y = apply(Restrict<2, 2>{}, odd, edges(periodic));
    CHECK(contains(error_of([&] { backward(sum(y)); }),
                   "stencil: the gradient with periodic edges requires fields and results of "
                   "extents that are multiples of each other, in dimension 0"));
    const auto fine = requires_grad(distribute_tensor(numbered<double>({9, 9}), mesh, Shard<0>{}));
    const auto few = requires_grad(distribute_tensor(numbered<double>({2, 3}), mesh, Shard<0>{}));
    const auto z = apply(CoarseProduct{}, fine, few, edges(mirror));
    CHECK(contains(error_of([&] { backward(sum(z)); }),
                   "stencil: the gradient with edges that mirror elements requires a field that "
                   "does not end before the result, in dimension 0"));
  });
}

}  // namespace stencil_tests
