// Parses the command lines of the examples: `--option value` and `--option=value`.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include <cleave/core/config.hpp>

namespace command_line {

/// Invalid input: one line for the user, exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws UsageError unless `text` is an integer of at least 1
inline cleave::index_t positive(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 1)
    throw UsageError(option + " is '" + text + "'; it must be an integer of at least 1");
  return value;
}

/// @throws UsageError unless `text` is yes or no
inline bool truth(const std::string& option, const std::string& text) {
  if (text != "yes" && text != "no")
    throw UsageError(option + " is '" + text + "'; it must be yes or no");
  return text == "yes";
}

/// Extents of a mesh of dp x tp ranks.
struct MeshExtents {
  cleave::index_t dp = 0, tp = 1;  ///< dp 0: all ranks divided by tp

  cleave::index_t along_dp(cleave::index_t ranks) const { return dp > 0 ? dp : ranks / tp; }
};

/// Reads "dp=2,tp=2", in any order.
inline void set_mesh(MeshExtents& mesh, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string axis = text.substr(at, 3);
    if (axis != "dp=" && axis != "tp=")
      throw UsageError("--mesh is '" + text + "'; it must be extents by name, as in dp=2,tp=2");
    const std::string extent = text.substr(at + 3, end - at - 3);
    (axis == "dp=" ? mesh.dp : mesh.tp) = positive("--mesh", extent);
    at = end + 1;
  }
}

/// Reads "2x3", the extents of a mesh of rows and columns.
inline void set_mesh(cleave::index_t& rows, cleave::index_t& columns, const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == text.npos)
    throw UsageError("--mesh is '" + text + "'; it must be two integers, as in 2x2");
  rows = positive("--mesh", text.substr(0, cross));
  columns = positive("--mesh", text.substr(cross + 1));
}

/// Calls set(option, value) for each option.
/// @param flag  an option without a value
/// @throws UsageError if any other option has no value
template <class Set>
void parse(int argc, char** argv, std::string_view flag, const Set& set) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == flag) {
      set(word, std::string());
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string option = word.substr(0, equals);
    std::string value;
    if (equals != word.npos) value = word.substr(equals + 1);
    else if (i + 1 < argc) value = argv[++i];
    if (value.empty()) throw UsageError(option + " requires a value");
    set(option, value);
  }
}
template <class Set>
void parse(int argc, char** argv, const Set& set) {
  parse(argc, argv, {}, set);
}

}  // namespace command_line
