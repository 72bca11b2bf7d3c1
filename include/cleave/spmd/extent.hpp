// Extents that are known when a program runs: symbols, and affine expressions of them.
//
//     const auto batch = extent("batch").divisible_by(4);
//     const Graph graph = trace(step, arg<float>("x", {batch, 64}), arg<float>("y", {2 * batch}));
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::inline v0::spmd {

/// The most symbols of a program: a Shape holds their extents.
inline constexpr int max_symbols = max_dims;

/// The name of an extent, and the conditions that it must meet.
struct Symbol {
  static constexpr index_t unbounded = std::numeric_limits<index_t>::max();

  const char* name = "";
  index_t at_least = 0;
  index_t at_most = unbounded;
  index_t multiple_of = 1;

  constexpr bool allows(index_t extent) const {
    return extent >= at_least && extent <= at_most && extent % multiple_of == 0;
  }
};

/// The symbols of a program.
struct Symbols {
  std::array<Symbol, std::size_t(max_symbols)> of{};
  int count = 0;

  /// The number of the symbol with a name, or -1.
  constexpr int find(std::string_view name) const {
    for (int i = 0; i < count; ++i)
      if (name == of[std::size_t(i)].name) return i;
    return -1;
  }

  /// Adds a symbol, or its conditions to those of the symbol with its name.
  /// @return its number
  /// @throws Error if there are too many symbols, or no extent meets all conditions
  constexpr int add(const Symbol& symbol) {
    int i = find(symbol.name);
    if (i < 0) {
      if (count == max_symbols) throw_too_many(symbol.name);
      i = count++;
      of[std::size_t(i)].name = symbol.name;
    }
    Symbol& known = of[std::size_t(i)];
    if (symbol.at_least > known.at_least) known.at_least = symbol.at_least;
    if (symbol.at_most < known.at_most) known.at_most = symbol.at_most;
    known.multiple_of = std::lcm(known.multiple_of, symbol.multiple_of);
    if (known.at_most / known.multiple_of * known.multiple_of < known.at_least)
      throw Error("spmd::extent", std::string("no extent meets all conditions on ") + known.name);
    return i;
  }

  /// Extents for which a function is traced while those of a run are unknown: they meet the
  /// conditions, are divisible by small numbers, and differ, so that only what must be equal is.
  constexpr Shape samples() const {
    Shape result = Shape::filled(count, 0);
    for (int i = 0; i < count; ++i) {
      const Symbol& symbol = of[std::size_t(i)];
      const index_t step = std::lcm(index_t(240), symbol.multiple_of);
      unsigned hash = 0;  // of the name: the sample of a symbol is the same in every program
      for (const char letter : std::string_view(symbol.name))
        hash = (hash * 33 + static_cast<unsigned char>(letter)) % 1009;
      index_t extent = step * index_t(7 + hash % 31);
      if (extent < symbol.at_least) extent = (symbol.at_least + step - 1) / step * step;
      if (extent > symbol.at_most)
        extent = symbol.at_most / symbol.multiple_of * symbol.multiple_of;
      const auto other = [&](index_t by) {
        index_t candidate = extent;
        while (is_in(result, i, candidate) && symbol.allows(candidate + by)) candidate += by;
        return candidate;
      };
      result[i] = other(step);
      if (is_in(result, i, result[i])) result[i] = other(-symbol.multiple_of);
    }
    return result;
  }

 private:
  /// Whether one of the first `count` values equals an extent.
  static constexpr bool is_in(const Shape& values, int count, index_t extent) {
    for (int k = 0; k < count; ++k)
      if (values[k] == extent) return true;
    return false;
  }

  [[noreturn]] static void throw_too_many(const char* name) {
    throw Error("spmd::extent", "a program has at most " + std::to_string(max_symbols) +
                                    " symbols; " + name + " is one more");
  }
};

/// An affine expression of symbols, by their numbers.
struct Affine {
  index_t constant = 0;
  std::array<index_t, std::size_t(max_symbols)> factor{};

  constexpr index_t at(const Shape& extents) const {
    index_t value = constant;
    for (int i = 0; i < extents.dims; ++i) value += factor[std::size_t(i)] * extents[i];
    return value;
  }
};

/// An extent of an argument: a number, a symbol, or an affine expression of symbols.
class Extent {
 public:
  constexpr Extent(index_t constant) : value_{constant, {}} {}
  constexpr explicit Extent(const Symbol& symbol) {
    value_.factor[std::size_t(symbols_.add(symbol))] = 1;
  }

  constexpr const Symbols& symbols() const { return symbols_; }
  constexpr const Affine& value() const { return value_; }

  /// The same symbol, on the condition that it is at least n.
  /// @throws Error if this is not a symbol, or no extent meets all conditions
  constexpr Extent at_least(index_t n) const { return with({"", n, Symbol::unbounded, 1}); }
  constexpr Extent at_most(index_t n) const { return with({"", 0, n, 1}); }
  /// @param n  positive
  constexpr Extent divisible_by(index_t n) const {
    if (n < 1) throw Error("spmd::extent", "divisible_by(" + std::to_string(n) + ")");
    return with({"", 0, Symbol::unbounded, n});
  }

  friend constexpr Extent operator+(Extent a, const Extent& b) { return a.add(b, 1), a; }
  friend constexpr Extent operator-(Extent a, const Extent& b) { return a.add(b, -1), a; }
  friend constexpr Extent operator*(index_t n, const Extent& a) {
    Extent result(0);
    return result.add(a, n), result;
  }
  friend constexpr Extent operator*(const Extent& a, index_t n) { return n * a; }

 private:
  constexpr Extent with(Symbol condition) const {
    if (symbols_.count != 1 || value_.constant != 0 || value_.factor[0] != 1)
      throw Error("spmd::extent", "conditions are on symbols: extent(name).at_least(n)");
    condition.name = symbols_.of[0].name;
    Extent result = *this;
    result.symbols_.add(condition);
    return result;
  }
  constexpr void add(const Extent& other, index_t times) {
    value_.constant += times * other.value_.constant;
    for (int i = 0; i < other.symbols_.count; ++i)
      value_.factor[std::size_t(symbols_.add(other.symbols_.of[std::size_t(i)]))] +=
          times * other.value_.factor[std::size_t(i)];
  }

  Symbols symbols_{};
  Affine value_{};
};

/// An extent that each run of a program may choose: the same name, the same extent.
///
/// @param name  must live as long as the program
constexpr Extent extent(const char* name) { return Extent(Symbol{name}); }

/// An extent of an input of a graph or program that contains symbols.
struct SymbolicExtent {
  int input = 0;
  int dim = 0;
  Affine extent{};
};

/// An extent that determines a symbol, if others are known.
struct Determined {
  int place = -1;  ///< in the list of extents; -1: none does
  int symbol = -1;
};

/// The first of the extents that contains exactly one unknown symbol.
/// @param known  bit i: symbol i is known
constexpr Determined next_determined(const auto& extents, int symbols, unsigned known) {
  for (std::size_t e = 0; e < extents.size(); ++e) {
    int unknown = 0;
    Determined found{int(e), -1};
    for (int i = 0; i < symbols; ++i)
      if (extents[e].extent.factor[std::size_t(i)] != 0 && (known >> i & 1u) == 0)
        ++unknown, found.symbol = i;
    if (unknown == 1) return found;
  }
  return {};
}

namespace detail {

/// @throws Error if extents of inputs do not determine every symbol
constexpr void require_determined(const char* operation, const Symbols& symbols,
                                  const auto& extents) {
  unsigned known = 0;
  for (;;) {
    const Determined next = next_determined(extents, symbols.count, known);
    if (next.place < 0) break;
    known |= 1u << next.symbol;
  }
  for (int i = 0; i < symbols.count; ++i)
    if ((known >> i & 1u) == 0)
      throw Error(operation, std::string("the extents of the inputs do not determine ") +
                                 symbols.of[std::size_t(i)].name);
}

/// Appends " - 2*batch", or "-2*batch" at the beginning. @param what  empty: the number alone
inline void append_term(std::string& text, index_t factor, const std::string& what) {
  const index_t size = factor < 0 ? -factor : factor;
  text += text.empty() ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ";
  if (what.empty()) text += std::to_string(size);
  else text += (size == 1 ? "" : std::to_string(size) + "*") + what;
}

}  // namespace detail

/// "2*batch + 1"
inline std::string to_string(const Affine& value, const Symbols& symbols) {
  std::string text;
  for (int i = 0; i < symbols.count; ++i)
    if (const index_t factor = value.factor[std::size_t(i)]; factor != 0)
      detail::append_term(text, factor, symbols.of[std::size_t(i)].name);
  if (value.constant != 0 || text.empty()) detail::append_term(text, value.constant, "");
  return text;
}

/// "at least 1, divisible by 4"; empty without conditions
inline std::string conditions_text(const Symbol& symbol) {
  std::string text;
  const auto append = [&](const std::string& what, index_t number) {
    text += (text.empty() ? "" : ", ") + what + " " + std::to_string(number);
  };
  if (symbol.at_least > 0) append("at least", symbol.at_least);
  if (symbol.at_most != Symbol::unbounded) append("at most", symbol.at_most);
  if (symbol.multiple_of > 1) append("divisible by", symbol.multiple_of);
  return text;
}

namespace detail {

/// An extent does not meet the conditions on its symbol.
[[noreturn]] inline void throw_refused(const char* operation, const Symbol& symbol, index_t extent,
                                       const ErrorContext& context = {}) {
  throw Error(operation,
              std::string(symbol.name) + " is " + std::to_string(extent) + ", but must be " +
                  (extent < 0 ? "at least 0" : conditions_text(symbol)),
              context);
}

}  // namespace detail

}  // namespace cleave::inline v0::spmd
