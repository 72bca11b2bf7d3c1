// Whether any or all elements are true, and how many are: over all of them or over dimensions.
//
//     // y[Pmax] = any(x[S0])     y[Pmin] = all(x[S0])     y[P] = count_nonzero(x[S0])
#pragma once

#include <type_traits>

#include <cleave/ops/call.hpp>
#include <cleave/ops/dim.hpp>
#include <cleave/ops/reduce.hpp>
#include <cleave/ops/select.hpp>

namespace cleave {

namespace detail {

/// Which elements are not 0; NaN is not.
template <class X>
constexpr auto nonzero(const X& x) {
  if constexpr (std::is_same_v<typename X::value_type, bool>) return x;
  else return call_op(ops::Cast<bool>{}, x);
}

}  // namespace detail

namespace ops {

template <unsigned Mask>
struct Any : Composite {
  static constexpr const char* name = "any";
  static constexpr auto body(const auto& x) {
    return call_op(Reduce<Max, Mask>{}, cleave::detail::nonzero(x));
  }
};

template <unsigned Mask>
struct All : Composite {
  static constexpr const char* name = "all";
  static constexpr auto body(const auto& x) {
    return call_op(Reduce<Min, Mask>{}, cleave::detail::nonzero(x));
  }
};

template <unsigned Mask>
struct CountNonzero : Composite {
  static constexpr const char* name = "count_nonzero";
  static constexpr auto body(const auto& x) { return sum_of<Mask>(cleave::detail::nonzero(x)); }
};

}  // namespace ops

/// Whether any element is not 0, of all or over the dimensions of a `dim`; false for none.
///
/// @return     of bool; Partial<Max> on the axes that shard a reduced dimension
/// @collective every rank of the mesh, if x has to be redistributed
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto any(const X& x, D = {}) {
  return call_op<R...>(ops::Any<detail::checked_mask<X, D>()>{}, x);
}

/// Whether no element is 0, likewise; true for none. Partial<Min> where a reduced dimension is
/// sharded.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto all(const X& x, D = {}) {
  return call_op<R...>(ops::All<detail::checked_mask<X, D>()>{}, x);
}

/// How many elements are not 0, likewise: 64-bit integers, Partial<Sum> where a reduced dimension
/// is sharded.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto count_nonzero(const X& x, D = {}) {
  return call_op<R...>(ops::CountNonzero<detail::checked_mask<X, D>()>{}, x);
}

}  // namespace cleave
