// How much a case repeats one thing over types and shapes: less where everything is slow.
#pragma once

#include <cstdlib>
#include <cstring>

#include "sanitizers.hpp"

namespace cleave::testing {

/// Whether a sanitizer watches.
inline constexpr bool sanitized =
#if defined(CLEAVE_TEST_ASAN) || defined(CLEAVE_TEST_TSAN)
    true;
#else
    false;
#endif

/// Whether cases do less: a sanitizer watches, or GPUs are stood in for by the CPU.
inline constexpr bool briefly =
#if defined(CLEAVE_TEST_CUDA)
    true;
#else
    sanitized;
#endif

/// Whether cases do all that they can: .ci/run asks for it, where a newcomer would wait too long.
inline bool thorough() {
  const char* const wanted = std::getenv("CLEAVE_TEST_THOROUGH");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

}  // namespace cleave::testing
