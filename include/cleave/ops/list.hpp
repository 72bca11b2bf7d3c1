// All operations of the library, in one list: what documentation and verification run over. An
// operation that is missing here fails a test.
//
// Only tools include this header: the umbrella leaves it out.
#pragma once

#include <cleave/ops/list/arithmetic.hpp>
#include <cleave/ops/list/choices.hpp>
#include <cleave/ops/list/classes.hpp>
#include <cleave/ops/list/functions.hpp>
#include <cleave/ops/list/indices.hpp>
#include <cleave/ops/list/products.hpp>
#include <cleave/ops/list/random.hpp>
#include <cleave/ops/list/reductions.hpp>
#include <cleave/ops/list/shapes.hpp>

namespace cleave::ops {

/// Calls `visit(Listed)` for every operation of the library.
template <class Visit>
constexpr void each_operation(const Visit& visit) {
  listing::each_arithmetic(visit);
  listing::each_function(visit);
  listing::each_choice(visit);
  listing::each_reduction(visit);
  listing::each_product(visit);
  listing::each_of_classes(visit);
  listing::each_shape(visit);
  listing::each_random(visit);
  listing::each_of_indices(visit);
}

}  // namespace cleave::ops
