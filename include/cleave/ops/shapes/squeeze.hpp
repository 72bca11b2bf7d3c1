// Removing and broadcasting dimensions of extent 1: squeeze, expand.
//
//     // y[S0]   = squeeze(x[S0,R], dim<1>{})          [5, 1] becomes [5]
//     // y[S0,R] = expand(x[S0,R], dim<1>{}, 4)        [5, 1] becomes [5, 4]
#pragma once

#include <string>

#include <cleave/core/error.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// @throws Error if the extent of dimension d is not 1
template <class X>
constexpr void require_one(const char* name, const X& x, int d) {
  if (shape_of(x)[d] != 1 && knows_extents(x))
    throw Error(name,
                "dimension " + std::to_string(d) + " has extent " + std::to_string(shape_of(x)[d]) +
                    ", not 1",
                context_of(x));
}

}  // namespace detail

namespace ops {

/// Removes dimension D, of extent 1.
template <int D>
struct Squeeze {
  static constexpr const char* name = "squeeze";
  static constexpr const char* partials = moves_elements;
  static constexpr RuleText replicated = detail::letter_of(D);
  static constexpr auto factors = detail::reduction_factors<(1u << D)>;
  static void view(const Task& task) {
    task.out->data = task.in->data;
    for (int d = 0; d < task.out->dims; ++d) task.strides[d] = task.in->strides[d < D ? d : d + 1];
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) {
    return unsqueeze(g, dim<D>{});
  }
};

/// Broadcasts dimension D, of extent 1.
template <int D>
struct Expand {
  index_t extent = 0;

  static constexpr const char* name = "expand";
  static constexpr const char* partials = moves_elements;
  static constexpr RuleText replicated = detail::letter_of(D);
  static constexpr auto factors = detail::new_extent_factors<D>;
  constexpr Shape extents() const { return Shape::filled(1, extent); }
  static void view(const Task& task) {
    task.out->data = task.in->data;
    for (int d = 0; d < task.out->dims; ++d) task.strides[d] = d == D ? 0 : task.in->strides[d];
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) {
    return unsqueeze(call_op(Reduce<Sum, (1u << D)>{}, g), dim<D>{});
  }
};

}  // namespace ops

/// Removes a dimension of extent 1: `squeeze(x, dim<1>{})`.
///
/// @return a view of the local elements
/// @collective every rank of the mesh, if the dimension is sharded: x is redistributed
/// @throws Error if the extent is not 1
template <class... R, AnyTensor X, int D>
constexpr auto squeeze(const X& x, dim<D>) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  detail::require_one("squeeze", x, d);
  return call_op<R...>(ops::Squeeze<d>{}, x);
}
CLEAVE_USAGE(squeeze, "squeeze(x, dim<0>{})")

/// Broadcasts a dimension of extent 1 to another extent: `expand(x, dim<1>{}, 4)`.
///
/// @return a view of the local elements, with stride 0 along the dimension: must not be written to
/// @collective every rank of the mesh, if the dimension is sharded: x is redistributed
/// @throws Error if the extent is not 1, or the new extent is negative
template <class... R, AnyTensor X, int D>
constexpr auto expand(const X& x, dim<D>, index_t extent) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  detail::require_one("expand", x, d);
  if (extent < 0)
    throw Error("expand", "the extent must not be negative: " + std::to_string(extent),
                detail::context_of(x));
  return call_op<R...>(ops::Expand<d>{extent}, x);
}
CLEAVE_USAGE(expand, "expand(x, dim<0>{}, extent)")

}  // namespace cleave::inline v0
