// The forms of elementwise functions: f(x), f<Placements<..>>(x), f<explicit_communication>(x),
// f(out(y), x) and f_(x). The verifier calls every operation of the list with a target.
#include <array>
#include <cmath>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/in_place.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "../placed.hpp"
#include "errors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

/// Calls visit(f, f in place, the function of numbers) for functions of one operand.
template <class Visit>
void each_function_of_one(const Visit& visit) {
#define CLEAVE_FORMS(name, of_numbers)                                                            \
  visit([]<class... R>(const auto&... x) -> decltype(auto) { return name<R...>(x...); }, name##_, \
        [](double u) { return double(of_numbers); })
  CLEAVE_FORMS(neg, -u);
  CLEAVE_FORMS(abs, std::fabs(u));
  CLEAVE_FORMS(sign, (u > 0) - (u < 0));
  CLEAVE_FORMS(square, u * u);
  CLEAVE_FORMS(relu, u > 0 ? u : 0);
  CLEAVE_FORMS(exp, std::exp(u));
  CLEAVE_FORMS(log, std::log(u));
  CLEAVE_FORMS(sqrt, std::sqrt(u));
  CLEAVE_FORMS(tanh, std::tanh(u));
  CLEAVE_FORMS(sigmoid, 1 / (1 + std::exp(-u)));
  CLEAVE_FORMS(reciprocal, 1 / u);
  CLEAVE_FORMS(rsqrt, 1 / std::sqrt(u));
  CLEAVE_FORMS(exp2, std::exp2(u));
  CLEAVE_FORMS(expm1, std::expm1(u));
  CLEAVE_FORMS(log1p, std::log1p(u));
  CLEAVE_FORMS(log2, std::log2(u));
  CLEAVE_FORMS(log10, std::log10(u));
  CLEAVE_FORMS(sin, std::sin(u));
  CLEAVE_FORMS(cos, std::cos(u));
  CLEAVE_FORMS(tan, std::tan(u));
  CLEAVE_FORMS(asin, std::asin(u));
  CLEAVE_FORMS(acos, std::acos(u));
  CLEAVE_FORMS(atan, std::atan(u));
  CLEAVE_FORMS(sinh, std::sinh(u));
  CLEAVE_FORMS(cosh, std::cosh(u));
  CLEAVE_FORMS(asinh, std::asinh(u));
  CLEAVE_FORMS(acosh, std::acosh(u));
  CLEAVE_FORMS(atanh, std::atanh(u));
  CLEAVE_FORMS(erf, std::erf(u));
  CLEAVE_FORMS(erfc, std::erfc(u));
  CLEAVE_FORMS(gelu, u / 2 * (1 + std::erf(u / std::sqrt(2.0))));
  CLEAVE_FORMS(
      gelu_tanh,
      u / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (u + 0.044715 * u * u * u))));
  CLEAVE_FORMS(silu, u / (1 + std::exp(-u)));
  CLEAVE_FORMS(mish, u * std::tanh(std::log1p(std::exp(u))));
  CLEAVE_FORMS(logsigmoid, -std::log1p(std::exp(-u)));
  CLEAVE_FORMS(softsign, u / (1 + std::fabs(u)));
  CLEAVE_FORMS(hardsigmoid, std::fmin(std::fmax(u / 6 + 0.5, 0), 1));
  CLEAVE_FORMS(hardswish, u * std::fmin(std::fmax(u / 6 + 0.5, 0), 1));
  CLEAVE_FORMS(floor, std::floor(u));
  CLEAVE_FORMS(ceil, std::ceil(u));
  CLEAVE_FORMS(round, std::rint(u));
  CLEAVE_FORMS(trunc, std::trunc(u));
  CLEAVE_FORMS(frac, u - std::trunc(u));
#undef CLEAVE_FORMS
}
/// Likewise of two operands.
template <class Visit>
void each_function_of_two(const Visit& visit) {
#define CLEAVE_FORMS(name, of_numbers)                                                            \
  visit([]<class... R>(const auto&... x) -> decltype(auto) { return name<R...>(x...); }, name##_, \
        [](double u, double v) { return double(of_numbers); })
  CLEAVE_FORMS(add, u + v);
  CLEAVE_FORMS(sub, u - v);
  CLEAVE_FORMS(mul, u * v);
  CLEAVE_FORMS(div, u / v);
  CLEAVE_FORMS(maximum, u > v ? u : v);
  CLEAVE_FORMS(minimum, u < v ? u : v);
  CLEAVE_FORMS(pow, std::pow(u, v));
  CLEAVE_FORMS(hypot, std::hypot(u, v));
  CLEAVE_FORMS(atan2, std::atan2(u, v));
  CLEAVE_FORMS(fmod, std::fmod(u, v));
  CLEAVE_FORMS(remainder, u - v * std::floor(u / v));
#undef CLEAVE_FORMS
}

bool equal_or_close(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

/// The elements of a part that differ from f(elements of other parts).
template <class F, class Y, class... X>
index_t wrong_in(const F& f, const Y& y, const X&... x) {
  index_t wrong = 0;
  for (index_t i = 0; i < y.size(); ++i) wrong += !equal_or_close(y.data()[i], f(x.data()[i]...));
  return wrong;
}

/// This rank's rows of an array of numbers, some above 1, some below, some negative.
template <class Mesh>
auto rows(const Mesh& mesh, double step) {
  const auto x = zeros<double>({5, 3}, mesh, Shard<0>{});
  const Box box = x.local_box();
  for (index_t i = 0; i < x.to_local().size(); ++i)
    x.to_local().data()[i] = (double(box.begin[0] * 3 + i) - 4) * step + 0.1;
  return x;
}

}  // namespace

TEST_CASE("every function of one or two elements has every form") {
  on_ranks({1, 2, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto check = [&](const auto& f, const auto& in_place, const auto& number, const auto& x,
                           const auto&... more) {
      using X = std::remove_cvref_t<decltype(x)>;
      const auto is_right = [&](const auto& y) {
        CHECK(wrong_in(number, y.to_local(), x.to_local(), more.to_local()...) == 0);
      };
      is_right(f(x, more...));
      is_right(f.template operator()<explicit_communication>(x, more...));
      const auto whole = f.template operator()<Placements<Replicate>>(x, more...);
      static_assert(decltype(whole)::layout[0] == Placement::replicate());
      is_right(whole.redistribute(Shard<0>{}));
      const auto y = zeros<double>({5, 3}, mesh, Shard<0>{});
      static_assert(std::is_same_v<decltype(f(out(y), x, more...)), const X&>);
      CHECK(&f(out(y), x, more...) == &y);
      is_right(y);
      y.to_local().fill_(0);
      f.template operator()<explicit_communication>(out(y), x, more...);
      is_right(y);
      f(out(y.to_local()), x.to_local(), more.to_local()...);
      is_right(y);
      y.to_local().copy_(x.to_local());
      CHECK(&in_place(y, more...) == &y);
      is_right(y);
    };
    const auto x = rows(mesh, 0.3), z = rows(mesh, -0.7);
    each_function_of_one(
        [&](const auto& f, const auto& in_place, const auto& n) { check(f, in_place, n, x); });
    each_function_of_two(
        [&](const auto& f, const auto& in_place, const auto& n) { check(f, in_place, n, x, z); });
    const auto w = rows(mesh, 0.05);
    check([]<class... R>(const auto&... a) -> decltype(auto) { return clamp<R...>(a...); }, clamp_,
          [](double u, double low, double high) { return std::fmin(std::fmax(u, low), high); }, x,
          z, w);
    check([]<class... R>(const auto&... a) -> decltype(auto) { return lerp<R...>(a...); }, lerp_,
          [](double u, double v, double t) { return u + t * (v - u); }, x, z, w);
  });
}

TEST_CASE("operators assign in place, to tensors and DTensors, by arrays and numbers") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto a = rows(mesh, 0.3), b = rows(mesh, -0.7);
    const auto check = [](const auto& x, const auto& u, const auto& v) {
      auto y = x;
      const auto handle = y;  // sees the change: nothing is rebound
      ((y += v) -= 0.5) *= v;
      y /= 4;
      index_t wrong = 0;
      for (index_t i = 0; i < handle.size(); ++i)
        wrong +=
            !equal_or_close(handle.data()[i], (u.data()[i] + v.data()[i] - 0.5) * v.data()[i] / 4);
      CHECK(wrong == 0);
    };
    check(a.to_local().clone(), a.to_local(), b.to_local());
    const auto before = a.to_local().clone();
    auto x = a;
    ((x += b) -= 0.5) *= b;
    x /= 4;
    CHECK(wrong_in([](double u, double v) { return (u + v - 0.5) * v / 4; }, a.to_local(), before,
                   b.to_local()) == 0);
  });
}

TEST_CASE("operators assign to views and through const handles") {
  const Tensor<double, 2> x({2, 2}, {1, 2, 3, 4});
  x.select(0, 1) += 10;
  x *= 2;
  const double expected[] = {2, 4, 26, 28};
  for (index_t i = 0; i < 4; ++i) CHECK(x.data()[i] == expected[i]);
}

TEST_CASE("composites and views write to a target by a copy") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = rows(mesh, 0.3);
    const auto y = zeros<double>({5, 3}, mesh, Shard<0>{});
    call_op(out(y), ops::Softmax<1>{}, x);
    for (index_t i = 0; i < y.to_local().extent(0); ++i) {
      double total = 0;
      for (index_t j = 0; j < 3; ++j) total += std::exp(x.to_local()(i, j));
      for (index_t j = 0; j < 3; ++j)
        CHECK(equal_or_close(y.to_local()(i, j), std::exp(x.to_local()(i, j)) / total));
    }
    const auto t = zeros<double>({3, 5}, mesh, Shard<1>{});
    call_op(out(t), ops::Permute<1, 0>{}, x);
    for (index_t i = 0; i < y.to_local().extent(0); ++i)
      for (index_t j = 0; j < 3; ++j) CHECK(t.to_local()(j, i) == x.to_local()(i, j));
    CHECK(contains(error_of([&] {
                     call_op(out(zeros<double>({5, 5}, mesh, Shard<1>{})), ops::Permute<1, 0>{}, x);
                   }),
                   "the target and the result differ in mesh or extents"));
    const Tensor<double, 2> square({2, 2}, {1, 2, 3, 4});
    call_op(out(square), ops::Permute<1, 0>{}, square);  // the result is a view of the target
    CHECK(square(0, 1) == 3);
    CHECK(square(1, 0) == 2);
  });
}
