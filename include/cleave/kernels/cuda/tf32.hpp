// Whether products of floats on a GPU may trade precision for speed (TF32).
#pragma once

#include <atomic>

namespace cleave::inline v0::cuda {

namespace detail {

inline std::atomic<bool>& tf32_is_allowed() {
  static std::atomic<bool> allowed = false;
  return allowed;
}

}  // namespace detail

/// Sets whether products of float matrices may round their factors to 10 bits of mantissa (TF32),
/// which is several times faster. Not allowed by default; applies to all threads.
inline void allow_tf32(bool allowed) { detail::tf32_is_allowed() = allowed; }

}  // namespace cleave::inline v0::cuda
