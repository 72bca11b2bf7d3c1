// The version of cleave, the same as in meson.build, pkg-config and CMake.
#pragma once

#define CLEAVE_VERSION_MAJOR 0
#define CLEAVE_VERSION_MINOR 1
#define CLEAVE_VERSION_PATCH 0

/// 10000 major + 100 minor + patch, for `#if`.
#define CLEAVE_VERSION \
  (CLEAVE_VERSION_MAJOR * 10000 + CLEAVE_VERSION_MINOR * 100 + CLEAVE_VERSION_PATCH)

namespace cleave::inline v0 {

/// 10000 major + 100 minor + patch.
inline constexpr int version = CLEAVE_VERSION;

}  // namespace cleave::inline v0
