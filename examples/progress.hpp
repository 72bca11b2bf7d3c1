// The cost of some training steps, and the mean of their losses.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include <cleave/cleave.hpp>

namespace training {

/// Counts from its construction on; one per rank.
class Progress {
 public:
  explicit Progress(const cleave::World& world) : trace_(world) {}

  void add(double loss) {
    loss_ += loss;
    ++steps_;
  }
  double mean_loss() const { return loss_ / double(steps_); }

  /// "12345 tokens/s  communication 7 %, 33 KiB a step": the share of time that this rank spends in
  /// collectives, including waiting for peers, and the bytes it receives.
  std::string speed(cleave::index_t per_step, const char* what) const {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    char text[128];
    std::snprintf(text, sizeof text, "%7.0f %s/s  communication %.0f %%, %.0f KiB a step",
                  double(steps_ * per_step) / took.count(), what,
                  100 * trace_.seconds() / took.count(),
                  double(trace_.received_bytes()) / double(steps_) / 1024);
    return text;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  cleave::CommTrace trace_;
  double loss_ = 0;
  cleave::index_t steps_ = 0;
};

}  // namespace training
