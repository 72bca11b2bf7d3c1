// Elementwise operations with three operands, in one pass: clamp, lerp, addcmul, addcdiv.
#pragma once

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/registration.hpp>

namespace cleave::inline v0 {

namespace detail {

/// 1 where clamp(x, low, high) selects operand I, 0 elsewhere; at the bounds it selects x.
template <int I>
struct ClampShare : Elementwise {
  using verified = Types<double>;
  static constexpr const char* constant = ops::piecewise_constant;
  static constexpr const char* name = "clamp_share";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& x, const T& low, const T& high) const {
    const bool chosen = I == 0   ? x >= low && x <= high
                        : I == 1 ? x < low && low < high
                                 : x > high || high < low;
    return chosen ? T(1) : T(0);
  }
};

}  // namespace detail

namespace ops {

/// min(max(x, low), high), hence high where low > high. Propagates NaNs.
struct Clamp : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "clamp";
  static constexpr const char* partials = "max,R,R->max; min,R,R->min";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& x, const T& low, const T& high) const {
    return kernels::smaller(kernels::larger(x, low), high);
  }
  template <int I>
  static constexpr auto gradient(wrt<I>, const auto& g, const auto&, const auto& x, const auto& low,
                                 const auto& high) {
    return mul(g, call_op(detail::ClampShare<I>{}, x, low, high));
  }
};

/// a + weight · (b - a), exact for weights 0 and 1.
struct Lerp : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "lerp";
  static constexpr const char* partials =
      "sum,sum,R->sum; avg,avg,R->avg; avg,R,R->avg; R,avg,R->avg";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b, const T& weight) const {
    using A = accumulator_t<T>;
    using namespace kernels;
    const A way = minus(A(b), A(a));
    return is_far(weight) ? T(minus(A(b), times(way, minus(A(1), A(weight)))))
                          : T(plus(A(a), times(A(weight), way)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto&,
                                 const auto& weight) {
    return sub(g, mul(g, conj(weight)));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto&, const auto&,
                                 const auto& weight) {
    return mul(g, conj(weight));
  }
  static constexpr auto gradient(wrt<2>, const auto& g, const auto&, const auto& a, const auto& b,
                                 const auto&) {
    return mul(g, conj(sub(b, a)));
  }

 private:
  template <class T>
  CLEAVE_HOST_DEVICE static bool is_far(const T& weight) {
    if constexpr (is_complex<T>)
      return weight.real() * weight.real() + weight.imag() * weight.imag() >=
             kernels::real_t<T>(0.25);
    else return weight >= T(0.5) || weight <= T(-0.5);
  }
};

/// a + value · b · c
template <class T>
struct Addcmul : Elementwise {
  T value = T(1);

  static constexpr const char* name = "addcmul";
  static constexpr const char* partials =
      "sum,sum,R->sum; sum,R,sum->sum; avg,avg,R->avg; avg,R,avg->avg; avg,R,R->avg";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b, const T& c) const {
    using A = accumulator_t<T>;
    return T(kernels::plus(A(a), kernels::times(A(value), kernels::times(A(b), A(c)))));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return g; }
  constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto&, const auto&,
                          const auto& c) const {
    return mul(mul(g, conj(c)), conj(value));
  }
  constexpr auto gradient(wrt<2>, const auto& g, const auto&, const auto&, const auto& b,
                          const auto&) const {
    return mul(mul(g, conj(b)), conj(value));
  }
};

/// a + value · b / c
template <class T>
struct Addcdiv : ElementwiseOn<Elements::fractions> {
  T value = T(1);

  static constexpr const char* name = "addcdiv";
  static constexpr const char* partials = "sum,sum,R->sum; avg,avg,R->avg; avg,R,R->avg";
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b, const T& c) const {
    using A = accumulator_t<T>;
    return T(kernels::plus(A(a), kernels::times(A(value), kernels::quotient(A(b), A(c)))));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return g; }
  constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto&, const auto&,
                          const auto& c) const {
    return mul(div(g, conj(c)), conj(value));
  }
  constexpr auto gradient(wrt<2>, const auto& g, const auto&, const auto&, const auto& b,
                          const auto& c) const {
    const auto numerator = mul(mul(g, conj(b)), conj(value));
    return neg(div(div(numerator, conj(c)), conj(c)));
  }
};

}  // namespace ops

/// Clamps x to [low, high]: min(max(x, low), high). Bounds are tensors or numbers.
CLEAVE_TERNARY(clamp_lerp, clamp, Clamp, "(x, low, high)")
/// Interpolation: a + weight · (b - a); weight may be a number. `// y[P] = lerp(a[P], b[P], w[R])`
CLEAVE_TERNARY(clamp_lerp, lerp, Lerp, "(a, b, weight)")
CLEAVE_HELPER(clamp_lerp, ClampShare<0>, 3)
/// a + value · b · c. `// y[P] = a[P] + value · b[P] · c[R]`
template <class... R, AnyTensor A, AnyTensor B, AnyTensor C, ScalarElement V = int>
constexpr auto addcmul(const A& a, const B& b, const C& c, const V& value = V(1)) {
  using T = typename A::value_type;
  return detail::pointwise<R...>(ops::Addcmul<T>{{}, detail::same_type<T>(value)}, a, b, c);
}
CLEAVE_USAGE(addcmul, "addcmul(a, b, c), addcmul(a, b, c, value)")

/// a + value · b / c. `// y[P] = a[P] + value · b[P] / c[R]`
template <class... R, AnyTensor A, AnyTensor B, AnyTensor C, ScalarElement V = int>
constexpr auto addcdiv(const A& a, const B& b, const C& c, const V& value = V(1)) {
  using T = typename A::value_type;
  return detail::pointwise<R...>(ops::Addcdiv<T>{{}, detail::same_type<T>(value)}, a, b, c);
}
CLEAVE_USAGE(addcdiv, "addcdiv(a, b, c), addcdiv(a, b, c, value)")

}  // namespace cleave::inline v0
