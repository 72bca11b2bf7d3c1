// Sound above and below an interface: the wave equation u'' = c^2 div grad u in two layers, with a
// source that starts at a point, periodic from left to right, absorbed above and below.
//
//     wave --rows 300 --columns 400 --steps 600 --mesh 2x2 --ranks 4 --picture wave.ppm
//
// Derivatives in space are of order 8: a step reads four elements at each side. The new pressure is
// written over the one before, of which only the element itself is read.
#include <cmath>
#include <cstdio>
#include <utility>

#include <cleave/cleave.hpp>

#include "../grid.hpp"

using namespace cleave;

namespace {

/// The speed of sound and what the sponge above and below absorbs.
struct Medium : Stencil {
  index_t rows = 1;
  constexpr auto operator()(const auto& u) const {
    const index_t i = u.index(0), to_edge = i < rows - 1 - i ? i : rows - 1 - i;
    const double depth = to_edge < 20 ? 1 - double(to_edge) / 20 : 0;
    return std::tuple{2 * i < rows ? 0.08 : 0.24, 0.2 * depth * depth};
  }
};

/// A step in time.
struct Wave : Stencil {
  index_t row = 0, column = 0;  ///< of the source

  /// @param c2      (c dt / h)^2
  /// @param damp    what is absorbed
  /// @param source  what the source adds
  constexpr auto operator()(const auto& u, const auto& before, const auto& c2, const auto& damp,
                            double source) const {
    const double weights[] = {8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};
    double laplace = -2 * 205.0 / 72 * u(0, 0);
    for (int k = 1; k <= 4; ++k)
      laplace += weights[k - 1] * (u(-k, 0) + u(k, 0) + u(0, -k) + u(0, k));
    const double next = 2 * u(0, 0) - (1 - damp(0, 0)) * before(0, 0) + c2(0, 0) * laplace;
    const bool is_source = u.index(0) == row && u.index(1) == column;
    return next / (1 + damp(0, 0)) + (is_source ? source : 0.0);
  }
};

/// Ricker's wavelet.
double source_at(index_t step) {
  const double t = (double(step) - 40) / 12;
  return (1 - 2 * t * t) * std::exp(-t * t);
}

void simulate(World& world, const grid::Options& options) {
  const index_t rows = options.rows, columns = options.columns;
  const grid::Mesh mesh = grid::mesh_of(world, options);
  auto u = zeros<double>({rows, columns}, mesh, Shard<0>{}, Shard<1>{}, margin(4));
  auto before = zeros<double>({rows, columns}, mesh, Shard<0>{}, Shard<1>{}, margin(4));
  const auto [c2, damp] = apply(Medium{{}, rows}, u);
  const Wave wave{{}, rows / 3, columns / 2};
  const CommTrace trace(world);
  for (index_t step = 0; step < options.steps; ++step, std::swap(u, before))
    apply(out(before), wave, u, before, c2, damp, source_at(step), edges(zero, periodic));
  const index_t messages = trace.received_messages(), bytes = trace.received_bytes();
  const Tensor<double, 2> whole = u.full_tensor();
  if (world.rank() != 0) return;
  std::printf("%d ranks; in a step rank 0 receives %d messages, %d bytes\n", world.size(),
              int(messages / options.steps), int(bytes / options.steps));
  grid::print_row(whole, rows / 2);
  if (!options.picture.empty()) grid::write_picture(options.picture, whole, -0.5, 0.5);
}

}  // namespace

int main(int argc, char** argv) {
  return grid::main_of("wave", argc, argv, {300, 400, 600}, &simulate);
}
