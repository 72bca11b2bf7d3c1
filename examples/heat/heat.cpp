// Heat in a pipe: the equation u' = div grad u on its unrolled wall, periodic around the pipe, with
// given temperatures at both ends.
//
//     heat --rows 200 --columns 400 --steps 2000 --mesh 2x2 --ranks 4 --picture heat.ppm
//
// A step is one call: it receives a row or a column from each neighbour into the margin of the
// field, and computes the rank's part from there. The temperatures have the same bits on any mesh.
#include <cstdio>
#include <utility>

#include <cleave/cleave.hpp>

#include "../grid.hpp"

using namespace cleave;

namespace {

/// One explicit step of Euler's method.
struct Heat : Stencil {
  CLEAVE_HOST_DEVICE constexpr auto operator()(const auto& u) const {
    return u(0, 0) + 0.2 * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0));
  }
};

void simulate(World& world, const grid::Options& options) {
  const grid::Mesh mesh = grid::mesh_of(world, options);
  const index_t rows = options.rows;
  auto u = zeros<double>({rows, options.columns}, mesh, Shard<0>{}, Shard<1>{}, margin(1));
  auto v = zeros<double>({rows, options.columns}, mesh, Shard<0>{}, Shard<1>{}, margin(1));
  const auto flame = [rows](index_t i, index_t) { return i < rows / 4 ? 1.0 : 0.25; };
  const CommTrace trace(world);
  for (index_t step = 0; step < options.steps; ++step, std::swap(u, v))
    apply(out(v), Heat{}, u, edges(periodic, sides(dirichlet(flame), zero)));
  const index_t messages = trace.received_messages(), bytes = trace.received_bytes();
  const Tensor<double, 2> whole = u.full_tensor();
  if (world.rank() != 0) return;
  std::printf("%d ranks; in a step rank 0 receives %d messages, %d bytes\n", world.size(),
              int(messages / options.steps), int(bytes / options.steps));
  grid::print_row(whole, rows / 8);
  if (!options.picture.empty()) grid::write_picture(options.picture, whole, 0, 1);
}

}  // namespace

int main(int argc, char** argv) {
  return grid::main_of("heat", argc, argv, {200, 400, 2000}, &simulate);
}
