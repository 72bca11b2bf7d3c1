// Dropout as a layer: active only during training.
#pragma once

#include <type_traits>

#include <cleave/nn/part.hpp>
#include <cleave/ops/random/dropout.hpp>

namespace cleave::inline v0::nn {

/// While `training`, sets elements to zero with a probability and scales up the rest. The same
/// elements on any mesh. @see train, eval, cleave::dropout
struct Dropout {
  double probability;
  bool training = true;
  static constexpr names members{"probability", "training"};

  /// @param x  on a mesh; for a Tensor, `dropout(x, probability, state)` takes a random state
  /// @collective while training, every rank of the world: takes one draw
  template <class X>
  auto operator()(const X& x) const {
    using Y = decltype(dropout(x, probability));
    static_assert(std::is_same_v<X, Y>,
                  "cleave: Dropout requires an x that is not a pending product; resolve x first");
    return training && probability != 0 ? dropout(x, probability) : x;
  }
};

}  // namespace cleave::inline v0::nn
