// The list of all operations of the library, for documentation and verification. An operation that
// is missing here fails a test.
//
// Only tools include this header; the umbrella header does not.
#pragma once

#include <cleave/ops/list/activations.hpp>
#include <cleave/ops/list/arithmetic.hpp>
#include <cleave/ops/list/attention.hpp>
#include <cleave/ops/list/blends.hpp>
#include <cleave/ops/list/choices.hpp>
#include <cleave/ops/list/classes.hpp>
#include <cleave/ops/list/comparisons.hpp>
#include <cleave/ops/list/convolutions.hpp>
#include <cleave/ops/list/functions.hpp>
#include <cleave/ops/list/indices.hpp>
#include <cleave/ops/list/losses.hpp>
#include <cleave/ops/list/normalisation.hpp>
#include <cleave/ops/list/powers.hpp>
#include <cleave/ops/list/products.hpp>
#include <cleave/ops/list/random.hpp>
#include <cleave/ops/list/reductions.hpp>
#include <cleave/ops/list/rounding.hpp>
#include <cleave/ops/list/shapes.hpp>
#include <cleave/ops/list/trigonometry.hpp>

namespace cleave::ops {

/// Calls `visit(Listed)` for every operation of the library.
template <class Visit>
constexpr void each_operation(const Visit& visit) {
  listing::each_arithmetic(visit);
  listing::each_comparison(visit);
  listing::each_function(visit);
  listing::each_power(visit);
  listing::each_of_trigonometry(visit);
  listing::each_activation(visit);
  listing::each_rounding(visit);
  listing::each_choice(visit);
  listing::each_blend(visit);
  listing::each_reduction(visit);
  listing::each_product(visit);
  listing::each_of_classes(visit);
  listing::each_normalisation(visit);
  listing::each_loss(visit);
  listing::each_shape(visit);
  listing::each_random(visit);
  listing::each_of_indices(visit);
  listing::each_of_attention(visit);
  listing::each_convolution(visit);
}

}  // namespace cleave::ops
