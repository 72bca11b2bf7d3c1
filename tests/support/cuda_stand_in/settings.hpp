// Settings of the stand-in that tests may change, initialised from the environment.
#pragma once

#include <chrono>
#include <cstddef>

#include "stand_in.hpp"

namespace cuda_stand_in {

inline constexpr int max_devices = 16;

struct Settings {
  int devices = 1;
  bool peers = true;                              ///< whether devices access each other's memory
  std::size_t memory = std::size_t(16384) << 20;  ///< bytes per device
  ThreadOrder threads = ThreadOrder::forward;
  std::chrono::seconds timeout{60};  ///< how long a host thread waits for others to enqueue

  static Settings from_environment();
};

}  // namespace cuda_stand_in
