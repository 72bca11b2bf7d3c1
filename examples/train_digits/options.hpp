// The command line of train_digits.
#pragma once

#include <string>

#include <cleave/core/config.hpp>

#include "../command_line.hpp"

namespace digits {

using command_line::UsageError;

struct Options {
  std::string data = "examples/kmeans";  ///< where digits.npy and labels.npy are
  std::string checkpoints{};             ///< a directory to save to, and to go on from; empty: none
  command_line::MeshExtents mesh{};
  cleave::index_t epochs = 40;
  cleave::index_t batch = 60;
  cleave::index_t hidden = 128;
};

inline void set(Options& options, const std::string& option, const std::string& value) {
  using command_line::positive;
  if (option == "--data") options.data = value;
  else if (option == "--checkpoints") options.checkpoints = value;
  else if (option == "--mesh") command_line::set_mesh(options.mesh, value);
  else if (option == "--epochs") options.epochs = positive(option, value);
  else if (option == "--batch") options.batch = positive(option, value);
  else if (option == "--hidden") options.hidden = positive(option, value);
  else if (option != "--ranks")  // which is for cleave::run
    throw UsageError("there is no option '" + option +
                     "'; there are --data DIRECTORY, --mesh dp=N,tp=N, --ranks N, --epochs N, "
                     "--batch N, --hidden N, --checkpoints DIRECTORY");
}

/// @throws UsageError for what is no option, and for a value that the option cannot have
inline Options parse(int argc, char** argv) {
  Options options;
  command_line::parse(argc, argv, [&](const std::string& option, const std::string& value) {
    set(options, option, value);
  });
  return options;
}

}  // namespace digits
