// Dropout as a layer: only where the model is trained.
#pragma once

#include <type_traits>

#include <cleave/nn/part.hpp>
#include <cleave/ops/dropout.hpp>

namespace cleave::nn {

/// Sets elements to zero with a probability while `training`, and scales the others up. On any mesh
/// the same elements. @see train, eval, cleave::dropout
struct Dropout {
  double probability;
  bool training = true;
  static constexpr names members{"probability", "training"};

  /// @param x  on a mesh; for a Tensor, `dropout(x, probability, state)` takes a random state
  /// @collective every rank of the world, as one draw is taken while training
  template <class X>
  auto operator()(const X& x) const {
    using Y = decltype(dropout(x, probability));
    static_assert(
        std::is_same_v<X, Y>,
        "cleave: the result of Dropout is placed as x only if x is not a pending product; "
        "resolve x first");
    return training && probability != 0 ? dropout(x, probability) : x;
  }
};

}  // namespace cleave::nn
