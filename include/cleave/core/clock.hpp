// The steady clock.
#pragma once

// <chrono> also has calendars and time zones, which take 5 MB of the compiler's memory. Timed waits
// need std::chrono::steady_clock: <condition_variable> declares it in every standard library.
#include <condition_variable>

namespace cleave::inline v0::detail {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

}  // namespace cleave::inline v0::detail
