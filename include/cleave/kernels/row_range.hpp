// Which rows of a table indices may name, and which of them are here.
#pragma once

#include <cleave/core/config.hpp>

namespace cleave::kernels {

/// Indices lie in [0, total); here are rows from `first` on, as many as the table has.
struct RowRange {
  index_t first = 0;
  index_t total = 0;
  const char* operation = "index";  ///< what the user called, for errors that come later: a literal
  /// By how much an index that is too large exceeds the user's, who has total - shift.
  index_t shift = 0;

  CLEAVE_HOST_DEVICE bool has(index_t index) const { return index >= 0 && index < total; }
};

}  // namespace cleave::kernels
