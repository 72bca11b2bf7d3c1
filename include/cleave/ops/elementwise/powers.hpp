// Powers, exponentials and logarithms, element by element: pow, rsqrt, reciprocal, exp2, expm1,
// log1p, log2, log10, hypot, logaddexp.
#pragma once

#include <cmath>
#include <type_traits>

#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/elementwise/real_function.hpp>

namespace cleave::inline v0 {

namespace detail {

/// y · log(a), 0 where a is 0: the derivative of a power y of a with respect to its exponent.
struct TimesLog : Elementwise {
  using verified = Types<double, std::complex<double>>;
  static constexpr const char* name = "times_log";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& y, const T& a) const {
    using A = accumulator_t<T>;
    return a == T(0) ? T(0) : T(kernels::times(A(y), kernels::logarithm(A(a))));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& a) {
    return conj(call_op(TimesLog{}, conj(g), a));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& y, const auto& a) {
    return div(mul(g, conj(y)), conj(a));
  }
};

/// The K-th derivative of pow(a, b) with respect to a: b · .. · (b - K + 1) · a^(b - K); 0 where
/// one of the factors before the power is 0, for any a.
template <int K>
struct PowSlope : Elementwise {
  using verified = Types<double, std::complex<double>>;
  static constexpr const char* name = "pow_slope";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    using A = accumulator_t<T>;
    A factor = A(1), exponent = A(b);
    for (int k = 0; k < K; ++k) {
      factor = kernels::times(factor, exponent);
      exponent = kernels::minus(exponent, A(1));
    }
    return factor == A(0) ? T(0) : T(kernels::times(factor, kernels::power(A(a), exponent)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, conj(call_op(PowSlope<K + 1>{}, a, b)));
  }
  template <class G, class Y, class A, AnyTensor B>
  static constexpr auto gradient(wrt<1>, const G& g, const Y& y, const A& a, const B& b) {
    return mul(g, conj(by_factors<1>(add(call_op(TimesLog{}, y, a), div(y, b)), y, b)));
  }

 private:
  /// Adds y / (b - k) for the factors that follow the first.
  template <int k>
  static constexpr auto by_factors(const auto& sum, const auto& y, const auto& b) {
    if constexpr (k == K) return sum;
    else return by_factors<k + 1>(add(sum, div(y, sub(b, k))), y, b);
  }
};

}  // namespace detail

namespace ops {

/// Real powers of negative numbers are NaN unless the exponent is an integer.
struct Pow : ElementwiseOn<Elements::fractions> {
  using verified = Types<double, float, std::complex<double>>;
  static constexpr const char* name = "pow";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    using A = accumulator_t<T>;
    return T(kernels::power(A(a), A(b)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, conj(call_op(detail::PowSlope<1>{}, a, b)));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto& y, const auto& a, const auto&) {
    return mul(g, conj(call_op(detail::TimesLog{}, y, a)));
  }
};

/// 1 / a
struct Reciprocal : ElementwiseOn<Elements::fractions> {
  static constexpr const char* name = "reciprocal";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    using A = accumulator_t<T>;
    return T(kernels::quotient(A(1), A(a)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return neg(mul(g, conj(square(y))));
  }
};

/// 1 / sqrt(a)
struct Rsqrt : ElementwiseOn<Elements::fractions> {
  using verified = Types<double, float, std::complex<double>>;
  static constexpr const char* name = "rsqrt";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    using A = accumulator_t<T>;
    return T(kernels::quotient(A(1), kernels::square_root(A(a))));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    return div(mul(g, conj(y)), mul(conj(x), -2));
  }
};

struct Exp2 : RealFunction<Exp2> {
  static constexpr const char* name = "exp2";
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::exp2(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::exp;
    constexpr double log_2 = 0.693147180559945309417;
    return T(log_2) * exp(T(log_2) * x);
  }
};

/// exp(a) - 1, accurate for small a.
struct Expm1 : RealFunction<Expm1> {
  static constexpr const char* name = "expm1";
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::expm1(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::exp;
    return exp(x);
  }
};

/// log(1 + a), accurate for small a.
struct Log1p : RealFunction<Log1p> {
  static constexpr const char* name = "log1p";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::log1p(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) { return 1 / (1 + x); }
};

struct Log2 : RealFunction<Log2> {
  static constexpr const char* name = "log2";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::log2(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    return T(1.44269504088896340736) / x;
  }
};

struct Log10 : RealFunction<Log10> {
  static constexpr const char* name = "log10";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::log10(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    return T(0.434294481903251827651) / x;
  }
};

/// sqrt(a² + b²), without intermediate overflow.
struct Hypot : ElementwiseOn<Elements::real> {
  static constexpr const char* name = "hypot";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    using A = accumulator_t<T>;
    return T(std::hypot(A(a), A(b)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& a, const auto&) {
    return mul(g, div(a, y));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto& y, const auto&, const auto& b) {
    return mul(g, div(b, y));
  }
};

/// log(exp(a) + exp(b)), without intermediate overflow.
struct LogAddExp : ElementwiseOn<Elements::real> {
  static constexpr const char* name = "logaddexp";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& a, const T& b) const {
    using A = accumulator_t<T>;
    const A high = kernels::larger(A(a), A(b)), low = kernels::smaller(A(a), A(b));
    if (high == low) return T(high + A(0.693147180559945309417));  // infinities, too
    return T(high + std::log1p(std::exp(low - high)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, sigmoid(sub(a, b)));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto& b) {
    return mul(g, sigmoid(sub(b, a)));
  }
};

}  // namespace ops

/// a to the power of b; a or b may be a number. pow(0, 0) is 1.
CLEAVE_BINARY(powers, pow, Pow)
/// 1 / a
CLEAVE_UNARY(powers, reciprocal, Reciprocal)
/// 1 / sqrt(a)
CLEAVE_UNARY(powers, rsqrt, Rsqrt)
/// 2 to the power of a.
CLEAVE_UNARY(powers, exp2, Exp2)
/// exp(a) - 1, accurate for small a.
CLEAVE_UNARY(powers, expm1, Expm1)
/// log(1 + a), accurate for small a.
CLEAVE_UNARY(powers, log1p, Log1p)
/// The logarithm to base 2.
CLEAVE_UNARY(powers, log2, Log2)
/// The logarithm to base 10.
CLEAVE_UNARY(powers, log10, Log10)
/// sqrt(a² + b²), without intermediate overflow.
CLEAVE_BINARY(powers, hypot, Hypot)
/// log(exp(a) + exp(b)), without intermediate overflow.
CLEAVE_BINARY(powers, logaddexp, LogAddExp)
CLEAVE_HELPER(powers, PowSlope<1>, 2)
CLEAVE_HELPER(powers, TimesLog, 2)

}  // namespace cleave::inline v0
