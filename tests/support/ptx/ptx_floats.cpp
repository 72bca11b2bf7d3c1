// Floating-point arithmetic (section 9.7.3). Approximations are computed exactly: their
// errors are bounded, not specified.
#include <bit>
#include <cfenv>
#include <cmath>
#include <type_traits>

#include "ptx_decode.hpp"

namespace ptx {
namespace {

using I = const Instruction&;

constexpr auto sum = [](auto a, auto b) { return a + b; };
constexpr auto difference = [](auto a, auto b) { return a - b; };
constexpr auto product = [](auto a, auto b) { return a * b; };
constexpr auto divided = [](auto a, auto b) { return a / b; };
// The other operand where one is NaN; -0 is less than +0 (section 9.7.3.11).
constexpr auto least = [](auto a, auto b) {
  if (a == b) return std::signbit(a) ? a : b;
  return std::fmin(a, b);
};
constexpr auto most = [](auto a, auto b) {
  if (a == b) return std::signbit(a) ? b : a;
  return std::fmax(a, b);
};
constexpr auto copied_sign = [](auto sign, auto size) { return std::copysign(size, sign); };
constexpr auto negative = [](auto a) { return -a; };
constexpr auto absolute = [](auto a) { return std::fabs(a); };
constexpr auto root = [](auto a) { return std::sqrt(a); };
constexpr auto reciprocal = [](auto a) { return 1 / a; };
constexpr auto inverse_root = []<class T>(T a) { return T(1 / std::sqrt(double(a))); };
constexpr auto power_of_two = []<class T>(T a) { return T(std::exp2(double(a))); };

template <class T, auto F>
void binary(Thread& t, I i) {
  t.set<T>(i.slot[0], F(t.get<T>(i.slot[1]), t.get<T>(i.slot[2])));
}
template <class T, auto F>
void unary(Thread& t, I i) {
  t.set<T>(i.slot[0], F(t.get<T>(i.slot[1])));
}
template <class T>
void fma(Thread& t, I i) {
  t.set<T>(i.slot[0], std::fma(t.get<T>(i.slot[1]), t.get<T>(i.slot[2]), t.get<T>(i.slot[3])));
}

// The roundings .rz, .rm and .rp (section 9.7.3.1): F reads its operands between the two calls.
template <Handler F, int Rounding>
void directed(Thread& t, I i) {
  std::fesetround(Rounding);
  F(t, i);
  std::fesetround(FE_TONEAREST);
}
template <Handler F>
void add_directed(Handlers& h, const std::string& name, const std::string& type) {
  h[name + ".rz" + type] = directed<F, FE_TOWARDZERO>;
  h[name + ".rm" + type] = directed<F, FE_DOWNWARD>;
  h[name + ".rp" + type] = directed<F, FE_UPWARD>;
}

// .ftz: subnormal numbers, read or written, become zeros of their sign (section 9.7.3).
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x; }
template <auto F>
void flushing(Thread& t, I i) {
  t.set(i.slot[0], flushed(F(flushed(t.get<float>(i.slot[1])))));
}
// The gross approximations of 64-bit numbers (sections 9.7.3.14 and 9.7.3.18) ignore the lower half
// of the operand and leave zeros in that of the result.
template <auto F>
void gross(Thread& t, I i) {
  const auto upper = [](double x) {
    if (std::fpclassify(x) == FP_SUBNORMAL) x = std::copysign(0., x);
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) >> 32 << 32);
  };
  t.set(i.slot[0], upper(F(upper(t.get<double>(i.slot[1])))));
}

template <class T>
void add_type(Handlers& h, const std::string& s) {
  h["add" + s] = binary<T, sum>;
  h["sub" + s] = binary<T, difference>;
  h["mul" + s] = binary<T, product>;
  h["div" + s] = binary<T, divided>;
  h["min" + s] = binary<T, least>;
  h["max" + s] = binary<T, most>;
  h["copysign" + s] = binary<T, copied_sign>;
  h["neg" + s] = unary<T, negative>;
  h["abs" + s] = unary<T, absolute>;
  h["sqrt" + s] = unary<T, root>;
  h["rcp" + s] = unary<T, reciprocal>;
  h["fma" + s] = h["mad" + s] = fma<T>;
  add_directed<binary<T, sum>>(h, "add", s);
  add_directed<binary<T, product>>(h, "mul", s);
  add_directed<fma<T>>(h, "fma", s);
}
template <auto F>
void add_approximation(Handlers& h, const std::string& name) {
  h[name + ".approx.f32"] = unary<float, F>;
  h[name + ".approx.ftz.f32"] = flushing<F>;
}

}  // namespace

void add_floats(Handlers& h) {
  add_type<float>(h, ".f32");
  add_type<double>(h, ".f64");
  add_approximation<root>(h, "sqrt");
  add_approximation<reciprocal>(h, "rcp");
  add_approximation<inverse_root>(h, "rsqrt");
  add_approximation<power_of_two>(h, "ex2");
  h["rsqrt.approx.ftz.f64"] = gross<inverse_root>;
  h["rcp.approx.ftz.f64"] = gross<reciprocal>;
}

}  // namespace ptx
