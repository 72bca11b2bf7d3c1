// The list of all operations of the library, for documentation and verification. An operation that
// is missing here fails a test.
//
// Only tools include this header; the umbrella header does not.
#pragma once

#include <cleave/ops/list/list_attention.hpp>
#include <cleave/ops/list/list_classes.hpp>
#include <cleave/ops/list/list_convolutions.hpp>
#include <cleave/ops/list/list_elementwise.hpp>
#include <cleave/ops/list/list_indices.hpp>
#include <cleave/ops/list/list_losses.hpp>
#include <cleave/ops/list/list_normalisation.hpp>
#include <cleave/ops/list/list_products.hpp>
#include <cleave/ops/list/list_random.hpp>
#include <cleave/ops/list/list_reductions.hpp>
#include <cleave/ops/list/list_shapes.hpp>

namespace cleave::ops {

/// Calls `visit(Listed)` for every operation of the library.
template <class Visit>
constexpr void each_operation(const Visit& visit) {
  listing::each_arithmetic(visit);
  listing::each_registered<topics::comparisons>(visit);
  listing::each_function(visit);
  listing::each_registered<topics::powers>(visit);
  listing::each_registered<topics::trigonometry>(visit);
  listing::each_registered<topics::activations>(visit);
  listing::each_registered<topics::rounding>(visit);
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
