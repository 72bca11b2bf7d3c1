// The command line of train_gpt.
#pragma once

#include <string>
#include <string_view>

#include <cleave/core/config.hpp>

#include "../command_line.hpp"

namespace gpt {

using command_line::UsageError;

struct Options {
  /// From Debian's package base-files, which is always installed.
  std::string text = "/usr/share/common-licenses/GPL-3";
  std::string resume{};  ///< a directory to save to and resume from; empty: none
  std::string curve{};   ///< a file for a plot of the losses; empty: none
  command_line::MeshExtents mesh{};
  bool sharded = false;  ///< shard parameters, gradients and optimizer state over dp
  cleave::index_t steps = 300;
  cleave::index_t every = 20;  ///< steps between lines of progress
  cleave::index_t save = 100;  ///< steps between checkpoints
  cleave::index_t batch = 16;
  cleave::index_t context = 64;
  cleave::index_t width = 64;
  cleave::index_t heads = 4;
  cleave::index_t layers = 2;
  cleave::index_t sample = 200;  ///< characters to generate after training
};

inline void set(Options& options, const std::string& option, const std::string& value) {
  using command_line::positive;
  if (option == "--text") options.text = value;
  else if (option == "--resume") options.resume = value;
  else if (option == "--curve") options.curve = value;
  else if (option == "--mesh") command_line::set_mesh(options.mesh, value);
  else if (option == "--steps") options.steps = positive(option, value);
  else if (option == "--every") options.every = positive(option, value);
  else if (option == "--save") options.save = positive(option, value);
  else if (option == "--batch") options.batch = positive(option, value);
  else if (option == "--context") options.context = positive(option, value);
  else if (option == "--width") options.width = positive(option, value);
  else if (option == "--heads") options.heads = positive(option, value);
  else if (option == "--layers") options.layers = positive(option, value);
  else if (option == "--sample") options.sample = positive(option, value);
  else if (option != "--ranks")  // read by cleave::run
    throw UsageError(
        "unknown option '" + option +
        "'; the options are --text FILE, --resume DIRECTORY, --mesh dp=N,tp=N, --ranks N, "
        "--steps N, --every N, --save N, --batch N, --context N, --width N, "
        "--heads N, --layers N, --sample N, --curve FILE.svg, --sharded");
}

/// @throws UsageError for an unknown option, and for values that do not fit each other
inline Options parse(int argc, char** argv) {
  Options options;
  const std::string_view flag = "--sharded";
  command_line::parse(argc, argv, flag, [&](const std::string& option, const std::string& value) {
    if (option == flag) options.sharded = true;
    else set(options, option, value);
  });
  if (options.width % options.heads != 0)
    throw UsageError("--width " + std::to_string(options.width) + " is not a multiple of --heads " +
                     std::to_string(options.heads));
  if (options.heads % options.mesh.tp != 0)
    throw UsageError("--heads " + std::to_string(options.heads) +
                     " is not a multiple of tp=" + std::to_string(options.mesh.tp));
  return options;
}

}  // namespace gpt
