// Activation functions of neural networks, and the error function. Definitions, parameters and
// defaults are those of PyTorch.
#pragma once

#include <cmath>

#include <cleave/kernels/activation_formulas.hpp>
#include <cleave/kernels/element_functions.hpp>
#include <cleave/ops/elementwise/real_function.hpp>

namespace cleave::inline v0 {

namespace ops {

struct Erf : RealFunction<Erf> {
  static constexpr const char* name = "erf";
  static constexpr auto row_function = kernels::RowFunctionId::erf;
  static constexpr const char* partials = detail::never_falls;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::erf(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::exp;
    return T(1.12837916709551257390) * exp(-x * x);  // 2 / sqrt(pi)
  }
};

/// 1 - erf(x), accurate where the result is small.
struct Erfc : RealFunction<Erfc> {
  static constexpr const char* name = "erfc";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return std::erfc(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) { return -Erf::slope(x); }
};

/// x · P(X <= x) for a standard normal X.
struct Gelu : RealFunction<Gelu> {
  static constexpr const char* name = "gelu";
  static constexpr auto row_function = kernels::RowFunctionId::gelu;
  static constexpr auto slope_row_function = kernels::RowFunctionId::gelu_slope;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::formulas::Gelu::of(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) {
    return kernels::formulas::GeluSlope::of(x);
  }
};

/// The tanh approximation of gelu, accurate to 1e-3.
struct GeluTanh : RealFunction<GeluTanh> {
  static constexpr const char* name = "gelu_tanh";
  static constexpr auto row_function = kernels::RowFunctionId::gelu_tanh;
  static constexpr auto slope_row_function = kernels::RowFunctionId::gelu_tanh_slope;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::formulas::GeluTanh::of(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) {
    return kernels::formulas::GeluTanhSlope::of(x);
  }
};

/// x · sigmoid(x)
struct Silu : RealFunction<Silu> {
  static constexpr const char* name = "silu";
  static constexpr auto row_function = kernels::RowFunctionId::silu;
  static constexpr auto slope_row_function = kernels::RowFunctionId::silu_slope;
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return kernels::formulas::Silu::of(x); }
  CLEAVE_HOST_DEVICE static auto slope(const auto& x) {
    return kernels::formulas::SiluSlope::of(x);
  }
};

/// log(1 + exp(beta x)) / beta; x where beta x > threshold.
struct Softplus : RealFunction<Softplus> {
  double beta = 1;
  double threshold = 20;

  static constexpr const char* name = "softplus";
  template <class T>
  CLEAVE_HOST_DEVICE T value(const T& x) const {
    const T b = T(beta);
    return b * x > T(threshold) ? x : T(std::log1p(std::exp(b * x)) / b);
  }
  template <class T>
  CLEAVE_HOST_DEVICE T slope(const T& x) const {
    using std::exp;
    const T b = T(beta);
    return b * x > T(threshold) ? T(1) : T(1) / (T(1) + exp(-(b * x)));
  }
};

/// x · tanh(log(1 + exp(x)))
struct Mish : RealFunction<Mish> {
  static constexpr const char* name = "mish";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return x * std::tanh(Softplus{}.value(x)); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::exp, std::tanh, std::log;
    const T s = T(1) / (T(1) + exp(-x));
    const T t = tanh(x > T(20) ? x : log(T(1) + exp(x)));
    return t + x * s * (T(1) - t * t);
  }
};

/// log(sigmoid(x))
struct LogSigmoid : RealFunction<LogSigmoid> {
  static constexpr const char* name = "logsigmoid";
  static constexpr const char* partials = detail::never_falls;
  template <class T>
  CLEAVE_HOST_DEVICE static T value(const T& x) {
    return x < T(0) ? T(x - std::log1p(std::exp(x))) : T(-std::log1p(std::exp(-x)));
  }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::exp;
    return T(1) / (T(1) + exp(x));
  }
};

/// x / (1 + |x|)
struct Softsign : RealFunction<Softsign> {
  static constexpr const char* name = "softsign";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return x / (1 + std::abs(x)); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    using std::abs;
    const T size = T(1) + abs(x);
    return T(1) / (size * size);
  }
};

/// x where x > 0, share · x elsewhere.
struct LeakyRelu : RealFunction<LeakyRelu> {
  double share = 0.01;

  static constexpr const char* name = "leaky_relu";
  template <class T>
  CLEAVE_HOST_DEVICE T value(const T& x) const {
    return x > T(0) ? x : T(T(share) * x);
  }
  template <class T>
  CLEAVE_HOST_DEVICE T slope(const T& x) const {
    return x > T(0) ? T(1) : T(share);
  }
};

/// elu, selu and celu: scale · x where x > 0, scale · alpha · (exp(x · inner) - 1) elsewhere.
struct Elu : RealFunction<Elu> {
  double alpha = 1;
  double scale = 1;
  double inner = 1;

  static constexpr const char* name = "elu";
  template <class T>
  CLEAVE_HOST_DEVICE T value(const T& x) const {
    return T(scale) * (x > T(0) ? x : T(T(alpha) * std::expm1(x * T(inner))));
  }
  template <class T>
  CLEAVE_HOST_DEVICE T slope(const T& x) const {
    using std::exp;
    return x > T(0) ? T(scale) : T(T(scale * alpha * inner) * exp(x * T(inner)));
  }
};

/// x clamped to [low, high]; the gradient is 0 at the bounds and beyond.
struct Hardtanh : RealFunction<Hardtanh> {
  double low = -1;
  double high = 1;

  static constexpr const char* name = "hardtanh";
  template <class T>
  CLEAVE_HOST_DEVICE T value(const T& x) const {
    return x < T(low) ? T(low) : x > T(high) ? T(high) : x;
  }
  template <class T>
  CLEAVE_HOST_DEVICE T slope(const T& x) const {
    return x > T(low) && x < T(high) ? T(1) : T(0);
  }
};

/// x / 6 + 1 / 2, clamped to [0, 1].
struct Hardsigmoid : RealFunction<Hardsigmoid> {
  static constexpr const char* name = "hardsigmoid";
  template <class T>
  CLEAVE_HOST_DEVICE static T value(const T& x) {
    return x < T(-3) ? T(0) : x > T(3) ? T(1) : T(x / T(6) + T(0.5));
  }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    return x > T(-3) && x < T(3) ? T(1) / T(6) : T(0);
  }
};

/// x · hardsigmoid(x)
struct Hardswish : RealFunction<Hardswish> {
  static constexpr const char* name = "hardswish";
  CLEAVE_HOST_DEVICE static auto value(const auto& x) { return x * Hardsigmoid::value(x); }
  template <class T>
  CLEAVE_HOST_DEVICE static T slope(const T& x) {
    return x < T(-3) ? T(0) : x > T(3) ? T(1) : T(x / T(3) + T(0.5));
  }
};

}  // namespace ops

/// The error function of each element.
CLEAVE_UNARY(activations, erf, Erf)
/// The complementary error function: 1 - erf(a), accurate where the result is small.
CLEAVE_UNARY(activations, erfc, Erfc)
/// Gaussian error linear unit: a/2 · (1 + erf(a / sqrt(2)))
CLEAVE_UNARY(activations, gelu, Gelu)
/// gelu approximated with tanh, as PyTorch's `approximate="tanh"`.
CLEAVE_UNARY(activations, gelu_tanh, GeluTanh)
/// Sigmoid linear unit (swish): a · sigmoid(a)
CLEAVE_UNARY(activations, silu, Silu)
/// log(1 + exp(beta a)) / beta; a where beta a > threshold.
CLEAVE_UNARY_WITH(activations, softplus, Softplus, "softplus(a), softplus(a, beta, threshold)")
/// a · tanh(softplus(a))
CLEAVE_UNARY(activations, mish, Mish)
/// log(sigmoid(a))
CLEAVE_UNARY(activations, logsigmoid, LogSigmoid)
/// a / (1 + |a|)
CLEAVE_UNARY(activations, softsign, Softsign)
/// Leaky rectified linear unit: a where a > 0, share · a elsewhere.
CLEAVE_UNARY_WITH(activations, leaky_relu, LeakyRelu, "leaky_relu(a), leaky_relu(a, share)")
/// Exponential linear unit: a where a > 0, alpha · (exp(a) - 1) elsewhere.
CLEAVE_UNARY_WITH(activations, elu, Elu, "elu(a), elu(a, alpha)")
/// Scaled elu, whose constants keep mean 0 and variance 1 from layer to layer.
template <class... R, AnyTensor A>
constexpr auto selu(const A& a) {
  constexpr double alpha = 1.6732632423543772848170429916717;
  constexpr double scale = 1.0507009873554804934193349852946;
  return detail::pointwise<R...>(ops::Elu{{}, alpha, scale, 1}, a);
}
CLEAVE_USAGE(selu, "selu(a)")
/// Continuously differentiable elu: a where a > 0, alpha · (exp(a / alpha) - 1) elsewhere.
template <class... R, AnyTensor A>
constexpr auto celu(const A& a, double alpha = 1) {
  return detail::pointwise<R...>(ops::Elu{{}, alpha, 1, 1 / alpha}, a);
}
CLEAVE_USAGE(celu, "celu(a), celu(a, alpha)")
/// a clamped to [low, high].
CLEAVE_UNARY_WITH(activations, hardtanh, Hardtanh, "hardtanh(a), hardtanh(a, low, high)")
/// a clamped to [0, 6].
template <class... R, AnyTensor A>
constexpr auto relu6(const A& a) {
  return hardtanh<R...>(a, 0, 6);
}
CLEAVE_USAGE(relu6, "relu6(a)")
/// a / 6 + 1 / 2, clamped to [0, 1].
CLEAVE_UNARY(activations, hardsigmoid, Hardsigmoid)
/// a · hardsigmoid(a)
CLEAVE_UNARY(activations, hardswish, Hardswish)
CLEAVE_HELPER(activations, Slope<ops::Gelu>, 1)

}  // namespace cleave::inline v0
