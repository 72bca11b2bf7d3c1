// Arithmetic, logic, comparisons, conversions and moves (sections 9.7.1, 9.7.3, 9.7.6, 9.7.8,
// 9.7.9). Approximations are computed exactly: their errors are bounded, not specified.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ptx_decode.hpp"

namespace ptx {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
__extension__ typedef __int128 s128;

/// Writes what `F` returns for the operands.
template <auto F, class Result, class... Operand>
void apply(Thread& t, const Instruction& i) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    t.set(i.slot[0], Result(F(t.get<Operand>(i.slot[K + 1])...)));
  }(std::index_sequence_for<Operand...>{});
}
template <auto F, class T>
constexpr Operation unary = {apply<F, T, T>};
template <auto F, class T>
constexpr Operation binary = {apply<F, T, T, T>};
template <auto F, class T>
constexpr Operation ternary = {apply<F, T, T, T, T>};

// Integers wrap: their lowest bits are those of unsigned ones of 64 bits.
template <class T>
auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>) return u64(x);
  else return x;
}
constexpr auto sum = [](auto a, auto b) { return wrapping(a) + wrapping(b); };
constexpr auto difference = [](auto a, auto b) { return wrapping(a) - wrapping(b); };
constexpr auto product = [](auto a, auto b) { return wrapping(a) * wrapping(b); };
constexpr auto negative = [](auto a) { return -wrapping(a); };

constexpr auto wide_product = [](auto a, auto b) { return s128(a) * b; };
constexpr auto upper_product = []<class T>(T a, T b) { return s128(a) * b >> (8 * sizeof(T)); };
constexpr auto product_plus = [](auto a, auto b, auto c) {
  return wrapping(a) * wrapping(b) + wrapping(c);
};
// The result of a division by zero is unspecified (section 9.7.1.8).
constexpr auto quotient = []<class T>(T a, T b) {
  return b == 0 ? T(-1) : std::is_signed_v<T> && b == T(-1) ? T(negative(a)) : T(a / b);
};
constexpr auto remainder = []<class T>(T a, T b) {
  return b == 0 ? a : std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
};
constexpr auto least = [](auto a, auto b) { return std::min(a, b); };
constexpr auto most = [](auto a, auto b) { return std::max(a, b); };
constexpr auto absolute = [](auto a) { return a < 0 ? negative(a) : wrapping(a); };
constexpr auto leading_zeros = [](auto a) { return std::countl_zero(a); };
constexpr auto ones = [](auto a) { return std::popcount(a); };

// Shifts by more than the width give 0, or the sign (section 9.7.8).
constexpr auto shifted_left = []<class T>(T a, u32 by) {
  return by < 8 * sizeof(T) ? u64(a) << by : 0;
};
constexpr auto shifted_right = []<class T>(T a, u32 by) {
  return by < 8 * sizeof(T) ? T(a >> by) : a < T(0) ? T(-1) : T(0);
};
// nvcc inserts constant ranges of bits within the width.
constexpr auto inserted = []<class T>(T a, T b, u32 at, u32 count) {
  const T mask = T(T(~T(0)) >> (8 * sizeof(T) - count) << at);
  return T((b & ~mask) | (a << at & mask));
};
// The bytes of {b, a} that four digits of c select.
constexpr auto permuted = [](u32 a, u32 b, u32 selector) {
  const u64 bytes = u64(b) << 32 | a;
  u32 result = 0;
  for (int k = 0; k < 4; ++k)
    result |= u32(bytes >> (8 * (selector >> (4 * k) & 7)) & 0xff) << (8 * k);
  return result;
};

// The other operand where one is NaN; -0 is less than +0 (section 9.7.3.11).
constexpr auto least_number = [](auto a, auto b) {
  if (a == b) return std::signbit(a) ? a : b;
  return std::fmin(a, b);
};
constexpr auto most_number = [](auto a, auto b) {
  if (a == b) return std::signbit(a) ? b : a;
  return std::fmax(a, b);
};
constexpr auto magnitude = [](auto a) { return std::fabs(a); };
constexpr auto copied_sign = [](auto sign, auto x) { return std::copysign(x, sign); };
constexpr auto root = [](auto a) { return std::sqrt(a); };
constexpr auto reciprocal = [](auto a) { return 1 / a; };
constexpr auto inverse_root = [](auto a) { return 1 / std::sqrt(a); };
constexpr auto fused = [](auto a, auto b, auto c) { return std::fma(a, b, c); };

/// Rounding down (section 9.7.3.1): the operands are read between the two calls.
void fused_down(Thread& t, const Instruction& i) {
  std::fesetround(FE_DOWNWARD);
  apply<fused, float, float, float, float>(t, i);
  std::fesetround(FE_TONEAREST);
}

// .ftz: subnormal numbers, read or written, become zeros of their sign (section 9.7.3).
template <class T>
T flushed(T x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T(0), x) : x;
}
constexpr auto power_of_two = [](float x) { return flushed(float(std::exp2(double(flushed(x))))); };
// The gross approximations of 64-bit numbers (sections 9.7.3.14 and 9.7.3.18) ignore the lower half
// of the operand and leave zeros in that of the result.
template <auto F>
constexpr auto gross = [](double x) {
  const auto upper = [](double y) {
    return std::bit_cast<double>(std::bit_cast<u64>(flushed(y)) >> 32 << 32);
  };
  return upper(F(upper(x)));
};

constexpr auto same = [](auto a) { return a; };
constexpr auto selected = [](auto a, auto b, u8 first) { return (first & 1) != 0 ? a : b; };

/// Two registers of type `Half` in one.
template <class Half, class Whole>
void pack(Thread& t, const Instruction& i) {
  const auto upper = Whole(t.get<Half>(i.slot[2]));
  t.set(i.slot[0], Whole(upper << (8 * sizeof(Half)) | t.get<Half>(i.slot[1])));
}
template <class Half, class Whole>
void unpack(Thread& t, const Instruction& i) {
  const auto whole = t.get<Whole>(i.slot[2]);
  t.set(i.slot[0], Half(whole));
  t.set(i.slot[1], Half(whole >> (8 * sizeof(Half))));
}

// .rzi: values out of range become the nearest integer; NaN becomes 0, or the top bit in
// conversions from or to 64 bits.
template <class To>
constexpr auto truncated = []<class From>(From x) {
  using Limits = std::numeric_limits<To>;
  if (x != x)
    return sizeof(To) == 8 || sizeof(From) == 8 ? To(u64(1) << (8 * sizeof(To) - 1)) : To(0);
  if (x < From(Limits::min())) return Limits::min();
  return x >= std::ldexp(From(1), Limits::digits) ? Limits::max() : To(x);
};
constexpr auto nearest_integer = [](auto x) { return std::nearbyint(x); };
// .sat: to [0, 1]; NaN becomes 0.
constexpr auto saturated = [](float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; };
constexpr auto from_half = [](u16 bits) { return __half2float(__half(__half_raw{bits})); };
constexpr auto to_half = [](float x) { return __half_raw(__float2half_rn(x)).x; };
constexpr auto to_bfloat = [](float x) { return __nv_bfloat16_raw(__float2bfloat16_rn(x)).x; };

// Ordered comparisons are false if an operand is NaN, unordered ones (the names that end in u) are
// true.
template <auto F>
constexpr auto unless = [](auto a, auto b) { return !F(a, b); };
constexpr auto both_numbers = [](auto a, auto b) { return a == a && b == b; };

template <class T, auto F>
void add_comparison(Operations& all, const std::string& name) {
  all["setp." + name + suffix<T>()] = {apply<F, bool, T, T>};
}
template <class T>
void add_comparisons(Operations& all) {
  add_comparison<T, std::equal_to<>{}>(all, "eq");
  add_comparison<T, std::less<>{}>(all, "lt");
  add_comparison<T, std::less_equal<>{}>(all, "le");
  add_comparison<T, std::greater<>{}>(all, "gt");
  add_comparison<T, std::greater_equal<>{}>(all, "ge");
  if constexpr (std::is_integral_v<T>) {
    add_comparison<T, std::not_equal_to<>{}>(all, "ne");
  } else {
    add_comparison<T, std::not_equal_to<>{}>(all, "neu");
    add_comparison<T, unless<std::greater_equal<>{}>>(all, "ltu");
    add_comparison<T, unless<std::greater<>{}>>(all, "leu");
    add_comparison<T, unless<std::less_equal<>{}>>(all, "gtu");
    add_comparison<T, unless<std::less<>{}>>(all, "geu");
    add_comparison<T, both_numbers>(all, "num");
    add_comparison<T, unless<both_numbers>>(all, "nan");
  }
}

template <class T>
void add_logic(Operations& all, const std::string& type) {
  all["and" + type] = binary<std::bit_and<>{}, T>;
  all["or" + type] = binary<std::bit_or<>{}, T>;
  all["xor" + type] = binary<std::bit_xor<>{}, T>;
  all["not" + type] = unary<std::bit_not<>{}, T>;
}

void add_integers(Operations& all) {
  for_each(Integers{}, [&]<class T>() {
    const std::string type = suffix<T>();
    all["add" + type] = binary<sum, T>;
    all["sub" + type] = binary<difference, T>;
    all["mul.lo" + type] = binary<product, T>;
    all["mad.lo" + type] = ternary<product_plus, T>;
    all["div" + type] = binary<quotient, T>;
    all["rem" + type] = binary<remainder, T>;
    all["min" + type] = binary<least, T>;
    all["max" + type] = binary<most, T>;
    all["shr" + type] = {apply<shifted_right, T, T, u32>};
    add_comparisons<T>(all);
    if constexpr (std::is_signed_v<T>) {
      all["neg" + type] = unary<negative, T>;
      all["abs" + type] = unary<absolute, T>;
      all["mul.hi" + type] = binary<upper_product, T>;
    } else {
      add_logic<T>(all, type);
      all["shl" + type] = {apply<shifted_left, T, T, u32>};
    }
  });
  for_each(Types<u32, u64>{}, [&]<class T>() {
    all["bfi" + suffix<T>()] = {apply<inserted, T, T, T, u32, u32>};
    all["clz" + suffix<T>()] = {apply<leading_zeros, u32, T>};
    all["popc" + suffix<T>()] = {apply<ones, u32, T>};
  });
  all["mul.wide.s32"] = {apply<wide_product, s64, s32, s32>};
  all["mul.wide.u32"] = {apply<wide_product, u64, u32, u32>};
  all["prmt.u32"] = ternary<permuted, u32>;
  add_logic<u8>(all, ".pred");
}

void add_floats(Operations& all) {
  for_each(Floats{}, [&]<class T>() {
    const std::string type = suffix<T>();
    all["add" + type] = binary<sum, T>;
    all["sub" + type] = binary<difference, T>;
    all["mul" + type] = binary<product, T>;
    all["div" + type] = binary<std::divides<>{}, T>;
    all["fma" + type] = ternary<fused, T>;
    all["min" + type] = binary<least_number, T>;
    all["max" + type] = binary<most_number, T>;
    all["neg" + type] = unary<negative, T>;
    all["abs" + type] = unary<magnitude, T>;
    all["copysign" + type] = binary<copied_sign, T>;
    all["sqrt" + type] = unary<root, T>;
    all["rcp" + type] = unary<reciprocal, T>;
    add_comparisons<T>(all);
  });
  all["fma.rm.f32"] = {fused_down};
  all["ex2.approx.ftz.f32"] = unary<power_of_two, float>;
  all["rcp.approx.ftz.f64"] = unary<gross<reciprocal>, double>;
  all["rsqrt.approx.ftz.f64"] = unary<gross<inverse_root>, double>;
}

void add_conversions(Operations& all) {
  const auto from_integer = [&]<class From>() {
    const auto add = [&]<class To>() {
      all["cvt" + suffix<To>() + suffix<From>()] = {apply<same, To, From>};
    };
    for_each(Integers{}, add);
    for_each(Floats{}, add);
  };
  for_each(Bytes{}, from_integer);
  for_each(Integers{}, from_integer);
  for_each(Types<s32, u32, s64, u64>{}, [&]<class To>() {
    all["cvt.rzi" + suffix<To>() + ".f32"] = {apply<truncated<To>, To, float>};
    all["cvt.rzi" + suffix<To>() + ".f64"] = {apply<truncated<To>, To, double>};
  });
  all["cvt.f64.f32"] = {apply<same, double, float>};
  all["cvt.f32.f64"] = {apply<same, float, double>};
  all["cvt.rni.f32.f32"] = unary<nearest_integer, float>;
  all["cvt.sat.f32.f32"] = unary<saturated, float>;
  all["cvt.f32.f16"] = {apply<from_half, float, u16>};
  all["cvt.f16.f32"] = {apply<to_half, u16, float>};
  all["cvt.bf16.f32"] = {apply<to_bfloat, u16, float>};
}

void add_moves(Operations& all) {
  const auto add = [&]<class T>() {
    all["mov" + suffix<T>()] = unary<same, T>;
    all["selp" + suffix<T>()] = {apply<selected, T, T, T, u8>};
  };
  for_each(Integers{}, add);
  for_each(Floats{}, add);
  all["mov.pred"] = unary<same, u8>;
  all["pack2.u32"] = {pack<u16, u32>};
  all["pack2.u64"] = {pack<u32, u64>};
  all["unpack2.u32"] = {unpack<u16, u32>};
  all["unpack2.u64"] = {unpack<u32, u64>};
  // Addresses of these spaces are generic ones.
  all["cvta.to.global.u64"] = all["cvta.param.u64"] = unary<same, u64>;
}

}  // namespace

void add_arithmetic(Operations& all) {
  add_integers(all);
  add_floats(all);
  add_conversions(all);
  add_moves(all);
}

}  // namespace ptx
