// The list of all operations of the library, for documentation and verification. An operation that
// is missing here fails a test.
//
// Only tools include this header; the umbrella header does not.
#pragma once

#include <cleave/ops/list/list_activations.hpp>
#include <cleave/ops/list/list_arithmetic.hpp>
#include <cleave/ops/list/list_attention.hpp>
#include <cleave/ops/list/list_choices.hpp>
#include <cleave/ops/list/list_clamp_lerp.hpp>
#include <cleave/ops/list/list_classes.hpp>
#include <cleave/ops/list/list_comparisons.hpp>
#include <cleave/ops/list/list_convolutions.hpp>
#include <cleave/ops/list/list_functions.hpp>
#include <cleave/ops/list/list_indices.hpp>
#include <cleave/ops/list/list_losses.hpp>
#include <cleave/ops/list/list_normalisation.hpp>
#include <cleave/ops/list/list_powers.hpp>
#include <cleave/ops/list/list_products.hpp>
#include <cleave/ops/list/list_random.hpp>
#include <cleave/ops/list/list_reductions.hpp>
#include <cleave/ops/list/list_rounding.hpp>
#include <cleave/ops/list/list_shapes.hpp>
#include <cleave/ops/list/list_trigonometry.hpp>

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
  listing::each_clamp_lerp(visit);
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
