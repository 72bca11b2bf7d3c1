// Integer arithmetic, logic and moves (sections 9.7.1, 9.7.8, 9.7.9).
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

template <class T, auto F>
void binary(Thread& t, I i) {
  t.set<T>(i.slot[0], T(F(t.get<T>(i.slot[1]), t.get<T>(i.slot[2]))));
}
template <class T, auto F>
void unary(Thread& t, I i) {
  t.set<T>(i.slot[0], T(F(t.get<T>(i.slot[1]))));
}

// Sums wrap: they are those of unsigned integers.
template <class T>
using Bits = std::make_unsigned_t<T>;

constexpr auto sum = []<class T>(T a, T b) { return Bits<T>(Bits<T>(a) + Bits<T>(b)); };
constexpr auto difference = []<class T>(T a, T b) { return Bits<T>(Bits<T>(a) - Bits<T>(b)); };
constexpr auto product = []<class T>(T a, T b) { return Wide<Bits<T>>(Bits<T>(a)) * Bits<T>(b); };
constexpr auto upper_product = []<class T>(T a, T b) {
  return (Wide<T>(a) * b) >> (8 * sizeof(T));
};
constexpr auto least = [](auto a, auto b) { return std::min(a, b); };
constexpr auto most = [](auto a, auto b) { return std::max(a, b); };
constexpr auto conjunction = [](auto a, auto b) { return a & b; };
constexpr auto disjunction = [](auto a, auto b) { return a | b; };
constexpr auto difference_of_bits = [](auto a, auto b) { return a ^ b; };
constexpr auto complement = [](auto a) { return ~a; };
constexpr auto negative = []<class T>(T a) { return Bits<T>(0) - Bits<T>(a); };
constexpr auto absolute = []<class T>(T a) { return a < 0 ? Bits<T>(0) - Bits<T>(a) : Bits<T>(a); };
// The result of a division by zero is unspecified (section 9.7.1.8).
constexpr auto divided = []<class T>(T a, T b) {
  return b == 0 ? T(-1) : std::is_signed_v<T> && b == T(-1) ? T(Bits<T>(0) - Bits<T>(a)) : T(a / b);
};
constexpr auto remainder = []<class T>(T a, T b) {
  return b == 0 ? a : std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
};
constexpr auto leading_zeros = []<class T>(T a) { return std::countl_zero(Bits<T>(a)); };
constexpr auto ones = []<class T>(T a) { return std::popcount(Bits<T>(a)); };

template <class T, auto F>
void to_count(Thread& t, I i) {
  t.set<std::uint32_t>(i.slot[0], std::uint32_t(F(t.get<T>(i.slot[1]))));
}

template <class T>
void mul_wide(Thread& t, I i) {
  t.set<Wide<T>>(i.slot[0], Wide<T>(Wide<T>(t.get<T>(i.slot[1])) * t.get<T>(i.slot[2])));
}
template <class T>
void mad_wide(Thread& t, I i) {
  const Bits<Wide<T>> wide = Bits<Wide<T>>(Wide<T>(t.get<T>(i.slot[1])) * t.get<T>(i.slot[2]));
  t.set<Bits<Wide<T>>>(i.slot[0], wide + t.get<Bits<Wide<T>>>(i.slot[3]));
}
template <class T, auto F>
void mad(Thread& t, I i) {
  const T high_or_low = T(F(t.get<T>(i.slot[1]), t.get<T>(i.slot[2])));
  t.set<T>(i.slot[0], T(Bits<T>(high_or_low) + Bits<T>(t.get<T>(i.slot[3]))));
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
template <class T>
void bit_field_insert(Thread& t, I i) {
  const T a = t.get<T>(i.slot[1]), b = t.get<T>(i.slot[2]);
  const auto at = t.get<std::uint32_t>(i.slot[3]) & 0xff,
             count = t.get<std::uint32_t>(i.slot[4]) & 0xff;
  T mask = 0;
  for (std::uint32_t k = at; k < at + count && k < 8 * sizeof(T); ++k) mask |= T(1) << k;
  t.set<T>(i.slot[0], at < 8 * sizeof(T) ? T((b & ~mask) | (a << at & mask)) : b);
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

void move(Thread& t, I i) { t.slots[i.slot[0]] = t.slots[i.slot[1]]; }
void select(Thread& t, I i) {
  t.slots[i.slot[0]] = t.slots[i.slot[t.predicate(i.slot[3]) ? 1 : 2]];
}
template <auto F>
void of_predicates(Thread& t, I i) {
  t.slots[i.slot[0]] = std::uint64_t(F(t.predicate(i.slot[1]), t.predicate(i.slot[2]))) & 1;
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
  ((h["and" + suffix<T>('b')] = binary<T, conjunction>,
    h["or" + suffix<T>('b')] = binary<T, disjunction>,
    h["xor" + suffix<T>('b')] = binary<T, difference_of_bits>,
    h["not" + suffix<T>('b')] = unary<T, complement>, h["shl" + suffix<T>('b')] = shl<T>,
    h["shr" + suffix<T>('b')] = shr<T>),
   ...);
}

template <class T>
void add_number(Handlers& h) {
  const std::string s = suffix<T>();
  h["add" + s] = binary<T, sum>;
  h["sub" + s] = binary<T, difference>;
  h["mul.lo" + s] = binary<T, product>;
  h["mul.hi" + s] = binary<T, upper_product>;
  h["mad.lo" + s] = mad<T, product>;
  h["mad.hi" + s] = mad<T, upper_product>;
  h["div" + s] = binary<T, divided>;
  h["rem" + s] = binary<T, remainder>;
  h["min" + s] = binary<T, least>;
  h["max" + s] = binary<T, most>;
  h["shr" + s] = shr<T>;
  if constexpr (std::is_signed_v<T>) {
    h["neg" + s] = unary<T, negative>;
    h["abs" + s] = unary<T, absolute>;
  }
  if constexpr (sizeof(T) < 8) {
    h["mul.wide" + s] = mul_wide<T>;
    h["mad.wide" + s] = mad_wide<T>;
  }
}
template <class... T>
void add_numbers(Handlers& h, List<T...>) {
  (add_number<T>(h), ...);
}

template <class T>
void add_bits(Handlers& h) {
  h["clz" + suffix<T>('b')] = to_count<T, leading_zeros>;
  h["popc" + suffix<T>('b')] = to_count<T, ones>;
  h["bfi" + suffix<T>('b')] = bit_field_insert<T>;
}

}  // namespace

void add_integers(Handlers& h) {
  add_words(h, Words{});
  add_numbers(h, Numbers{});
  add_bits<std::uint32_t>(h);
  add_bits<std::uint64_t>(h);
  h["prmt.b32"] = permute;
  for (const char* type :
       {"b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"}) {
    h[std::string("mov.") + type] = move;
    h[std::string("selp.") + type] = select;
  }
  h["mov.pred"] = move;
  h["and.pred"] = of_predicates<conjunction>;
  h["or.pred"] = of_predicates<disjunction>;
  h["xor.pred"] = of_predicates<difference_of_bits>;
  h["not.pred"] = not_predicate;
}

}  // namespace ptx
