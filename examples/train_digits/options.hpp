// The command line of train_digits.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <cleave/cleave.hpp>

namespace digits {

/// Bad input: one line for the user, exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string data = "examples/kmeans";  ///< where digits.npy and labels.npy are
  std::string checkpoints{};             ///< a directory to save to, and to go on from; empty: none
  cleave::index_t dp = 0, tp = 1;        ///< extents of the mesh; dp 0: what tp leaves over
  cleave::index_t epochs = 40;
  cleave::index_t batch = 60;
  cleave::index_t hidden = 128;
};

/// @throws UsageError unless `text` is a whole number of at least 1
inline cleave::index_t positive(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 1)
    throw UsageError(option + " is '" + text + "'; it takes a whole number of at least 1");
  return value;
}

/// Reads "dp=2,tp=2", in any order.
inline void set_mesh(Options& options, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string axis = text.substr(at, 3);
    if (axis != "dp=" && axis != "tp=")
      throw UsageError("--mesh is '" + text + "'; it takes extents by name, as in dp=2,tp=2");
    const std::string extent = text.substr(at + 3, end - at - 3);
    (axis == "dp=" ? options.dp : options.tp) = positive("--mesh", extent);
    at = end + 1;
  }
}

inline void set(Options& options, const std::string& option, const std::string& value) {
  if (option == "--data") options.data = value;
  else if (option == "--checkpoints") options.checkpoints = value;
  else if (option == "--mesh") set_mesh(options, value);
  else if (option == "--epochs") options.epochs = positive(option, value);
  else if (option == "--batch") options.batch = positive(option, value);
  else if (option == "--hidden") options.hidden = positive(option, value);
  else if (option != "--ranks")  // which is for cleave::run
    throw UsageError("there is no option '" + option +
                     "'; there are --data DIRECTORY, --mesh dp=N,tp=N, --ranks N, --epochs N, "
                     "--batch N, --hidden N, --checkpoints DIRECTORY");
}

/// Reads `--option value` and `--option=value`.
/// @throws UsageError for what is no option, and for a value that the option cannot have
inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    const std::string option = word.substr(0, equals);
    std::string value;
    if (equals != word.npos) value = word.substr(equals + 1);
    else if (i + 1 < argc) value = argv[++i];
    if (value.empty()) throw UsageError(option + " needs a value");
    set(options, option, value);
  }
  return options;
}

}  // namespace digits
