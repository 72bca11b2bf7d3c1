// Timing of benchmarks: seconds per call, the median of several measurements.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace cleave::bench {

using Clock = std::chrono::steady_clock;

/// The mean time of `repeats` calls of f, in seconds.
template <class F>
double seconds_of(int repeats, const F& f) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) f();
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace cleave::bench
