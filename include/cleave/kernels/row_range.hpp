// The valid row indices of a table, and the rows that are local.
#pragma once

#include <limits>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels {

/// In place of the index of ignored rows: every row counts.
inline constexpr index_t none_ignored = std::numeric_limits<index_t>::min();

/// Whether a row of this class counts, where rows of the class `ignored` do not.
CLEAVE_HOST_DEVICE constexpr bool is_counted(index_t index, index_t ignored) {
  return index != ignored || ignored == none_ignored;
}

/// Valid indices are in [0, total); the local table has the rows from `first` on.
struct RowRange {
  index_t first = 0;
  index_t total = 0;
  const char* operation = "index";  ///< the user's call, for deferred errors: a string literal
  /// By how much an index that is too large exceeds the user's; the user's total is total - shift.
  index_t shift = 0;

  CLEAVE_HOST_DEVICE bool has(index_t index) const { return index >= 0 && index < total; }
};

}  // namespace cleave::inline v0::kernels
