// Learning-rate schedules: functions of the number of steps done, without state.
//
//     const nn::Cosine rate{.rate = 3e-4, .steps = 1000, .warm_up = 50};
//     optimizer.options.learning_rate = rate(step);
#pragma once

#include <cmath>
#include <numbers>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::nn {

/// Rises linearly from start · rate at step 0 to rate at step `steps`, then stays constant.
struct WarmUp {
  double rate = 1e-3;
  index_t steps = 0;
  double start = 0;

  constexpr double operator()(index_t step) const {
    if (step >= steps) return rate;
    return rate * (start + (1 - start) * double(step) / double(steps));
  }
};

/// Multiplies the rate by `factor` every `every` steps after a warm-up.
struct StepDecay {
  double rate = 1e-3;
  index_t every = 1;
  double factor = 0.1;
  index_t warm_up = 0;

  double operator()(index_t step) const {
    if (step < warm_up) return WarmUp{rate, warm_up}(step);
    const index_t periods = (step - warm_up) / every;
    return rate * std::pow(factor, double(periods));
  }
};

/// After a warm-up, falls from rate to `least` at step `steps` along half a cosine, then stays
/// constant.
struct Cosine {
  double rate = 1e-3;
  index_t steps = 1;
  double least = 0;
  index_t warm_up = 0;

  double operator()(index_t step) const {
    if (step < warm_up) return WarmUp{rate, warm_up}(step);
    if (step >= steps) return least;
    const double done = double(step - warm_up) / double(steps - warm_up);
    return least + (rate - least) * (1 + std::cos(std::numbers::pi * done)) / 2;
  }
};

}  // namespace cleave::inline v0::nn
