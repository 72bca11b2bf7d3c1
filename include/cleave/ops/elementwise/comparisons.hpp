// Elementwise comparisons, logic and classification. Results are bools and have no gradient.
//
// <, <=, > and >= are also operators. == is not: containers and tests use it to compare objects.
#pragma once

#include <cleave/ops/elementwise/elementwise.hpp>

namespace cleave {

namespace ops {

/// Like all comparisons except NotEqual, false if an operand is NaN.
struct Less : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "less";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return a < b;
  }
};
struct LessEqual : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "less_equal";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return a <= b;
  }
};
struct Greater : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "greater";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return a > b;
  }
};
struct GreaterEqual : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "greater_equal";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return a >= b;
  }
};
struct Equal : Elementwise {
  static constexpr const char* name = "equal";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};
struct NotEqual : Elementwise {
  static constexpr const char* name = "not_equal";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return !(a == b);
  }
};

/// Numbers other than 0 are true, NaN included.
struct LogicalAnd : Elementwise {
  static constexpr const char* name = "logical_and";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return !(a == T(0)) && !(b == T(0));
  }
};
struct LogicalOr : Elementwise {
  static constexpr const char* name = "logical_or";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return !(a == T(0) && b == T(0));
  }
};
struct LogicalXor : Elementwise {
  static constexpr const char* name = "logical_xor";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return (a == T(0)) != (b == T(0));
  }
};
struct LogicalNot : Elementwise {
  static constexpr const char* name = "logical_not";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a) const {
    return a == T(0);
  }
};

struct IsNan : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "isnan";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a) const {
    return kernels::is_nan(a);
  }
};
/// A complex number is infinite if one of its parts is, finite if both are.
struct IsInf : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "isinf";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a) const {
    if constexpr (is_complex<T>) return (*this)(a.real()) || (*this)(a.imag());
    else return a == kernels::highest<T>() || a == kernels::lowest<T>();
  }
};
struct IsFinite : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "isfinite";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a) const {
    return !kernels::is_nan(a) && !IsInf{}(a);
  }
};

}  // namespace ops

/// a < b, element by element; a or b may be a number. Returns bools, like all comparisons.
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) less(const A&... a) {
  return detail::pointwise<R...>(ops::Less{}, a...);
}

/// a <= b
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) less_equal(const A&... a) {
  return detail::pointwise<R...>(ops::LessEqual{}, a...);
}

/// a > b
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) greater(const A&... a) {
  return detail::pointwise<R...>(ops::Greater{}, a...);
}

/// a >= b
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) greater_equal(const A&... a) {
  return detail::pointwise<R...>(ops::GreaterEqual{}, a...);
}

/// a == b
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) equal(const A&... a) {
  return detail::pointwise<R...>(ops::Equal{}, a...);
}

/// a != b
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) not_equal(const A&... a) {
  return detail::pointwise<R...>(ops::NotEqual{}, a...);
}

/// Whether a and b are both true, that is, not 0.
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) logical_and(const A&... a) {
  return detail::pointwise<R...>(ops::LogicalAnd{}, a...);
}

/// Whether a or b is true, that is, not 0.
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) logical_or(const A&... a) {
  return detail::pointwise<R...>(ops::LogicalOr{}, a...);
}

/// Whether exactly one of a and b is true, that is, not 0.
template <class... R, class... A>
  requires detail::ArgumentsOf<2, A...>
constexpr decltype(auto) logical_xor(const A&... a) {
  return detail::pointwise<R...>(ops::LogicalXor{}, a...);
}

/// Whether a is false, that is, 0.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) logical_not(const A&... a) {
  return detail::pointwise<R...>(ops::LogicalNot{}, a...);
}

/// Whether elements are NaN.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) isnan(const A&... a) {
  return detail::pointwise<R...>(ops::IsNan{}, a...);
}

/// Whether elements are infinite, of either sign.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) isinf(const A&... a) {
  return detail::pointwise<R...>(ops::IsInf{}, a...);
}

/// Whether elements are neither infinite nor NaN.
template <class... R, class... A>
  requires detail::ArgumentsOf<1, A...>
constexpr decltype(auto) isfinite(const A&... a) {
  return detail::pointwise<R...>(ops::IsFinite{}, a...);
}

template <class A, TensorAndOther<A> B>
constexpr auto operator<(const A& a, const B& b) {
  return less(a, b);
}
template <class A, TensorAndOther<A> B>
constexpr auto operator<=(const A& a, const B& b) {
  return less_equal(a, b);
}
template <class A, TensorAndOther<A> B>
constexpr auto operator>(const A& a, const B& b) {
  return greater(a, b);
}
template <class A, TensorAndOther<A> B>
constexpr auto operator>=(const A& a, const B& b) {
  return greater_equal(a, b);
}

}  // namespace cleave
