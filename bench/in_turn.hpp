// Timing between processes: actions are interleaved, each run by all ranks together.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <cleave/comm/mpi/header.hpp>

#include "timing.hpp"

namespace cleave::bench {

/// Seconds from the last rank's start of f to the last rank's end. @collective every process
template <class F>
double seconds_of_all(const F& f) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  f();
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

/// Seconds of each action in each turn: result[action][turn]. @collective every process
template <class... F>
std::vector<std::vector<double>> times_in_turn(int turns, const F&... action) {
  std::vector<std::vector<double>> times(sizeof...(F));
  for (int i = 0; i < turns; ++i) {
    std::size_t k = 0;
    (times[k++].push_back(seconds_of_all(action)), ...);
  }
  return times;
}

/// Median seconds of each action. @collective every process
template <class... F>
std::vector<double> in_turn(int turns, const F&... action) {
  std::vector<double> result;
  for (auto& list : times_in_turn(turns, action...)) result.push_back(median(std::move(list)));
  return result;
}

/// The median over all turns of the first action's time divided by that of action `other`.
inline double ratio_of(const std::vector<std::vector<double>>& times, std::size_t other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < times[0].size(); ++i) ratios.push_back(times[0][i] / times[other][i]);
  return median(std::move(ratios));
}

}  // namespace cleave::bench
