// What a search for schemas may try, what it minimises, and what it finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <cleave/spmd/search/schema_rows.hpp>

namespace cleave::inline v0::spmd::detail {

/// A time, and what decides among equal times: bytes of all values, and requests.
struct SearchCost {
  double us = 0;
  double ties = 0;

  /// Whether a time is less than another one by more than rounding.
  static constexpr bool less(double a, double b) { return a < b - 1e-12 * b; }

  friend constexpr bool operator<(const SearchCost& a, const SearchCost& b) {
    return less(a.us, b.us) || (!less(b.us, a.us) && a.ties < b.ties);
  }
};

enum class Requests : std::uint8_t {
  none,
  of_partials,  ///< of results that would be partial
  all,
};

/// What a search may try, and what it minimises.
struct SearchSpace {
  std::vector<std::vector<PackedLayout>> choices{};  ///< per variable: of inputs, and requests
  Requests requests = Requests::all;
  std::size_t most_states = 0;  ///< after each call
  double us_per_byte = 0;       ///< of the memory of each value
  double move_weight = 1;       ///< of the time of redistributions
  bool keeps_edges = false;     ///< for `each_solution`
};

/// The rows of all calls, and what they cost together.
struct SearchSolution {
  std::vector<int> rows{};
  double us = std::numeric_limits<double>::infinity();
};

}  // namespace cleave::inline v0::spmd::detail
