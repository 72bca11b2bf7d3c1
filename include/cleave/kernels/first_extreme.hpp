// The comparison that finds the first extreme element, on every device.
#pragma once

#include <limits>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::inline v0::kernels {

/// The index of the extreme element of an empty range: larger than any valid index.
inline constexpr index_t no_index = std::numeric_limits<index_t>::max();

/// Whether `a` replaces `best`. @tparam Op Max or Min
template <class Op, class T>
CLEAVE_HOST_DEVICE constexpr bool is_better(const T& a, const T& best) {
  const bool before = std::is_same_v<Op, Max> ? best < a : a < best;
  return int(before) | (int(is_nan(a)) & int(!is_nan(best)));  // without a branch: vectorises
}

}  // namespace cleave::inline v0::kernels
