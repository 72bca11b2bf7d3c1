// Conversions and comparisons (sections 9.7.6.1, 9.7.9.22).
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ptx_decode.hpp"
#include "ptx_numbers.hpp"

namespace ptx {
namespace {

using I = const Instruction&;

/// To an integer, or not at all: the modifiers .rni, .rzi, .rmi and .rpi.
double whole(double x, std::uint8_t mode) {
  switch (mode) {
    case 1: return std::nearbyint(x);
    case 2: return std::trunc(x);
    case 3: return std::floor(x);
    case 4: return std::ceil(x);
    default: return x;
  }
}

template <class T>
double number(T x) {
  return double(x);
}
template <int Fraction>
double number(Short<Fraction> x) {
  return x.value();
}

template <class To>
To rounded(double x) {
  return To(x);
}
template <>
Half rounded<Half>(double x) {
  return Half::nearest(x);
}
template <>
BFloat rounded<BFloat>(double x) {
  return BFloat::nearest(x);
}

template <class To, class From>
void between_integers(Thread& t, I i) {
  t.set<To>(i.slot[0], To(t.get<From>(i.slot[1])));
}

// An integer of 64 bits does not fit into a double: it is rounded once, to the destination.
template <class To, class From>
void from_integer(Thread& t, I i) {
  const From x = t.get<From>(i.slot[1]);
  if constexpr (std::is_floating_point_v<To>) t.set<To>(i.slot[0], To(x));
  else t.set<To>(i.slot[0], rounded<To>(double(x)));
}

// Values out of range become the nearest integer; NaN becomes 0, or the top bit in conversions from
// or to 64 bits.
template <class To, class From>
void to_integer(Thread& t, I i) {
  const double x = whole(number(t.get<From>(i.slot[1])), i.mode);
  using L = std::numeric_limits<To>;
  To result;
  if (x != x) {
    const bool wide = sizeof(To) == 8 || sizeof(From) == 8;
    result = wide ? To(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1)) : To(0);
  } else if (x < double(L::min())) {
    result = L::min();
  } else if (x >= std::ldexp(1.0, L::digits)) {
    result = L::max();
  } else {
    result = To(x);
  }
  t.set<To>(i.slot[0], result);
}

template <class To, class From>
void between_floats(Thread& t, I i) {
  t.set<To>(i.slot[0], rounded<To>(whole(number(t.get<From>(i.slot[1])), i.mode)));
}
// .sat: to [0, 1]; NaN becomes 0.
void saturate(Thread& t, I i) {
  const float x = t.get<float>(i.slot[1]);
  t.set<float>(i.slot[0], x > 0 ? std::min(x, 1.0f) : 0.0f);
}
template <class From>
void add_from(Handlers& h, const std::string& from) {
  const auto name = [&](const char* to) { return std::string("cvt.") + to + '.' + from; };
  // The destination's sign matters only if the value may be out of range.
  if constexpr (std::is_integral_v<From>) {
    h[name("u8")] = h[name("s8")] = between_integers<std::uint8_t, From>;
    h[name("u16")] = h[name("s16")] = between_integers<std::uint16_t, From>;
    h[name("u32")] = h[name("s32")] = between_integers<std::uint32_t, From>;
    h[name("u64")] = h[name("s64")] = between_integers<std::uint64_t, From>;
    h[name("rn.f16")] = from_integer<Half, From>;
    h[name("rn.bf16")] = from_integer<BFloat, From>;
    h[name("rn.f32")] = from_integer<float, From>;
    h[name("rn.f64")] = from_integer<double, From>;
  } else {
    h[name("s8")] = to_integer<std::int8_t, From>;
    h[name("u8")] = to_integer<std::uint8_t, From>;
    h[name("s16")] = to_integer<std::int16_t, From>;
    h[name("u16")] = to_integer<std::uint16_t, From>;
    h[name("s32")] = to_integer<std::int32_t, From>;
    h[name("u32")] = to_integer<std::uint32_t, From>;
    h[name("s64")] = to_integer<std::int64_t, From>;
    h[name("u64")] = to_integer<std::uint64_t, From>;
    h[name(sizeof(From) > 2 ? "rn.f16" : "f16")] = between_floats<Half, From>;
    h[name(sizeof(From) > 2 ? "rn.bf16" : "bf16")] = between_floats<BFloat, From>;
    h[name(sizeof(From) > 4 ? "rn.f32" : "f32")] = between_floats<float, From>;
    h[name("f64")] = between_floats<double, From>;
  }
}

// Comparisons: ordered ones are false if an operand is NaN, unordered ones (the names that end in
// u) are true.
constexpr auto equal = [](auto a, auto b) { return a == b; };
constexpr auto unequal = [](auto a, auto b) { return a < b || a > b; };
constexpr auto less = [](auto a, auto b) { return a < b; };
constexpr auto less_or_equal = [](auto a, auto b) { return a <= b; };
constexpr auto greater = [](auto a, auto b) { return a > b; };
constexpr auto greater_or_equal = [](auto a, auto b) { return a >= b; };
constexpr auto both_numbers = [](auto a, auto b) { return a == a && b == b; };
template <auto F>
constexpr auto unless = [](auto a, auto b) { return !F(a, b); };

template <class T>
struct Compared {
  static T of(T x) { return x; }
};
template <int Fraction>
struct Compared<Short<Fraction>> {
  static double of(Short<Fraction> x) { return x.value(); }
};

// Operands: p, a, b[, c], or p, q, a, b[, c] with a second destination (`count` is 2). `mode` is 0
// or the operation that combines the result with c: 1 and, 2 or, 3 xor.
void combine(Thread& t, I i, bool result) {
  const auto with = [&](bool r) {
    const bool c = i.mode != 0 && t.predicate(i.slot[i.count + 2]);
    return i.mode == 0 ? r : i.mode == 1 ? r && c : i.mode == 2 ? r || c : r != c;
  };
  const bool first = with(result), second = with(!result);
  t.slots[i.slot[0]] = first;
  if (i.count == 2) t.slots[i.slot[1]] = second;
}

template <class T, auto F>
void compare(Thread& t, I i) {
  const auto* from = i.slot + i.count;
  combine(t, i, F(Compared<T>::of(t.get<T>(from[0])), Compared<T>::of(t.get<T>(from[1]))));
}

template <class T, auto F>
void add_comparison(Handlers& h, const std::string& name, const std::string& type) {
  h["setp." + name + type] = compare<T, F>;
}
template <class T>
void add_equality(Handlers& h, const std::string& type) {
  add_comparison<T, equal>(h, "eq", type);
  add_comparison<T, unequal>(h, "ne", type);
}
template <class T>
void add_ordered(Handlers& h, const std::string& type) {
  add_equality<T>(h, type);
  add_comparison<T, less>(h, "lt", type);
  add_comparison<T, less_or_equal>(h, "le", type);
  add_comparison<T, greater>(h, "gt", type);
  add_comparison<T, greater_or_equal>(h, "ge", type);
}
template <class T>
void add_unordered(Handlers& h, const std::string& type) {
  add_ordered<T>(h, type);
  add_comparison<T, unless<unequal>>(h, "equ", type);
  add_comparison<T, unless<equal>>(h, "neu", type);
  add_comparison<T, unless<greater_or_equal>>(h, "ltu", type);
  add_comparison<T, unless<greater>>(h, "leu", type);
  add_comparison<T, unless<less_or_equal>>(h, "gtu", type);
  add_comparison<T, unless<less>>(h, "geu", type);
  add_comparison<T, both_numbers>(h, "num", type);
  add_comparison<T, unless<both_numbers>>(h, "nan", type);
}

}  // namespace

void add_conversions(Handlers& h) {
  add_from<std::int8_t>(h, "s8");
  add_from<std::uint8_t>(h, "u8");
  add_from<std::int16_t>(h, "s16");
  add_from<std::uint16_t>(h, "u16");
  add_from<std::int32_t>(h, "s32");
  add_from<std::uint32_t>(h, "u32");
  add_from<std::int64_t>(h, "s64");
  add_from<std::uint64_t>(h, "u64");
  add_from<Half>(h, "f16");
  add_from<BFloat>(h, "bf16");
  add_from<float>(h, "f32");
  add_from<double>(h, "f64");
  h["cvt.sat.f32.f32"] = saturate;
}

void add_comparisons(Handlers& h) {
  add_ordered<std::int16_t>(h, ".s16");
  add_ordered<std::uint16_t>(h, ".u16");
  add_ordered<std::int32_t>(h, ".s32");
  add_ordered<std::uint32_t>(h, ".u32");
  add_ordered<std::int64_t>(h, ".s64");
  add_ordered<std::uint64_t>(h, ".u64");
  add_equality<std::uint16_t>(h, ".b16");
  add_equality<std::uint32_t>(h, ".b32");
  add_equality<std::uint64_t>(h, ".b64");
  add_unordered<Half>(h, ".f16");
  add_unordered<BFloat>(h, ".bf16");
  add_unordered<float>(h, ".f32");
  add_unordered<double>(h, ".f64");
}

}  // namespace ptx
