// Reads the communication costs of a machine. Avoids streams, whose header costs a compiler 4 MB of
// memory: every program that includes the library compiles this.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <cleave/comm/machine.hpp>
#include <cleave/core/checksum.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/file.hpp>

namespace cleave::inline v0 {

namespace detail {

CLEAVE_INLINE bool measures_machine() {
  const char* name = std::getenv("CLEAVE_TUNE");
  return name != nullptr && name == std::string("measure");
}

/// @throws Error for an invalid line
CLEAVE_INLINE void take_machine_line(MachineCosts& costs, const std::string& text,
                                     const std::string& where) {
  char link[16] = "", more[2] = "";
  LinkCosts read;
  int ranks = 0;
  const int words = std::sscanf(text.c_str(), "%15s %lf %lf %d %1s", link, &read.latency_us,
                                &read.bytes_per_us, &ranks, more);
  const bool between = link == std::string("between");
  if ((!between && link != std::string("inside")) || words != (between ? 4 : 3) ||
      !(read.latency_us >= 0) || !(read.bytes_per_us > 0) || (between && ranks < 1))
    throw Error("run", "CLEAVE_TUNE: " + where + ": '" + text +
                           "' is not a valid line; use: inside US BYTES_PER_US, or "
                           "between US BYTES_PER_US RANKS_PER_NODE");
  (between ? costs.between : costs.inside) = read;
  if (between) costs.ranks_per_node = ranks;
}

}  // namespace detail

CLEAVE_INLINE MachineCosts MachineCosts::from_environment() {
  MachineCosts costs;
  const char* name = std::getenv("CLEAVE_TUNE");
  if (name == nullptr || *name == '\0' || detail::measures_machine()) return costs;
  const detail::File file(std::fopen(name, "r"));
  if (!file) throw Error("run", std::string("CLEAVE_TUNE: cannot read '") + name + "'");
  std::string text;
  char block[1024];
  while (const std::size_t count = std::fread(block, 1, sizeof block, file.get()))
    text.append(block, count);
  std::string line;
  int number = 1;
  for (std::size_t at = 0; at < text.size(); at += line.size() + 1, ++number) {
    line = text.substr(at, text.find('\n', at) - at);
    const std::string words = line.substr(0, line.find('#'));
    if (words.find_first_not_of(" \t\r") != std::string::npos)
      detail::take_machine_line(costs, words, std::string(name) + ":" + std::to_string(number));
  }
  return costs;
}

CLEAVE_INLINE std::uint64_t MachineCosts::checksum() const {
  std::vector<index_t> numbers{ranks_per_node};
  for (const LinkCosts& costs : {inside, between})
    for (const double number : {costs.latency_us, costs.bytes_per_us})
      numbers.push_back(std::bit_cast<index_t>(number));
  return detail::checksum(std::span<const index_t>(numbers));
}

}  // namespace cleave::inline v0
