// The steady clock.
#pragma once

// <chrono> has calendars and time zones as well, 5 MB of the compiler's memory. What waits until a
// time cannot be declared without std::chrono::steady_clock, and is not, in any standard library.
#include <condition_variable>

namespace cleave::detail {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

}  // namespace cleave::detail
