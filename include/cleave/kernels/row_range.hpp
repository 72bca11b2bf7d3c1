// The valid row indices of a table, and the rows that are local.
#pragma once

#include <cleave/core/config.hpp>

namespace cleave::kernels {

/// Valid indices are in [0, total); the local table has the rows from `first` on.
struct RowRange {
  index_t first = 0;
  index_t total = 0;
  const char* operation = "index";  ///< the user's call, for deferred errors: a string literal
  /// By how much an index that is too large exceeds the user's; the user's total is total - shift.
  index_t shift = 0;

  CLEAVE_HOST_DEVICE bool has(index_t index) const { return index >= 0 && index < total; }
};

}  // namespace cleave::kernels
