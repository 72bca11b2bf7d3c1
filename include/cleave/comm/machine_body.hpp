// Reads what communication costs on a machine.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/machine.hpp>
#include <cleave/core/error.hpp>

namespace cleave {

namespace detail {

CLEAVE_INLINE std::vector<TuneLine> tune_lines() {
  std::vector<TuneLine> lines;
  const char* name = std::getenv("CLEAVE_TUNE");
  if (name == nullptr || *name == '\0') return lines;
  std::ifstream file(name);
  if (!file) throw Error("run", std::string("CLEAVE_TUNE: cannot read '") + name + "'");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::string text = line.substr(0, line.find('#'));
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    lines.push_back({std::move(text), std::string(name) + ":" + std::to_string(number)});
  }
  return lines;
}

CLEAVE_INLINE bool is_about_machine(const std::string& line) {
  std::string word;
  std::istringstream(line) >> word;
  return word == "inside" || word == "between";
}

}  // namespace detail

CLEAVE_INLINE MachineCosts MachineCosts::from_environment() {
  MachineCosts costs;
  for (const auto& [text, where] : detail::tune_lines()) {
    if (!detail::is_about_machine(text)) continue;
    std::istringstream words(text);
    std::string link, more;
    LinkCosts read;
    words >> link >> read.latency_us >> read.bytes_per_us;
    const bool between = link == "between";
    if (between) words >> costs.ranks_per_node;
    if (!words || words >> more || !(read.latency_us >= 0) || !(read.bytes_per_us > 0) ||
        (between && costs.ranks_per_node < 1))
      throw Error("run", "CLEAVE_TUNE: " + where + ": '" + text +
                             "' is not inside or between, microseconds, bytes per microsecond, "
                             "and ranks per node after between");
    (between ? costs.between : costs.inside) = read;
  }
  return costs;
}

}  // namespace cleave
