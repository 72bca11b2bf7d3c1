// The command line of kmeans: its options and their errors.
#pragma once

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <sys/stat.h>

#include <cleave/cleave.hpp>

namespace kmeans {

/// Invalid input: one line for the user, exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string data = "digits.npy";    ///< points, one row each: any real numbers
  std::string labels{};               ///< the labels of the points, uint8; empty: none
  cleave::index_t k = 10;             ///< clusters
  cleave::index_t dp = 0, tp = 0;     ///< extents of the mesh; 0: not given
  cleave::index_t iterations = 1000;  ///< at most
  bool time = false;                  ///< print the time of an iteration
};

/// The value of `text`; 0 if it is not an integer of at least 1.
inline cleave::index_t whole(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return *end == '\0' && value >= 1 ? value : 0;
}

/// @throws UsageError unless `text` is an integer of at least 1
inline cleave::index_t positive(const std::string& option, const std::string& text) {
  if (whole(text) == 0)
    throw UsageError(option + " is '" + text + "'; it must be an integer of at least 1");
  return whole(text);
}

/// The default for --labels: labels.npy next to the data; empty if it does not exist.
inline std::string labels_beside(const std::string& data) {
  const std::size_t slash = data.rfind('/');
  const std::string path = (slash == data.npos ? "" : data.substr(0, slash + 1)) + "labels.npy";
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? path : "";
}

inline void set(Options& options, const std::string& option, const std::string& value) {
  if (option == "--data") {
    options.data = value;
  } else if (option == "--labels") {
    options.labels = value;
  } else if (option == "--k") {
    options.k = positive(option, value);
  } else if (option == "--iterations") {
    options.iterations = positive(option, value);
  } else if (option == "--mesh") {
    const std::size_t by = value.find('x');
    options.dp = whole(value.substr(0, by));
    options.tp = by == value.npos ? 0 : whole(value.substr(by + 1));
    if (options.dp == 0 || options.tp == 0)
      throw UsageError("--mesh is '" + value + "'; it must be two integers, as in 2x2");
  } else if (option != "--ranks" && option != "--device") {  // read by cleave::run
    throw UsageError("unknown option '" + option +
                     "'; the options are --data FILE.npy, --labels FILE.npy, --k K, --mesh AxB, "
                     "--ranks N, --iterations N, --time, --device NAME");
  }
}

/// Reads `--option value` and `--option=value`; `--time` has no value.
/// @throws UsageError for an unknown option, or a value that the option does not accept
inline Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--time") {
      options.time = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string option = word.substr(0, equals);
    std::string value;
    if (equals != word.npos) value = word.substr(equals + 1);
    else if (i + 1 < argc) value = argv[++i];
    set(options, option, value);
    if (value.empty()) throw UsageError(option + " requires a value");
  }
  if (options.labels.empty()) options.labels = labels_beside(options.data);
  return options;
}

/// The mesh that was given, otherwise the most nearly square one with dp >= tp.
/// @throws UsageError unless dp * tp is the number of ranks
inline std::array<cleave::index_t, 2> mesh_extents(const Options& options, cleave::index_t ranks) {
  cleave::index_t a = options.dp, b = options.tp;
  if (a == 0) {
    b = 1;
    for (cleave::index_t n = 2; n * n <= ranks; ++n)
      if (ranks % n == 0) b = n;
    a = ranks / b;
  }
  if (a > ranks || b > ranks || a * b != ranks)
    throw UsageError("--mesh " + std::to_string(a) + "x" + std::to_string(b) +
                     " does not match the number of ranks, " + std::to_string(ranks));
  return {a, b};
}

}  // namespace kmeans
