// The command line of turbulence.
#pragma once

#include <cstdlib>
#include <string>

#include <cleave/core/config.hpp>

#include "../command_line.hpp"

namespace turbulence {

using cleave::index_t;
using command_line::UsageError;

struct Options {
  index_t size = 128, layers = 1;  ///< elements: layers x size x size; a plane has one layer
  index_t steps = 1000;
  index_t every = 50;             ///< steps between lines of progress and pictures
  index_t rows = 0, columns = 0;  ///< of the mesh; 0: layers are whole
  double dt = 0.01, viscosity = 0.0005;
  std::string start = "vortices";  ///< or taylor-green
  std::string picture{};           ///< a directory for pictures of the vorticity; empty: none
  std::string spectrum{};          ///< a file for the energy of wave numbers; empty: none
  std::string resume{};            ///< a directory to save to and resume from; empty: none
};

/// @throws UsageError unless `text` is a number of at least 0
inline double number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(value >= 0))
    throw UsageError(option + " is '" + text + "'; it must be a number of at least 0");
  return value;
}

inline Options parse(int argc, char** argv) {
  using command_line::positive;
  Options options;
  command_line::parse(argc, argv, [&](const std::string& option, const std::string& value) {
    if (option == "--size") options.size = positive(option, value);
    else if (option == "--layers") options.layers = positive(option, value);
    else if (option == "--steps") options.steps = positive(option, value);
    else if (option == "--every") options.every = positive(option, value);
    else if (option == "--dt") options.dt = number(option, value);
    else if (option == "--viscosity") options.viscosity = number(option, value);
    else if (option == "--picture") options.picture = value;
    else if (option == "--spectrum") options.spectrum = value;
    else if (option == "--resume") options.resume = value;
    else if (option == "--start" && (value == "vortices" || value == "taylor-green"))
      options.start = value;
    else if (option == "--mesh") command_line::set_mesh(options.rows, options.columns, value);
    else if (option != "--ranks")
      throw UsageError("unknown option '" + option + " " + value +
                       "'; the options are --size N, --layers N, --steps N, --every N, --dt X, "
                       "--viscosity X, --start vortices or taylor-green, --mesh 2x2, --ranks N, "
                       "--picture DIRECTORY, --spectrum FILE.svg and --resume DIRECTORY");
  });
  return options;
}

}  // namespace turbulence
