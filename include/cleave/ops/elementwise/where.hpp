// Selecting elements by a condition: where.
#pragma once

#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

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
CLEAVE_USAGE(where, "where(condition, a, b)")

}  // namespace cleave::inline v0
