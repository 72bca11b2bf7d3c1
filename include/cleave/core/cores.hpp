// The cores that a process may run on: a launcher may bind each to some of those of its node.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace cleave::inline v0::detail {

/// One bit per core, so that sets of several processes are united by `or`.
struct CoreSet {
  std::array<std::uint64_t, 16> bits{};

  void insert(std::size_t core) { bits[core / 64 % bits.size()] |= std::uint64_t(1) << core % 64; }

  /// At least 1.
  int count() const {
    int cores = 0;
    for (const std::uint64_t word : bits) cores += std::popcount(word);
    return std::max(cores, 1);
  }

  /// The cores of this process; all of the machine where the system does not say.
  static CoreSet available() {
    CoreSet cores;
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
      for (std::size_t core = 0; core < 64 * cores.bits.size(); ++core)
        if (CPU_ISSET(core, &set)) cores.insert(core);
      return cores;
    }
#endif
    for (std::size_t core = 0; core < std::thread::hardware_concurrency(); ++core)
      cores.insert(core);
    return cores;
  }
};

/// The number of cores that this process may use, at least 1.
inline int available_cores() { return CoreSet::available().count(); }

}  // namespace cleave::inline v0::detail
