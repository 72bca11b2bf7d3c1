// The list of all operations of the library, for documentation and verification. An operation that
// is missing here fails a test.
//
// Each topic has its element types, dimensions and attributes in a header of this folder.
#pragma once

#include "attention.hpp"
#include "classes.hpp"
#include "convolutions.hpp"
#include "elementwise.hpp"
#include "indices.hpp"
#include "linear_algebra.hpp"
#include "losses.hpp"
#include "normalisation.hpp"
#include "optimizers.hpp"
#include "products.hpp"
#include "random.hpp"
#include "reductions.hpp"
#include "shapes.hpp"
#include "transforms.hpp"

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
  listing::each_transform(visit);
  listing::each_of_linear_algebra(visit);
}

}  // namespace cleave::ops
