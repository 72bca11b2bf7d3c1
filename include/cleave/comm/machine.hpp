// The communication costs of a machine, within a node and between nodes: from the file that
// CLEAVE_TUNE names or, if it is "measure", measured when a world is created.
//
// Lines of the file begin with a word; # begins a comment. Those of this header:
//
//   inside    2.1  9000      of a collective on one node: latency in us, bytes per us and rank
//   between  24.0  1150  8   across nodes, and the number of ranks per node
//
// Other lines are rows of algorithm tables.
#pragma once

#include <string>

#include <cleave/core/config.hpp>

namespace cleave {

/// The cost of a collective for a rank: its latency, and the rate at which bytes arrive.
struct LinkCosts {
  double latency_us = 0;
  double bytes_per_us = 0;
  bool known() const noexcept { return bytes_per_us > 0; }
  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

/// Equal on all ranks of a world; plans depend on it.
struct MachineCosts {
  LinkCosts inside{};      ///< among ranks of one node
  LinkCosts between{};     ///< among ranks of several
  int ranks_per_node = 0;  ///< with `between`; ranks are numbered node by node

  /// The costs in the file that CLEAVE_TUNE names; unknown without a file, or if
  /// CLEAVE_TUNE=measure.
  /// @throws Error that names the invalid line, or the file that cannot be read
  static MachineCosts from_environment();
};

namespace detail {

/// Whether CLEAVE_TUNE asks worlds to measure what communication costs.
bool measures_machine();

/// Takes a line of the file that CLEAVE_TUNE names, without its comment, and its position:
/// "file:line".
using TakeTuneLine = void (*)(void* to, const std::string& text, const std::string& where);

/// Calls `take` for every line that is not empty; for none if no file is named.
/// @throws Error if the file cannot be read
void each_tune_line(void* to, TakeTuneLine take);

/// Whether a line is one of MachineCosts.
bool is_about_machine(const std::string& line);

}  // namespace detail

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/machine_body.hpp>
#endif
