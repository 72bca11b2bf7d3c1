// Gradients of stencils on GPUs: those of the host, which tests/grad compares with naive loops.
// Elements are small integers, so that sums are exact.
#include <cleave/grad.hpp>
#include <cleave/mesh/device_mesh.hpp>

#include "../ops/naive_stencils.hpp"
#include "../ops/naive_strides.hpp"
#include "ranks.hpp"

namespace stencil_tests {

using namespace cleave::axes;

namespace {

/// The gradient of the sum of the squares of the results.
template <class S, class E, class X>
auto gradient_of_squares(const S& stencil, const E& of, const X& u) {
  const auto x = requires_grad(u);
  const auto y = apply(stencil, x, of);
  backward(sum(y * y));
  return grad(x);
}

template <class S, class E>
void check_gradient(World& world, const S& stencil, const E& of, index_t rows, index_t columns) {
  const auto u = numbered<double>({rows, columns});
  const auto expected = elements_of(gradient_of_squares(stencil, of, u));
  const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
  const auto found = gradient_of_squares(stencil, of, distribute_tensor(u, mesh, Shard<0>{}));
  CHECK(same_bits(found.full_tensor(), expected));
}

}  // namespace

TEST_CASE("gradients of stencils on devices are those on the host, also between grids") {
  on_ranks({1, 2, 3}, [](World& world) {
    check_gradient(world, Heat{}, edges(neumann, periodic), 7, 5);
    check_gradient(world, Nine{}, edges(sides(none, mirror), zero), 6, 5);
    check_gradient(world, Restrict<2, 3>{}, edges(mirror, none), 9, 8);
    check_gradient(world, Restrict<2, 2>{}, edges(periodic), 8, 6);
    check_gradient(world, Interpolate{}, edges(sides(none, neumann), dirichlet(2.0)), 4, 5);
  });
}

}  // namespace stencil_tests
