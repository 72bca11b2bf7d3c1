// What the programs on grids have in common: their options, their mesh, and pictures.
#pragma once

#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include <cleave/cleave.hpp>

#include "command_line.hpp"

namespace grid {

using cleave::index_t;
using command_line::UsageError;
using Mesh = cleave::DeviceMesh<cleave::Host, cleave::axes::row, cleave::axes::col>;

struct Options {
  index_t rows, columns, steps;
  index_t up = 0, across = 0;  ///< extents of the mesh; 0: all ranks up
  std::string picture{};       ///< a PPM file; empty: none
};

/// @param options  the defaults
inline Options parse(int argc, char** argv, Options options) {
  command_line::parse(argc, argv, [&](const std::string& option, const std::string& value) {
    if (option == "--rows") options.rows = command_line::positive(option, value);
    else if (option == "--columns") options.columns = command_line::positive(option, value);
    else if (option == "--steps") options.steps = command_line::positive(option, value);
    else if (option == "--picture") options.picture = value;
    else if (option == "--mesh") command_line::set_mesh(options.up, options.across, value);
    else if (option != "--ranks")
      throw UsageError("unknown option '" + option +
                       "'; the options are --rows, --columns, --steps, --mesh 2x2, --picture "
                       "FILE.ppm and --ranks");
  });
  return options;
}

/// All ranks, `up` times `across`.
inline Mesh mesh_of(const cleave::World& world, index_t up, index_t across) {
  if (up * across != world.size())
    throw UsageError("--mesh " + std::to_string(up) + "x" + std::to_string(across) +
                     " does not match the number of ranks, " + std::to_string(world.size()));
  return cleave::init_device_mesh<cleave::axes::row, cleave::axes::col>(world, {up, across});
}
/// All ranks, as the options arrange them.
inline Mesh mesh_of(const cleave::World& world, const Options& options) {
  return options.up > 0 ? mesh_of(world, options.up, options.across)
                        : mesh_of(world, world.size(), 1);
}

/// Prints eight elements of a row with all their digits.
inline void print_row(const cleave::Tensor<double, 2>& u, index_t row) {
  for (index_t j = 0; j < u.extent(1); j += (u.extent(1) + 7) / 8)
    std::printf("u(%d, %d) = %.17g\n", int(row), int(j), u(row, j));
}

/// Writes elements from `low` to `high` in colours from blue over white to red.
inline void write_picture(const std::string& file, const cleave::Tensor<double, 2>& u, double low,
                          double high) {
  std::ofstream out(file, std::ios::binary);
  out << "P6\n" << u.extent(1) << ' ' << u.extent(0) << "\n255\n";
  for (index_t i = 0; i < u.extent(0); ++i)
    for (index_t j = 0; j < u.extent(1); ++j) {
      const double t = std::fmin(std::fmax((u(i, j) - low) / (high - low), 0.0), 1.0);
      const double colour[] = {std::fmin(2 * t, 1.0), 1 - std::fabs(2 * t - 1),
                               std::fmin(2 - 2 * t, 1.0)};
      for (const double c : colour) out.put(char(std::lround(255 * c)));
    }
  out.close();
  if (!out) throw cleave::Error("write_picture", "'" + file + "' cannot be written");
}

/// Runs simulate(world, parse(argc, argv)) on all ranks.
template <class Parse, class Simulate>
int main_by(const char* name, int argc, char** argv, const Parse& parse, const Simulate& simulate) {
  std::optional<decltype(parse(argc, argv))> options;
  std::string problem;
  try {
    options = parse(argc, argv);
  } catch (const UsageError& error) {
    problem = error.what();
  }
  return cleave::run<cleave::Host>(argc, argv, [&](cleave::World& world, cleave::Host) {
    try {
      if (!options) throw UsageError(problem);
      simulate(world, *options);
      return 0;
    } catch (const UsageError& error) {  // the same on every rank
      if (world.rank() == 0) std::fprintf(stderr, "%s: %s\n", name, error.what());
      return 2;
    }
  });
}
/// Runs simulate(world, options) on all ranks.
template <class Simulate>
int main_of(const char* name, int argc, char** argv, const Options& defaults,
            const Simulate& simulate) {
  const auto parsed = [&](int count, char** words) { return parse(count, words, defaults); };
  return main_by(name, argc, argv, parsed, simulate);
}

}  // namespace grid
