// Whether products of floats on a GPU may be less exact, and faster.
#pragma once

#include <atomic>

namespace cleave::cuda {

namespace detail {

inline std::atomic<bool>& tf32_is_allowed() {
  static std::atomic<bool> allowed = false;
  return allowed;
}

}  // namespace detail

/// Whether products of float matrices may round their factors to 10 bits of mantissa (TF32), which
/// is several times faster. They may not, unless this is called; for all threads.
inline void allow_tf32(bool allowed) { detail::tf32_is_allowed() = allowed; }

}  // namespace cleave::cuda
