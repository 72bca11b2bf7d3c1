// Reads the communication costs of a machine. Avoids streams, whose header costs a compiler 4 MB of
// memory: every program that includes the library compiles this.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <cleave/comm/machine.hpp>
#include <cleave/core/error.hpp>

namespace cleave {

namespace detail {

CLEAVE_INLINE bool measures_machine() {
  const char* name = std::getenv("CLEAVE_TUNE");
  return name != nullptr && name == std::string("measure");
}

CLEAVE_INLINE void each_tune_line(void* to, TakeTuneLine take) {
  const char* name = std::getenv("CLEAVE_TUNE");
  if (name == nullptr || *name == '\0' || measures_machine()) return;
  std::FILE* file = std::fopen(name, "r");
  if (file == nullptr) throw Error("run", std::string("CLEAVE_TUNE: cannot read '") + name + "'");
  std::string text;
  char part[1024];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) text.append(part, count);
  static_cast<void>(std::fclose(file));
  std::string line;
  int number = 1;
  for (std::size_t at = 0; at < text.size(); at += line.size() + 1, ++number) {
    line = text.substr(at, text.find('\n', at) - at);
    const std::string words = line.substr(0, line.find('#'));
    if (words.find_first_not_of(" \t\r") != std::string::npos)
      take(to, words, std::string(name) + ":" + std::to_string(number));
  }
}

CLEAVE_INLINE bool is_about_machine(const std::string& line) {
  char word[16] = "";
  static_cast<void>(std::sscanf(line.c_str(), "%15s", word));
  return word == std::string("inside") || word == std::string("between");
}

/// @throws Error for an invalid line
CLEAVE_INLINE void take_machine_line(void* to, const std::string& text, const std::string& where) {
  if (!is_about_machine(text)) return;
  MachineCosts& costs = *static_cast<MachineCosts*>(to);
  char link[16] = "", more[2] = "";
  LinkCosts read;
  int ranks = 0;
  const int words = std::sscanf(text.c_str(), "%15s %lf %lf %d %1s", link, &read.latency_us,
                                &read.bytes_per_us, &ranks, more);
  const bool between = link[0] == 'b';
  if (words != (between ? 4 : 3) || !(read.latency_us >= 0) || !(read.bytes_per_us > 0) ||
      (between && ranks < 1))
    throw Error("run", "CLEAVE_TUNE: " + where + ": '" + text +
                           "' is not a valid line; use: inside US BYTES_PER_US, or "
                           "between US BYTES_PER_US RANKS_PER_NODE");
  (between ? costs.between : costs.inside) = read;
  if (between) costs.ranks_per_node = ranks;
}

}  // namespace detail

CLEAVE_INLINE MachineCosts MachineCosts::from_environment() {
  MachineCosts costs;
  detail::each_tune_line(&costs, &detail::take_machine_line);
  return costs;
}

}  // namespace cleave
