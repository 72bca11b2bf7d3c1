// Products of arrays in Einstein notation as types: "ij,jk->ik"_ein.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave::inline v0 {

namespace detail {

/// "ij,jk->ik", split into operands and result.
struct EinsumText {
  static constexpr int max_parts = 8;
  std::array<RuleText, std::size_t(max_parts)> operand{};
  RuleText result{};
  int operands = 0;
  bool is_wrong = false;

  constexpr explicit EinsumText(std::string_view text) {
    const std::size_t arrow = find(text, "->");
    is_wrong = arrow == text.npos;
    if (is_wrong) return;
    std::string_view left = text.substr(0, arrow);
    for (bool more = true; more && !is_wrong;) {
      more = find(left, ",") != left.npos;
      is_wrong = operands == max_parts;
      if (!is_wrong) read(take_until(left, ","), operand[std::size_t(operands++)]);
    }
    read(trimmed(text.substr(arrow + 2)), result);
    for (const char letter : std::string_view(result)) is_wrong = is_wrong || !somewhere(letter, 0);
  }

  static constexpr bool has(std::string_view text, char letter) {
    for (const char c : text)
      if (c == letter) return true;
    return false;
  }
  /// Whether an operand from `first` on has the letter.
  constexpr bool somewhere(char letter, int first) const {
    for (int i = first; i < operands; ++i)
      if (has(operand[std::size_t(i)], letter)) return true;
    return false;
  }

 private:
  constexpr void read(std::string_view letters, RuleText& part) {
    for (const char c : letters) {
      is_wrong =
          is_wrong || c < 'a' || c > 'z' || has(part, c) || part.size == std::size_t(max_dims);
      if (is_wrong) return;
      part += c;
    }
  }
};

}  // namespace detail

/// The text of an einsum as a type: `"ij,jk->ik"_ein`.
template <char... C>
struct Einsum {
  static constexpr char chars[]{C..., '\0'};
  static constexpr std::string_view text{chars, sizeof...(C)};
  static constexpr detail::EinsumText parts{text};
  static_assert(
      !parts.is_wrong,
      "cleave: an einsum reads like \"ij,jk->ik\": a lower-case letter per dimension, "
      "no letter twice in one operand or in the result, every letter of the result in some "
      "operand");
};

namespace detail {

/// The characters of a literal, as a template argument.
template <std::size_t N>
struct EinsumLiteral {
  char chars[N]{};
  consteval EinsumLiteral(const char (&text)[N]) {  // NOLINT(*explicit*)
    for (std::size_t i = 0; i < N; ++i) chars[i] = text[i];
  }
};

/// The Einsum of `Maker::text`, a RuleText.
template <class Maker, std::size_t... I>
constexpr auto einsum_of(std::index_sequence<I...>) {
  return Einsum<Maker::text.text[I]...>{};
}
template <class Maker>
constexpr auto einsum_of() {
  return einsum_of<Maker>(std::make_index_sequence<Maker::text.size>{});
}

/// The dimensions of `letters`, as a mask, that are in neither `other` nor `result`.
constexpr unsigned letters_alone(std::string_view letters, std::string_view other,
                                 std::string_view result) {
  unsigned mask = 0;
  for (std::size_t d = 0; d < letters.size(); ++d)
    if (!EinsumText::has(other, letters[d]) && !EinsumText::has(result, letters[d]))
      mask |= 1u << d;
  return mask;
}

/// The letters without those of a mask of dimensions.
constexpr RuleText letters_without(std::string_view letters, unsigned mask) {
  RuleText text;
  for (std::size_t d = 0; d < letters.size(); ++d)
    if (!(mask >> d & 1u)) text += letters[d];
  return text;
}

}  // namespace detail

inline namespace literals {

/// The text of an einsum: `"ij,jk->ik"_ein`.
template <detail::EinsumLiteral Text>
constexpr auto operator""_ein() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return Einsum<Text.chars[I]...>{};
  }(std::make_index_sequence<sizeof(Text.chars) - 1>{});
}

}  // namespace literals

}  // namespace cleave::inline v0
