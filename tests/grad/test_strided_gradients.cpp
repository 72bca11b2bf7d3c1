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

/// @param results  extents of the result, which are the natural ones of the first field
template <class S, class E>
void check_strided_gradients(World& world, const S& stencil, const E& of, const Indices& results,
                             const std::array<Indices, 2>& shapes) {
  constexpr bool is_pair = std::is_same_v<S, Across>;
  const auto field = [&](const Indices& shape, int seed) {
    const index_t extents[] = {shape[0], shape[1]};
    return numbered<double>(extents, seed);
  };
  const auto u = field(shapes[0], 1), c = field(shapes[1], 2), w = field(results, 3);
  NaiveGrids<double, 2> grids{shapes,
                              {naive_stride<2>(S::stride[0]), naive_stride<2>(S::stride[1])},
                              {elements_of(u), elements_of(c)},
                              beyond_all(of, 2)};
  const auto loss = [&] {
    const auto total = [&](const auto& one, double factor) {
      const auto y = grids.template results<double>(one, {0, 0}, results);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += factor * w.data()[i] * y[i];
      return sum;
    };
    if constexpr (is_pair)
      return total([&](const auto&... f) { return std::get<0>(stencil(f...)); }, 1) +
             total([&](const auto&... f) { return std::get<1>(stencil(f...)); }, 2);
    else return total(stencil, 1);
  };
  const double before = loss();
  std::array<std::vector<double>, 2> expected = grids.values;
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < grids.values[k].size(); ++i) {
      grids.values[k][i] += 1;
      expected[k][i] = loss() - before;
      grids.values[k][i] -= 1;
    }
  const auto check = [&](const auto& mesh, auto... p) {
    const auto place = [&](const auto& t) { return distribute_tensor(t, mesh, p...); };
    const auto x = requires_grad(place(u)), y = requires_grad(place(c));
    if constexpr (is_pair) {
      const auto [a, b] = apply(stencil, x, y, of);
      backward(sum(a * place(w)) + sum(b * place(w) * 2.0));
    } else {
      backward(sum(apply(stencil, x, y, of) * place(w)));
    }
    CHECK(same_bits(grad(x).full_tensor() + 0.0, expected[0]));  // + 0: no -0
    CHECK(same_bits(grad(y).full_tensor() + 0.0, expected[1]));
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
                   "stencil: the gradient requires extents in periodic dimensions that are "
                   "multiples of each other; those of dimension 0 are 9 and 5"));
  });
}

}  // namespace stencil_tests
