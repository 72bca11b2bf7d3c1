// Integer arithmetic, logic and moves (sections 9.7.1, 9.7.2, 9.7.8, 9.7.9).
#include <algorithm>
#include <bit>
#include <type_traits>

#include "ptx_decode.hpp"

namespace ptx {
namespace {

using I = const Instruction&;
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, Int128, Uint128>,
    std::conditional_t<sizeof(T) == 4,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>>;

template <class T, class F>
void binary(Thread& t, I i) {
  t.set<T>(i.slot[0], T(F{}(t.get<T>(i.slot[1]), t.get<T>(i.slot[2]))));
}
template <class T, class F>
void unary(Thread& t, I i) {
  t.set<T>(i.slot[0], T(F{}(t.get<T>(i.slot[1]))));
}

// Sums wrap: they are those of unsigned integers.
template <class T>
using Bits = std::make_unsigned_t<T>;

struct Add {
  template <class T>
  auto operator()(T a, T b) {
    return Bits<T>(Bits<T>(a) + Bits<T>(b));
  }
};
struct Sub {
  template <class T>
  auto operator()(T a, T b) {
    return Bits<T>(Bits<T>(a) - Bits<T>(b));
  }
};
struct Mul {
  template <class T>
  auto operator()(T a, T b) {
    return Wide<Bits<T>>(Bits<T>(a)) * Bits<T>(b);
  }
};
struct MulHigh {
  template <class T>
  auto operator()(T a, T b) {
    return (Wide<T>(a) * b) >> (8 * sizeof(T));
  }
};
struct Min {
  template <class T>
  auto operator()(T a, T b) {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  auto operator()(T a, T b) {
    return std::max(a, b);
  }
};
struct And {
  template <class T>
  auto operator()(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  auto operator()(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  auto operator()(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  auto operator()(T a) {
    return ~a;
  }
};
struct Neg {
  template <class T>
  auto operator()(T a) {
    return Bits<T>(0) - Bits<T>(a);
  }
};
struct Abs {
  template <class T>
  auto operator()(T a) {
    return a < 0 ? Bits<T>(0) - Bits<T>(a) : Bits<T>(a);
  }
};
// The result of a division by zero is unspecified (section 9.7.1.8).
struct Div {
  template <class T>
  T operator()(T a, T b) {
    return b == 0                              ? T(-1)
           : std::is_signed_v<T> && b == T(-1) ? T(Bits<T>(0) - Bits<T>(a))
                                               : T(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) {
    return b == 0 ? a : std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
struct Clz {
  template <class T>
  auto operator()(T a) {
    return std::countl_zero(Bits<T>(a));
  }
};
struct Popc {
  template <class T>
  auto operator()(T a) {
    return std::popcount(Bits<T>(a));
  }
};
struct Reverse {
  template <class T>
  T operator()(T a) {
    T r = 0;
    for (unsigned k = 0; k < 8 * sizeof(T); ++k) r = T(r << 1 | (a >> k & 1));
    return r;
  }
};

template <class T, class F>
void to_count(Thread& t, I i) {
  t.set<std::uint32_t>(i.slot[0], std::uint32_t(F{}(t.get<T>(i.slot[1]))));
}

template <class T>
void mul_wide(Thread& t, I i) {
  t.set<Wide<T>>(i.slot[0], Wide<T>(Wide<T>(t.get<T>(i.slot[1])) * t.get<T>(i.slot[2])));
}
template <class T>
void mad_wide(Thread& t, I i) {
  const Bits<Wide<T>> product = Bits<Wide<T>>(Wide<T>(t.get<T>(i.slot[1])) * t.get<T>(i.slot[2]));
  t.set<Bits<Wide<T>>>(i.slot[0], product + t.get<Bits<Wide<T>>>(i.slot[3]));
}
template <class T, class F>
void mad(Thread& t, I i) {
  const T product = T(F{}(t.get<T>(i.slot[1]), t.get<T>(i.slot[2])));
  t.set<T>(i.slot[0], T(Bits<T>(product) + Bits<T>(t.get<T>(i.slot[3]))));
}

// Shifts by more than the width give 0, or the sign (section 9.7.8).
template <class T>
void shl(Thread& t, I i) {
  const auto by = t.get<std::uint32_t>(i.slot[2]);
  t.set<T>(i.slot[0], by >= 8 * sizeof(T) ? T(0) : T(Wide<T>(t.get<T>(i.slot[1])) << by));
}
template <class T>
void shr(Thread& t, I i) {
  const auto by = std::min<std::uint32_t>(t.get<std::uint32_t>(i.slot[2]), 8 * sizeof(T));
  const T a = t.get<T>(i.slot[1]);
  t.set<T>(i.slot[0], by < 8 * sizeof(T) ? T(a >> by) : a < T(0) ? T(-1) : T(0));
}
template <bool Left, bool Wrap>
void shift_pair(Thread& t, I i) {
  const std::uint64_t pair =
      std::uint64_t(t.get<std::uint32_t>(i.slot[2])) << 32 | t.get<std::uint32_t>(i.slot[1]);
  const std::uint32_t asked = t.get<std::uint32_t>(i.slot[3]);
  const std::uint32_t by = Wrap ? asked & 31 : std::min(asked, 32u);
  t.set<std::uint32_t>(i.slot[0], std::uint32_t(Left ? pair << by >> 32 : pair >> by));
}

// With a carry, in 32 or 64 bits (section 9.7.2).
template <class T, bool In, bool Out>
void add_carry(Thread& t, I i) {
  const Wide<T> sum = Wide<T>(t.get<T>(i.slot[1])) + t.get<T>(i.slot[2]) + (In && t.carry ? 1 : 0);
  if (Out) t.carry = (sum >> (8 * sizeof(T))) != 0;
  t.set<T>(i.slot[0], T(sum));
}
template <class T, bool In, bool Out>
void sub_carry(Thread& t, I i) {
  const Wide<T> difference =
      Wide<T>(t.get<T>(i.slot[1])) - t.get<T>(i.slot[2]) - (In && t.carry ? 1 : 0);
  if (Out) t.carry = (difference >> (8 * sizeof(T)) & 1) != 0;
  t.set<T>(i.slot[0], T(difference));
}

template <class T>
void bit_field_insert(Thread& t, I i) {
  const T a = t.get<T>(i.slot[1]), b = t.get<T>(i.slot[2]);
  const auto at = t.get<std::uint32_t>(i.slot[3]) & 0xff,
             count = t.get<std::uint32_t>(i.slot[4]) & 0xff;
  T mask = 0;
  for (std::uint32_t k = at; k < at + count && k < 8 * sizeof(T); ++k) mask |= T(1) << k;
  t.set<T>(i.slot[0], at < 8 * sizeof(T) ? T((b & ~mask) | (a << at & mask)) : b);
}
template <class T>
void bit_field_extract(Thread& t, I i) {
  constexpr std::uint32_t width = 8 * sizeof(T);
  const T a = t.get<T>(i.slot[1]);
  const auto at = t.get<std::uint32_t>(i.slot[2]) & 0xff,
             count = t.get<std::uint32_t>(i.slot[3]) & 0xff;
  const bool sign = std::is_signed_v<T> && count != 0 &&
                    (Bits<T>(a) >> std::min(at + count - 1, width - 1) & 1) != 0;
  Bits<T> result = 0;
  for (std::uint32_t k = 0; k < width; ++k) {
    const bool bit = k < count && at + k < width ? (Bits<T>(a) >> (at + k) & 1) != 0 : sign;
    result |= Bits<T>(bit) << k;
  }
  t.set<T>(i.slot[0], T(result));
}

// The bytes of {b, a} that four digits of c select; the top bit of a digit repeats the sign.
void permute(Thread& t, I i) {
  const std::uint64_t bytes =
      std::uint64_t(t.get<std::uint32_t>(i.slot[2])) << 32 | t.get<std::uint32_t>(i.slot[1]);
  const auto selector = t.get<std::uint32_t>(i.slot[3]);
  std::uint32_t result = 0;
  for (int k = 0; k < 4; ++k) {
    const std::uint32_t digit = selector >> (4 * k) & 0xf;
    std::uint32_t byte = std::uint32_t(bytes >> (8 * (digit & 7)) & 0xff);
    if ((digit & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * k);
  }
  t.set(i.slot[0], result);
}

void logic3(Thread& t, I i) {
  const auto a = t.get<std::uint32_t>(i.slot[1]), b = t.get<std::uint32_t>(i.slot[2]),
             c = t.get<std::uint32_t>(i.slot[3]), table = t.get<std::uint32_t>(i.slot[4]);
  std::uint32_t result = 0;
  for (int k = 0; k < 32; ++k)
    result |= (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k;
  t.set(i.slot[0], result);
}

void move(Thread& t, I i) { t.slots[i.slot[0]] = t.slots[i.slot[1]]; }
void select(Thread& t, I i) {
  t.slots[i.slot[0]] = t.slots[i.slot[t.predicate(i.slot[3]) ? 1 : 2]];
}
template <class F>
void of_predicates(Thread& t, I i) {
  t.slots[i.slot[0]] = std::uint64_t(F{}(t.predicate(i.slot[1]), t.predicate(i.slot[2]))) & 1;
}
void not_predicate(Thread& t, I i) { t.slots[i.slot[0]] = t.predicate(i.slot[1]) ? 0 : 1; }

template <class... T>
struct List {};
using Words = List<std::uint16_t, std::uint32_t, std::uint64_t>;
using Numbers =
    List<std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;

template <class T>
std::string suffix(char kind) {
  return std::string(".") + kind + std::to_string(8 * sizeof(T));
}
template <class T>
std::string suffix() {
  return suffix<T>(std::is_signed_v<T> ? 's' : 'u');
}

template <class... T>
void add_words(Handlers& h, List<T...>) {
  ((h["and" + suffix<T>('b')] = binary<T, And>, h["or" + suffix<T>('b')] = binary<T, Or>,
    h["xor" + suffix<T>('b')] = binary<T, Xor>, h["not" + suffix<T>('b')] = unary<T, Not>,
    h["shl" + suffix<T>('b')] = shl<T>, h["shr" + suffix<T>('b')] = shr<T>),
   ...);
}

template <class T>
void add_number(Handlers& h) {
  const std::string s = suffix<T>();
  h["add" + s] = binary<T, Add>;
  h["sub" + s] = binary<T, Sub>;
  h["mul.lo" + s] = binary<T, Mul>;
  h["mul.hi" + s] = binary<T, MulHigh>;
  h["mad.lo" + s] = mad<T, Mul>;
  h["mad.hi" + s] = mad<T, MulHigh>;
  h["div" + s] = binary<T, Div>;
  h["rem" + s] = binary<T, Rem>;
  h["min" + s] = binary<T, Min>;
  h["max" + s] = binary<T, Max>;
  h["shr" + s] = shr<T>;
  if constexpr (std::is_signed_v<T>) {
    h["neg" + s] = unary<T, Neg>;
    h["abs" + s] = unary<T, Abs>;
  }
  if constexpr (sizeof(T) < 8) {
    h["mul.wide" + s] = mul_wide<T>;
    h["mad.wide" + s] = mad_wide<T>;
  }
  if constexpr (sizeof(T) > 2) {
    h["bfe" + s] = bit_field_extract<T>;
    using U = Bits<T>;
    h["add.cc" + s] = add_carry<U, false, true>;
    h["addc" + s] = add_carry<U, true, false>;
    h["addc.cc" + s] = add_carry<U, true, true>;
    h["sub.cc" + s] = sub_carry<U, false, true>;
    h["subc" + s] = sub_carry<U, true, false>;
    h["subc.cc" + s] = sub_carry<U, true, true>;
  }
}
template <class... T>
void add_numbers(Handlers& h, List<T...>) {
  (add_number<T>(h), ...);
}

template <class T>
void add_bits(Handlers& h) {
  h["clz" + suffix<T>('b')] = to_count<T, Clz>;
  h["popc" + suffix<T>('b')] = to_count<T, Popc>;
  h["brev" + suffix<T>('b')] = unary<T, Reverse>;
  h["bfi" + suffix<T>('b')] = bit_field_insert<T>;
}

}  // namespace

void add_integers(Handlers& h) {
  add_words(h, Words{});
  add_numbers(h, Numbers{});
  add_bits<std::uint32_t>(h);
  add_bits<std::uint64_t>(h);
  h["shf.l.wrap.b32"] = shift_pair<true, true>;
  h["shf.l.clamp.b32"] = shift_pair<true, false>;
  h["shf.r.wrap.b32"] = shift_pair<false, true>;
  h["shf.r.clamp.b32"] = shift_pair<false, false>;
  h["prmt.b32"] = permute;
  h["lop3.b32"] = logic3;
  for (const char* type :
       {"b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"}) {
    h[std::string("mov.") + type] = move;
    h[std::string("selp.") + type] = select;
  }
  h["mov.pred"] = move;
  h["and.pred"] = of_predicates<And>;
  h["or.pred"] = of_predicates<Or>;
  h["xor.pred"] = of_predicates<Xor>;
  h["not.pred"] = not_predicate;
}

}  // namespace ptx
