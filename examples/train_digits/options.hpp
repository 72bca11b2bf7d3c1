// The command line of train_digits.
#pragma once

#include <string>

#include <cleave/core/config.hpp>

#include "../command_line.hpp"

namespace digits {

using command_line::UsageError;

struct Options {
  std::string data = "examples/kmeans";  ///< where digits.npy and labels.npy are
  std::string model = "mlp";             ///< or cnn
  std::string checkpoints{};             ///< a directory to save to and resume from; empty: none
  std::string curve{};                   ///< a file for a plot of the losses; empty: none
  std::string losses{};                  ///< a file for the bits of every loss; empty: none
  bool exact = false;                    ///< exact sums, for an mlp
  command_line::MeshExtents mesh{};
  cleave::index_t epochs = 40;
  cleave::index_t batch = 60;
  cleave::index_t hidden = 128;  ///< of an mlp
  cleave::index_t filters = 16;  ///< of the first layer of a cnn
};

/// @throws UsageError for an unknown model
inline std::string model_of(const std::string& name) {
  if (name != "mlp" && name != "cnn")
    throw UsageError("unknown model '" + name + "'; it must be mlp or cnn");
  return name;
}

inline void set(Options& options, const std::string& option, const std::string& value) {
  using command_line::positive;
  if (option == "--data") options.data = value;
  else if (option == "--model") options.model = model_of(value);
  else if (option == "--checkpoints") options.checkpoints = value;
  else if (option == "--curve") options.curve = value;
  else if (option == "--losses") options.losses = value;
  else if (option == "--exact") options.exact = command_line::truth(option, value);
  else if (option == "--mesh") command_line::set_mesh(options.mesh, value);
  else if (option == "--epochs") options.epochs = positive(option, value);
  else if (option == "--batch") options.batch = positive(option, value);
  else if (option == "--hidden") options.hidden = positive(option, value);
  else if (option == "--filters") options.filters = positive(option, value);
  else if (option != "--ranks")  // read by cleave::run
    throw UsageError(
        "unknown option '" + option +
        "'; the options are --data DIRECTORY, --mesh dp=N,tp=N, --ranks N, --epochs N, "
        "--batch N, --model mlp|cnn, --hidden N, --filters N, --checkpoints DIRECTORY, "
        "--curve FILE.svg, --losses FILE, --exact yes|no");
}

/// @throws UsageError for an unknown option, or a value that the option does not accept
inline Options parse(int argc, char** argv) {
  Options options;
  command_line::parse(argc, argv, [&](const std::string& option, const std::string& value) {
    set(options, option, value);
  });
  if (options.exact && options.model != "mlp") throw UsageError("--exact yes is for --model mlp");
  return options;
}

}  // namespace digits
