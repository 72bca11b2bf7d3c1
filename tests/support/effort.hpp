// How many types and shapes a case repeats a check over: fewer where everything is slow.
#pragma once

#include <cstdlib>
#include <cstring>

#include "sanitizers.hpp"

namespace cleave::testing {

/// Whether the tests run under a sanitizer.
inline constexpr bool sanitized =
#if defined(CLEAVE_TEST_ASAN) || defined(CLEAVE_TEST_TSAN)
    true;
#else
    false;
#endif

/// Whether cases do less: under a sanitizer, or with the CPU standing in for GPUs.
inline constexpr bool briefly =
#if defined(CLEAVE_TEST_CUDA)
    true;
#else
    sanitized;
#endif

/// Whether cases do everything they can: set by .ci/run; by default that would take too long.
inline bool thorough() {
  const char* const wanted = std::getenv("CLEAVE_TEST_THOROUGH");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

}  // namespace cleave::testing
