// Heat in a pipe: the equation u' = div grad u on its unrolled wall, periodic around the pipe, with
// given temperatures at both ends.
//
//     heat --rows 200 --columns 400 --steps 2000 --mesh 2x2 --ranks 4 --picture heat.ppm
//
// A step is one call: it receives a row or a column from each neighbour into the margin of the
// field, and computes the rank's part from there. The temperatures have the same bits on any mesh.
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <cleave/cleave.hpp>

#include "../command_line.hpp"

using namespace cleave;
using command_line::UsageError;

namespace {

struct Options {
  index_t rows = 200, columns = 400, steps = 2000;
  index_t up = 0, across = 0;  ///< extents of the mesh; 0: all ranks up
  std::string picture{};       ///< a PPM file; empty: none
};

Options parse(int argc, char** argv) {
  Options options;
  command_line::parse(argc, argv, [&](const std::string& option, const std::string& value) {
    if (option == "--rows") options.rows = command_line::positive(option, value);
    else if (option == "--columns") options.columns = command_line::positive(option, value);
    else if (option == "--steps") options.steps = command_line::positive(option, value);
    else if (option == "--picture") options.picture = value;
    else if (option == "--mesh") {
      const std::size_t cross = value.find('x');
      if (cross == value.npos)
        throw UsageError("--mesh is '" + value + "'; it must be two integers, as in 2x2");
      options.up = command_line::positive(option, value.substr(0, cross));
      options.across = command_line::positive(option, value.substr(cross + 1));
    } else if (option != "--ranks") {
      throw UsageError("unknown option '" + option +
                       "'; the options are --rows, --columns, --steps, --mesh 2x2, --picture "
                       "FILE.ppm and --ranks");
    }
  });
  return options;
}

/// One explicit step of Euler's method.
struct Heat : Stencil {
  CLEAVE_HOST_DEVICE constexpr auto operator()(const auto& u) const {
    return u(0, 0) + 0.2 * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0));
  }
};

/// Writes temperatures from 0 to 1 in colours from blue over white to red.
void write_picture(const std::string& file, const Tensor<double, 2>& u) {
  std::ofstream out(file, std::ios::binary);
  out << "P6\n" << u.extent(1) << ' ' << u.extent(0) << "\n255\n";
  for (index_t i = 0; i < u.extent(0); ++i)
    for (index_t j = 0; j < u.extent(1); ++j) {
      const double t = std::fmin(std::fmax(u(i, j), 0.0), 1.0);
      const double colour[] = {std::fmin(2 * t, 1.0), 1 - std::fabs(2 * t - 1),
                               std::fmin(2 - 2 * t, 1.0)};
      for (const double c : colour) out.put(char(std::lround(255 * c)));
    }
  out.close();
  if (!out) throw Error("heat", "'" + file + "' cannot be written");
}

void simulate(World& world, const Options& options) {
  const index_t up = options.up > 0 ? options.up : world.size();
  const index_t across = options.up > 0 ? options.across : 1;
  if (up * across != world.size())
    throw UsageError("--mesh " + std::to_string(up) + "x" + std::to_string(across) +
                     " does not match the number of ranks, " + std::to_string(world.size()));
  const auto mesh = init_device_mesh<axes::row, axes::col>(world, {up, across});
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
  for (index_t j = 0; j < options.columns; j += (options.columns + 7) / 8)
    std::printf("u(%d, %d) = %.17g\n", int(rows / 8), int(j), whole(rows / 8, j));
  if (!options.picture.empty()) write_picture(options.picture, whole);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::string problem;
  try {
    options = parse(argc, argv);
  } catch (const UsageError& error) {
    problem = error.what();
  }
  return run<Host>(argc, argv, [&](World& world, Host) {
    try {
      if (!problem.empty()) throw UsageError(problem);
      simulate(world, options);
      return 0;
    } catch (const UsageError& error) {  // the same on every rank
      if (world.rank() == 0) std::fprintf(stderr, "heat: %s\n", error.what());
      return 2;
    }
  });
}
