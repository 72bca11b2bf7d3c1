// The steps of optimizers, which take a number that only programs give; tests/nn verifies them.
#pragma once

#include <cleave/nn/sgd.hpp>

#include "listed.hpp"

namespace cleave::ops {

using OptimizerParts = PartsOf<nn::Sgd<>, OptimizerStep<nn::detail::TracedSgdRule>>;

}  // namespace cleave::ops
