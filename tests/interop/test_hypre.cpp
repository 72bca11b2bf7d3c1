// hypre's conjugate gradients with multigrid on DTensors, against an elimination of the whole
// matrix by loops.
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/interop/hypre.hpp>

#include "errors.hpp"
#include "known_arrays.hpp"
#include "naive.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::Processes;
using namespace cleave::axes;

namespace hypre_test {
namespace {

using namespace known_arrays;

/// The solution of c u - Δu = element_at(..) on a grid, row-major, by elimination.
template <int Rank>
std::vector<double> eliminated(const std::array<index_t, std::size_t(Rank)>& shape,
                               const hypre::HelmholtzOptions<Rank>& options) {
  std::size_t n = 1;
  for (const index_t extent : shape) n *= std::size_t(extent);
  std::vector<double> a(n * n, 0.0), x(n);
  for (std::size_t row = 0; row < n; ++row) {
    naive::Indices index(shape.size());
    std::size_t rest = row, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0; rest /= std::size_t(shape[d]))
      index[d] = index_t(rest % std::size_t(shape[d]));
    x[row] = element_at<double>(index);
    a[row * n + row] = options.shift;
    for (std::size_t d = shape.size(); d-- > 0; stride *= std::size_t(shape[d])) {
      const double weight = 1 / (options.spacing[d] * options.spacing[d]);
      a[row * n + row] += 2 * weight;
      if (index[d] > 0) a[row * n + row - stride] = -weight;
      if (index[d] + 1 < shape[d]) a[row * n + row + stride] = -weight;
    }
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (std::size_t j = k; j < n && factor != 0; ++j) a[i * n + j] -= factor * a[k * n + j];
      x[i] -= factor * x[k];
    }
  for (std::size_t k = n; k-- > 0; x[k] /= a[k * n + k])
    for (std::size_t j = k + 1; j < n; ++j) x[k] -= a[k * n + j] * x[j];
  return x;
}

template <int Rank, class Mesh, class P>
void check_solution(const Mesh& mesh, const std::array<index_t, std::size_t(Rank)>& shape,
                    const P& placements, const hypre::HelmholtzOptions<Rank>& options) {
  CAPTURE(to_string(layout_of<normalized_t<P, Rank>, Rank>));
  CAPTURE(to_string(Shape(shape)));
  const auto f = filled<double, Rank>(mesh, shape, placements);
  hypre::Helmholtz solve(f, options);
  const auto u = solve(f);
  static_assert(std::is_same_v<decltype(u), decltype(f)>);
  CHECK(solve.residual() <= options.tolerance);
  const std::vector<double> expected = eliminated<Rank>(shape, options);
  double largest = 0, wrong = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  const auto indices = own_indices(u);
  REQUIRE(index_t(indices.size()) == u.to_local().size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::size_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      at = at * std::size_t(shape[d]) + std::size_t(indices[i][d]);
    wrong = std::max(wrong, std::abs(u.to_local().data()[i] - expected[at]));
  }
  CHECK(wrong < 1e-8 * largest);
  const auto again = solve(f);
  for (std::size_t i = 0; i < indices.size(); ++i)
    CHECK(again.to_local().data()[i] == u.to_local().data()[i]);
}

}  // namespace

TEST_CASE("hypre solves the Poisson and the Helmholtz equation on parts of any boxes") {
  between_processes({1, 2, 3, 4}, [](World& world) {
    const index_t n = world.size(), rows = n == 4 ? 2 : n;
    const auto mesh = init_device_mesh<row, col>(world, {rows, n / rows});
    const Placements<Shard<0>, Shard<1>> blocks;
    const Placements<Shard<1>, Shard<0>> other;
    const Placements<Shard<0>, Shard<0>> slabs;
    check_solution<2>(mesh, {7, 6}, blocks, {});
    check_solution<2>(mesh, {7, 6}, slabs, {.spacing = {0.1, 0.3}});
    check_solution<2>(mesh, {9, 5}, other, {.spacing = {1, 2}, .shift = 0.7});
    check_solution<2>(mesh, {8, 16}, Placements<Balanced<1>, Balanced<0>>{}, {.shift = 20});
    check_solution<2>(mesh, {1, 13}, other, {});
    check_solution<3>(mesh, {4, 5, 6}, blocks, {.spacing = {0.5, 1, 2}});
    check_solution<3>(mesh, {5, 3, 7}, Placements<Shard<2>, Shard<0>>{}, {.shift = 1});
    check_solution<3>(mesh, {6, 4, 3}, slabs, {});
    std::vector<index_t> points{0, 7};
    if (rows > 1) points = {0, 5, 7};
    if (rows > 2) points = {0, 5, 5, 7};
    check_solution<2>(mesh, {7, 6}, Placements<Cuts<0>, Shard<1>>(Cuts<0>(points), Shard<1>{}), {});
    check_solution<2>(mesh, {2, 9}, slabs, {});  // with empty parts
  });
}

TEST_CASE("hypre takes about as many iterations on a fine grid as on a coarse one") {
  between_processes({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    for (const index_t n : {15, 63, 255}) {
      const double h = 1.0 / double(n + 1);
      const auto f = full<double>({n, n}, 1, mesh, Shard<0>{});
      hypre::Helmholtz solve(f, {.spacing = {h, h}});
      const auto u = solve(f).full_tensor();
      CHECK(solve.iterations() <= 20);  // without a preconditioner 255 points take hundreds
      CHECK(std::abs(u(n / 2, n / 2) - 0.0736713) < 0.5 * h * h);  // the series at the centre
    }
  });
}

TEST_CASE("hypre refuses what it cannot solve, on all ranks") {
  between_processes({1, 2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {world.size()});
    const auto f = filled<double, 2>(mesh, {9, 8}, Placements<Shard<0>>{});
    using Solver = hypre::Helmholtz<std::remove_const_t<decltype(f)>>;
    const auto refused = [&](const std::string& what, const auto& make) {
      const std::string error = error_of(make);
      CHECK(contains(error, what));
      CHECK(contains(error, "shapes [9, 8]; placements (Shard(0)); mesh row="));
    };
    refused("the spacing must be positive, not 0.0", [&] { Solver(f, {.spacing = {1, 0}}); });
    refused("the shift must be 0 or more, not -1.0", [&] { Solver(f, {.shift = -1}); });
    refused("the tolerance must be positive", [&] { Solver(f, {.tolerance = 0}); });
    refused("after 1 iterations the relative residual is",
            [&] { Solver(f, {.max_iterations = 1})(f); });
    const auto none = zeros<double>({0, 8}, mesh, Shard<0>{});
    CHECK(contains(error_of([&] { Solver solver(none); }), "the grid has no points"));
    Solver solver(f);
    const auto other = filled<double, 2>(mesh, {8, 8}, Placements<Shard<0>>{});
    CHECK(contains(error_of([&] { solver(other); }), "f has another shape, placements or mesh"));
    const auto nan =
        full<double>({9, 8}, std::numeric_limits<double>::quiet_NaN(), mesh, Shard<0>{});
    CHECK(error_of([&] { solver(nan); }) != "");
    CHECK(solver(f).shape() == f.shape());  // after these errors
    const auto zero = solver(zeros<double>({9, 8}, mesh, Shard<0>{})).to_local();
    for (index_t i = 0; i < zero.size(); ++i) CHECK(zero.data()[i] == 0);
  });
}

TEST_CASE("hypre refuses ranks that are threads" * doctest::test_suite("threads only")) {
  if (Processes::get().launched()) return skip("ranks are processes");
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<row>(world, {2});
    const auto f = zeros<double>({4, 4}, mesh, Shard<0>{});
    CHECK(contains(error_of([&] { hypre::Helmholtz solve(f); }), "not by MPI"));
  });
}

}  // namespace hypre_test
