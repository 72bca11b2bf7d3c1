// How long a wait may last, as a time point and as text.
#pragma once

#include <cstdio>
#include <string>

#include <cleave/core/clock.hpp>

namespace cleave::inline v0::detail {

/// The end of a wait that begins now.
/// @param seconds  more than thirty years count as thirty
inline Clock::time_point deadline_after(double seconds) {
  const Seconds limit(seconds < 1e9 ? seconds : 1e9);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
}

/// " within 0.25 s", for error messages
inline std::string within(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, " within %g s", seconds);
  return text;
}

}  // namespace cleave::inline v0::detail
