// Reductions of truth values over all elements or over dimensions: any, all, count_nonzero.
//
//     // y[Pmax] = any(x[S0])     y[Pmin] = all(x[S0])     y[P] = count_nonzero(x[S0])
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Which elements are not 0; NaN counts as nonzero.
template <class X>
constexpr auto nonzero(const X& x) {
  if constexpr (std::is_same_v<typename X::value_type, bool>) return waited(x);
  else return call_op(ops::Cast<bool>{}, x);
}

}  // namespace detail

namespace ops {

/// A reduction of whether elements are not 0: any is the maximum, all the minimum, count_nonzero
/// the sum.
template <class By, unsigned Mask>
struct ReduceNonzero : Composite {
  static constexpr const char* name = By::value == ReduceOp::max   ? "any"
                                      : By::value == ReduceOp::min ? "all"
                                                                   : "count_nonzero";
  static constexpr auto body(const auto& x) {
    return call_op(Reduce<By, Mask>{}, cleave::detail::nonzero(x));
  }
};
template <unsigned Mask>
using Any = ReduceNonzero<Max, Mask>;
template <unsigned Mask>
using All = ReduceNonzero<Min, Mask>;
template <unsigned Mask>
using CountNonzero = ReduceNonzero<Sum, Mask>;

}  // namespace ops

/// Whether any element is not 0, over all elements or over the dimensions of a `dim`; false if
/// there are none.
///
/// @return     bools, without the reduced dimensions; Partial<Max> on the axes that shard these
/// @collective every rank of the mesh, if x has to be redistributed
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto any(const X& x, D = {}) {
  return call_op<R...>(ops::Any<detail::checked_mask<X, D>()>{}, x);
}
CLEAVE_USAGE(any, "any(x), any(x, dim<0>{})")

/// Whether no element is 0, over all elements or over the dimensions of a `dim`; true if there are
/// none. Otherwise as any, with Partial<Min>.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto all(const X& x, D = {}) {
  return call_op<R...>(ops::All<detail::checked_mask<X, D>()>{}, x);
}
CLEAVE_USAGE(all, "all(x), all(x, dim<0>{})")

/// The number of elements that are not 0, over all elements or over the dimensions of a `dim`, as
/// 64-bit integers. Otherwise as any, with Partial<Sum>.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto count_nonzero(const X& x, D = {}) {
  return call_op<R...>(ops::CountNonzero<detail::checked_mask<X, D>()>{}, x);
}
CLEAVE_USAGE(count_nonzero, "count_nonzero(x), count_nonzero(x, dim<0>{})")

}  // namespace cleave::inline v0
