// Selecting elements by a condition, and converting element types: where, cast.
#pragma once

#include <limits>
#include <type_traits>

#include <cleave/ops/arithmetic.hpp>
#include <cleave/ops/elementwise.hpp>

namespace cleave {

namespace ops {

/// Selection commutes with any reduction of both values. If one value is replicated, it commutes
/// with the reductions that leave a repeated value unchanged: avg, max, min.
struct Where : Elementwise {
  static constexpr const char* name = "where";
  static constexpr const char* partials =
      "R,sum,sum->sum; R,avg,avg->avg; R,max,max->max; R,min,min->min; "
      "R,product,product->product; R,avg,R->avg; R,R,avg->avg; R,max,R->max; R,R,max->max; "
      "R,min,R->min; R,R,min->min";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(bool condition, const T& a, const T& b) const {
    return condition ? a : b;
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& condition,
                                 const auto&...) {
    return where(condition, g, 0);
  }
  static constexpr auto gradient(wrt<2>, const auto& g, const auto&, const auto& condition,
                                 const auto&...) {
    return where(condition, 0, g);
  }
};

/// Whether To can represent every From: a sum of such casts is the cast of the sum, up to rounding
/// in the wider type.
template <class From, class To>
inline constexpr bool widens = [] {
  using F = accumulator_t<From>;
  using T = accumulator_t<To>;
  if constexpr (std::is_same_v<From, To>) return true;
  else if constexpr (std::is_same_v<From, half> && std::is_same_v<To, bfloat16>) return false;
  else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, half>) return false;
  else if constexpr (sizeof(To) < sizeof(From)) return false;
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
    requires(!std::is_integral_v<To> && !std::is_integral_v<typename X::value_type>)
  static constexpr auto gradient(wrt<0>, const G& g, const Y&, const X&) {
    using From = typename X::value_type;
    if constexpr (is_complex<To> && !is_complex<From>) return cast<From>(real(g));
    else return cast<From>(g);
  }
};

}  // namespace ops

/// Selects elements: a where the condition is true, b elsewhere; a or b may be a number.
template <class... R, AnyTensor C, AnyOperand A, AnyOperand B>
constexpr auto where(const C& condition, const A& a, const B& b) {
  static_assert(std::is_same_v<typename C::value_type, bool>,
                "cleave: the condition of where must be a tensor of bool");
  static_assert(TensorAndOther<A, B>,
                "cleave: where requires at least one tensor besides the condition");
  using T = detail::element_of<A, B>;
  return detail::call_as(detail::Request<R...>{}, ops::Where{}, condition, detail::same_type<T>(a),
                         detail::same_type<T>(b));
}

/// Converts elements to type To. A Partial operand stays partial if the cast preserves its
/// reduction: sums for widening casts, maxima and minima for casts that preserve the order.
template <Element To, class... R, AnyTensor A>
constexpr auto cast(const A& a) {
  static_assert(!is_complex<typename A::value_type> || is_complex<To>,
                "cleave: complex elements cannot be cast to real ones; use abs");
  return detail::call_as(detail::Request<R...>{}, ops::Cast<To>{}, a);
}

}  // namespace cleave
