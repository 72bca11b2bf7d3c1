// Activations and their gradients compared with stored values from PyTorch; comparisons and clamp
// with NaNs and with scalars.
#include <cmath>
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include <cleave/grad.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/reductions/reduce.hpp>

#include "../activations_torch.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

std::set<std::string> checked_names;

/// Compares values and gradient with those stored under the name.
template <class F>
void check_torch(const std::string& name, const F& f, double epsilon = 1e-12) {
  CAPTURE(name);
  checked_names.insert(name);
  const torch::Values& expected = torch::values.at(name);
  Tensor<double, 1> x({8});
  for (index_t i = 0; i < 8; ++i) x.data()[i] = torch::x[std::size_t(i)];
  const auto leaf = requires_grad(x);
  const auto y = f(leaf);
  backward(sum(y));
  for (index_t i = 0; i < 8; ++i) {
    CHECK(y.value()(i) == doctest::Approx(expected.y[std::size_t(i)]).epsilon(epsilon));
    CHECK(grad(leaf)(i) == doctest::Approx(expected.slope[std::size_t(i)]).epsilon(epsilon));
  }
}

Tensor<double, 1> vector_of(std::initializer_list<double> values) {
  Tensor<double, 1> x({index_t(values.size())});
  std::copy(values.begin(), values.end(), x.data());
  return x;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");

}  // namespace

TEST_CASE("activations and their gradients are PyTorch's") {
  check_torch("gelu", [](const auto& x) { return gelu(x); });
  check_torch("gelu_tanh", [](const auto& x) { return gelu_tanh(x); });
  check_torch("silu", [](const auto& x) { return silu(x); });
  check_torch("softplus", [](const auto& x) { return softplus(x); });
  check_torch("softplus_2_1", [](const auto& x) { return softplus(x, 2, 1); });
  check_torch("mish", [](const auto& x) { return mish(x); });
  check_torch("logsigmoid", [](const auto& x) { return logsigmoid(x); });
  check_torch("softsign", [](const auto& x) { return softsign(x); });
  check_torch("leaky_relu_03", [](const auto& x) { return leaky_relu(x, 0.3); });
  check_torch("elu_15", [](const auto& x) { return elu(x, 1.5); });
  check_torch("selu", [](const auto& x) { return selu(x); });
  check_torch("celu_15", [](const auto& x) { return celu(x, 1.5); });
  check_torch("hardtanh", [](const auto& x) { return hardtanh(x); });
  check_torch("relu6", [](const auto& x) { return relu6(x); });
  check_torch("hardsigmoid", [](const auto& x) { return hardsigmoid(x); }, 1e-7);  // 1/6 is a float
  check_torch("hardswish", [](const auto& x) { return hardswish(x); });
  check_torch("erf", [](const auto& x) { return erf(x); });
  check_torch("erfc", [](const auto& x) { return erfc(x); });
  check_torch("clamp", [](const auto& x) { return clamp(x, -1.5, 2); });
  CHECK(checked_names.size() == torch::values.size());
}

TEST_CASE("slopes have slopes") {
  const auto x = requires_grad(requires_grad(vector_of({-1.25, 0.5, 2})));
  backward(sum(gelu(x)));
  const auto first = grad(x);
  backward(sum(first));
  const auto second = grad(x.value());
  for (index_t i = 0; i < 3; ++i) {  // gelu'' = (2 - x^2) phi(x)
    const double v = x.value().value()(i);
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * std::acos(-1.0));
    CHECK(second(i) == doctest::Approx((2 - v * v) * density).epsilon(1e-12));
  }
}

TEST_CASE("comparisons with NaN are false, except !=") {
  const auto a = vector_of({1, not_a_number, not_a_number, infinity});
  const auto b = vector_of({not_a_number, 1, not_a_number, infinity});
  const bool alike[] = {false, false, false, true};
  for (index_t i = 0; i < 4; ++i) {
    CHECK(!(a < b)(i));
    CHECK(!(a > b)(i));
    CHECK((a <= b)(i) == alike[i]);
    CHECK((a >= b)(i) == alike[i]);
    CHECK(equal(a, b)(i) == alike[i]);
    CHECK(not_equal(a, b)(i) != alike[i]);
  }
  CHECK(isnan(a)(1));
  CHECK(!isnan(a)(3));
  CHECK(isinf(a)(3));
  CHECK(isinf(-a)(3));
  CHECK(!isfinite(a)(3));
  CHECK(!isfinite(a)(1));
  CHECK(isfinite(a)(0));
  CHECK(logical_and(a, 1)(1));  // a NaN is not 0
}

TEST_CASE("comparisons take numbers on either side") {
  const auto x = vector_of({-1, 0, 2});
  CHECK((x < 0)(0));
  CHECK(!(x < 0)(1));
  CHECK((0.5 <= x)(2));
  CHECK(equal(x, 2)(2));
  CHECK(where(x > 0, x, 0)(0) == 0);
}

TEST_CASE("clamp keeps NaNs, and its upper bound where the bounds are crossed") {
  const auto y = clamp(vector_of({not_a_number, -5, 5, 0.5}), 0, 1);
  CHECK(std::isnan(y(0)));
  CHECK(y(1) == 0);
  CHECK(y(2) == 1);
  CHECK(y(3) == 0.5);
  CHECK(clamp(vector_of({0.5}), 2, 1)(0) == 1);
}

TEST_CASE("powers of 0 and to the 0 have finite slopes") {
  const auto x = requires_grad(vector_of({0, 0, 3})), p = requires_grad(vector_of({0, 2, 2}));
  const auto y = pow(x, p);
  CHECK(y.value()(0) == 1);
  backward(sum(y));
  CHECK(grad(x)(0) == 0);
  CHECK(grad(x)(1) == 0);
  CHECK(grad(x)(2) == 6);
  CHECK(grad(p)(0) == 0);
  CHECK(grad(p)(1) == 0);
  CHECK(grad(p)(2) == doctest::Approx(9 * std::log(3.0)));
  const auto base = requires_grad(vector_of({0.5}));
  backward(sum(pow(2.0, base)));
  CHECK(grad(base)(0) == doctest::Approx(std::sqrt(2.0) * std::log(2.0)));
}

TEST_CASE("remainders have the sign of the dividend, or of the divisor") {
  Tensor<std::int64_t, 1> a({4}, {7, -7, 7, -7}), b({4}, {3, 3, -3, -3});
  const std::int64_t as_cpp[] = {1, -1, 1, -1}, as_python[] = {1, 2, -2, -1};
  for (index_t i = 0; i < 4; ++i) {
    CHECK(fmod(a, b)(i) == as_cpp[i]);
    CHECK(remainder(a, b)(i) == as_python[i]);
  }
  CHECK(remainder(vector_of({-7.5}), 2)(0) == 0.5);
}
