// The communication costs of a machine, within a node and between nodes: from the file that
// CLEAVE_TUNE names or, if it is "measure", measured when a world is created.
//
// The lines of the file; # begins a comment:
//
//   inside    2.1  9000      of a collective on one node: latency in us, bytes per us and rank
//   between  24.0  1150  8   across nodes, and the number of ranks per node
#pragma once

#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

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

  /// Of all numbers, for comparing those of ranks.
  std::uint64_t checksum() const;
};

namespace detail {

/// Whether CLEAVE_TUNE asks worlds to measure what communication costs.
bool measures_machine();

}  // namespace detail

}  // namespace cleave::inline v0

#if !CLEAVE_COMPILED
#include <cleave/comm/machine_body.hpp>
#endif
