// What every header of cleave relies on: the language level, the index type, fixed limits and the
// macro that lets one scalar function serve host and device.
//
// Features come from the build as macros with the value 1: CLEAVE_HAS_MPI, CLEAVE_HAS_CBLAS,
// CLEAVE_HAS_RANDOM123. Nothing here includes anything that they need.
#pragma once

#include <cstdint>

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "cleave needs C++20: compile with -std=c++20 (Meson: cpp_std=c++20)"
#endif

#if defined(__CUDACC__)
#define CLEAVE_HOST_DEVICE __host__ __device__
#else
#define CLEAVE_HOST_DEVICE
#endif

namespace cleave {

/// Extents, strides, offsets and element counts: signed and 64 bits wide everywhere.
using index_t = std::int64_t;

/// The most dimensions a tensor may have.
inline constexpr int max_dims = 8;

/// The most axes a mesh may have: the placements of one tensor then pack into 64 bits.
inline constexpr int max_axes = 8;

}  // namespace cleave
