// Elementwise comparisons, logic and classification. Results are bools and have no gradient.
//
// <, <=, > and >= are also operators. == is not: containers and tests use it to compare objects.
#pragma once

#include <cleave/ops/elementwise/registration.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Like all comparisons except NotEqual, false if an operand is NaN.
struct Less : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "less";
  CLEAVE_HOST_DEVICE bool operator()(const auto& a, const auto& b) const { return a < b; }
};
struct LessEqual : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "less_equal";
  CLEAVE_HOST_DEVICE bool operator()(const auto& a, const auto& b) const { return a <= b; }
};
struct Greater : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "greater";
  CLEAVE_HOST_DEVICE bool operator()(const auto& a, const auto& b) const { return a > b; }
};
struct GreaterEqual : ElementwiseOn<Elements::ordered> {
  static constexpr const char* name = "greater_equal";
  CLEAVE_HOST_DEVICE bool operator()(const auto& a, const auto& b) const { return a >= b; }
};
struct Equal : Elementwise {
  using verified = Types<double, std::complex<double>>;
  static constexpr const char* name = "equal";
  CLEAVE_HOST_DEVICE bool operator()(const auto& a, const auto& b) const { return a == b; }
};
struct NotEqual : Elementwise {
  using verified = Types<double, std::complex<double>>;
  static constexpr const char* name = "not_equal";
  CLEAVE_HOST_DEVICE bool operator()(const auto& a, const auto& b) const { return !(a == b); }
};

/// Numbers other than 0 are true, NaN included.
struct LogicalAnd : Elementwise {
  using verified = Types<double, bool>;
  static constexpr const char* name = "logical_and";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return !(a == T(0)) && !(b == T(0));
  }
};
struct LogicalOr : Elementwise {
  using verified = Types<double, bool>;
  static constexpr const char* name = "logical_or";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return !(a == T(0) && b == T(0));
  }
};
struct LogicalXor : Elementwise {
  using verified = Types<double, bool>;
  static constexpr const char* name = "logical_xor";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a, const T& b) const {
    return (a == T(0)) != (b == T(0));
  }
};
struct LogicalNot : Elementwise {
  using verified = Types<double, bool>;
  static constexpr const char* name = "logical_not";
  template <class T>
  CLEAVE_HOST_DEVICE bool operator()(const T& a) const {
    return a == T(0);
  }
};

struct IsNan : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "isnan";
  CLEAVE_HOST_DEVICE bool operator()(const auto& a) const { return kernels::is_nan(a); }
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
  CLEAVE_HOST_DEVICE bool operator()(const auto& a) const {
    return !kernels::is_nan(a) && !IsInf{}(a);
  }
};

}  // namespace ops

/// a < b, element by element; a or b may be a number. Returns bools, like all comparisons.
CLEAVE_OPERATOR(comparisons, less, Less, <)
/// a <= b
CLEAVE_OPERATOR(comparisons, less_equal, LessEqual, <=)
/// a > b
CLEAVE_OPERATOR(comparisons, greater, Greater, >)
/// a >= b
CLEAVE_OPERATOR(comparisons, greater_equal, GreaterEqual, >=)
/// a == b
CLEAVE_BINARY(comparisons, equal, Equal)
/// a != b
CLEAVE_BINARY(comparisons, not_equal, NotEqual)
/// Whether a and b are both true, that is, not 0.
CLEAVE_BINARY(comparisons, logical_and, LogicalAnd)
/// Whether a or b is true, that is, not 0.
CLEAVE_BINARY(comparisons, logical_or, LogicalOr)
/// Whether exactly one of a and b is true, that is, not 0.
CLEAVE_BINARY(comparisons, logical_xor, LogicalXor)
/// Whether a is false, that is, 0.
CLEAVE_UNARY(comparisons, logical_not, LogicalNot)
/// Whether elements are NaN.
CLEAVE_UNARY(comparisons, isnan, IsNan)
/// Whether elements are infinite, of either sign.
CLEAVE_UNARY(comparisons, isinf, IsInf)
/// Whether elements are neither infinite nor NaN.
CLEAVE_UNARY(comparisons, isfinite, IsFinite)

}  // namespace cleave::inline v0
