// Whether a sanitizer watches: cases that repeat one thing over types and shapes then do less.
#pragma once

namespace cleave::testing {

inline constexpr bool sanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

}  // namespace cleave::testing
