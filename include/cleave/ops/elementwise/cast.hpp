// Converting element types: cast.
#pragma once

#include <limits>
#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Whether To can represent every From: a sum of such casts is the cast of the sum, up to rounding
/// in the wider type.
template <class From, class To>
inline constexpr bool widens = [] {
  using F = accumulator_t<From>;
  using T = accumulator_t<To>;
  if constexpr (std::is_same_v<From, To>) return true;
  else if constexpr (std::is_same_v<From, half> && std::is_same_v<To, bfloat16>) return false;
  else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, half>) return false;
  else if constexpr (sizeof(To) < sizeof(From) || is_float8<To>) return false;
  else if constexpr (is_complex<F>) return is_complex<T>;
  else if constexpr (is_complex<T>)
    return std::is_floating_point_v<F> && sizeof(F) <= sizeof(typename T::value_type);
  else return std::is_floating_point_v<F> && std::is_floating_point_v<T>;
}();

/// Whether a cast preserves the order of all values.
template <class From, class To>
inline constexpr bool keeps_order = [] {
  if constexpr (is_complex<From> || is_complex<To> || std::is_same_v<To, bool>) return false;
  else if constexpr (!std::is_integral_v<To>) return true;
  else if constexpr (!std::is_integral_v<From>) return false;  // not on overflow
  else if constexpr (std::is_signed_v<From> && std::is_unsigned_v<To>) return false;
  else return std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits;
}();

template <class To>
struct Cast : Elementwise {
  static constexpr const char* name = "cast";
  static constexpr bool takes_float8 = true;
  template <class From>
  static constexpr const char* partials_for() {
    return widens<From, To> ? (keeps_order<From, To> ? "sum->sum; avg->avg; max->max; min->min"
                                                     : "sum->sum; avg->avg")
                            : (keeps_order<From, To> ? "max->max; min->min" : "");
  }
  template <class From>
  CLEAVE_HOST_DEVICE To operator()(const From& a) const {
    return detail::converted<To>(a);
  }
  template <class G, class Y, class X>
    requires(!std::is_integral_v<To> && !std::is_integral_v<typename X::value_type> &&
             !is_float8<To> && !is_float8<typename X::value_type>)
  static constexpr auto gradient(wrt<0>, const G& g, const Y&, const X&) {
    using From = typename X::value_type;
    if constexpr (is_complex<To> && !is_complex<From>) return cast<From>(real(g));
    else return cast<From>(g);
  }
};

}  // namespace ops

/// Converts elements to type To. A Partial operand stays partial if the cast preserves its
/// reduction: sums for widening casts, maxima and minima for casts that preserve the order.
template <Element To, class... R, AnyTensor A>
constexpr auto cast(const A& a) {
  static_assert(!is_complex<typename A::value_type> || is_complex<To>,
                "cleave: complex elements cannot be cast to real ones; use abs");
  return detail::call_as(detail::Request<R...>{}, ops::Cast<To>{}, a);
}
CLEAVE_USAGE(cast, "cast<double>(x)")

}  // namespace cleave::inline v0
