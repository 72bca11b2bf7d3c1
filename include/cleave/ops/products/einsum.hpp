// Products of arrays in Einstein notation: one letter per dimension; letters missing in the result
// are summed over. Lowered to matrix products.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <cleave/kernels/contract.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave {

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

/// The einsums that compute the gradients of a product of two arrays: from the gradient of the
/// result and the other array.
template <class Text>
class EinsumGradients {
  struct OfLeft {
    static constexpr RuleText text =
        factors_text(Text::parts.result, Text::parts.operand[1], Text::parts.operand[0]);
  };
  struct OfRight {
    static constexpr RuleText text =
        factors_text(Text::parts.operand[0], Text::parts.result, Text::parts.operand[1]);
  };

 public:
  using Left = decltype(einsum_of<OfLeft>());
  using Right = decltype(einsum_of<OfRight>());
};

/// The letters of "ij,jk->ik" in the order of the result, then those that are summed over.
constexpr kernels::Contraction contraction_of(std::string_view text) {
  Rule rule;
  read_factors(rule, text);
  kernels::Contraction letters;
  const auto add = [&](int f) {
    letters.index[std::size_t(letters.count++)] = {std::int8_t(rule.operand[0].dim_of(f)),
                                                   std::int8_t(rule.operand[1].dim_of(f)),
                                                   std::int8_t(rule.result[0].dim_of(f))};
  };
  for (int d = 0; d < rule.result[0].dims; ++d) add(rule.result[0].factor[std::size_t(d)]);
  for (int f = 0; f < rule.factors; ++f)
    if (rule.result[0].dim_of(f) < 0) add(f);
  return letters;
}

}  // namespace detail

namespace ops {

/// A product of two arrays, in which each letter occurs in at least two of x, w and y.
///
///     // y[S0,R,R] = contract(x[S0,R,R], w[S0,R,R])    aij,ajk->aik    a batch
///     // y[P]      = contract(x[S2], w[S1])            the same, summed over shards of j
///
/// @tparam Repeats  whether extents of 1 broadcast along the letters that all three have
template <class Text, bool Repeats = false>
struct Contract {
  static constexpr const char* name = "einsum";
  static constexpr const char* factors = Text::chars;
  static constexpr const char* partials = "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg";
  static constexpr bool broadcasts = Repeats;

  static constexpr kernels::Contraction letters = cleave::detail::contraction_of(Text::text);

  static void kernel(const auto& on, const Task&, const auto& y, const auto& x, const auto& w) {
    contract(on, letters, y, x, w);
  }
  // the gradient of each operand is the product of g and the other operand
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& w) {
    return call_op(Contract<typename Gradients::Left, Repeats>{}, g, conj(w));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& x, const auto&) {
    return call_op(Contract<typename Gradients::Right, Repeats>{}, conj(x), g);
  }

 private:
  using Gradients = cleave::detail::EinsumGradients<Text>;
};

}  // namespace ops

namespace detail {

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

/// One operand: a sum, then a permutation to the order of the result.
template <class Text>
struct EinsumOfOne {
  static constexpr std::string_view letters = Text::parts.operand[0];
  static constexpr unsigned mask = letters_alone(letters, "", Text::parts.result);
  static constexpr RuleText kept = letters_without(letters, mask);

  template <class X, std::size_t... D>
  static constexpr auto call(const X& x, std::index_sequence<D...>) {
    if constexpr (std::string_view(kept) == std::string_view(Text::parts.result))
      return summed_over<mask>(x);
    else
      return call_op(
          ops::Permute<int(find(kept, std::string_view(Text::parts.result).substr(D, 1)))...>{},
          summed_over<mask>(x));
  }
};

/// Two operands: letters that occur in one operand only are summed over first.
template <class Text>
struct EinsumOfTwo {
  static constexpr std::string_view left = Text::parts.operand[0], right = Text::parts.operand[1];
  static constexpr unsigned left_mask = letters_alone(left, right, Text::parts.result);
  static constexpr unsigned right_mask = letters_alone(right, left, Text::parts.result);
  static constexpr RuleText text = factors_text(
      letters_without(left, left_mask), letters_without(right, right_mask), Text::parts.result);

  template <class... R, class X, class W>
  static constexpr auto call(const X& x, const W& w) {
    const auto a = summed_over<left_mask>(x);
    const auto b = summed_over<right_mask>(w);
    return call_op<R...>(ops::Contract<decltype(einsum_of<EinsumOfTwo>())>{}, a, b);
  }
};

/// More operands: the first two are multiplied, keeping the letters that are still needed.
template <class Text>
struct EinsumOfMore {
  static constexpr RuleText joined = [] {
    RuleText letters;
    for (int i = 0; i < 2; ++i)
      for (const char c : std::string_view(Text::parts.operand[std::size_t(i)]))
        if (!EinsumText::has(letters, c) &&
            (EinsumText::has(Text::parts.result, c) || Text::parts.somewhere(c, 2)))
          letters += c;
    return letters;
  }();
  struct First {
    static constexpr RuleText text =
        factors_text(Text::parts.operand[0], Text::parts.operand[1], joined);
  };
  static constexpr RuleText text = [] {
    RuleText rest = joined;
    for (int i = 2; i < Text::parts.operands; ++i) {
      rest += ',';
      rest += Text::parts.operand[std::size_t(i)];
    }
    rest += "->";
    rest += Text::parts.result;
    return rest;
  }();
};

template <class... X, std::size_t... I>
constexpr bool dims_fit(const EinsumText& parts, std::index_sequence<I...>) {
  return ((parts.operand[I].size == std::size_t(X::dims)) && ...);
}

/// Checks the types of a call.
template <class Text, class X, class... More>
constexpr void verify_einsum() {
  static_assert(Text::parts.operands == int(1 + sizeof...(More)),
                "cleave: the number of operands differs from that in the text of the einsum");
  static_assert(
      dims_fit<X, More...>(Text::parts, std::index_sequence_for<X, More...>{}),
      "cleave: the text of this einsum must have one letter per dimension of its operands");
  static_assert((std::is_same_v<typename X::value_type, typename More::value_type> && ...),
                "cleave: the operands of einsum have different element types; cast one of them");
}

}  // namespace detail

/// Evaluates an Einstein summation, which has one letter per dimension:
///
///     einsum("bik,bkj->bij"_ein, x, w)     // products of matrices
///     einsum("ij->ji"_ein, x)              // a transpose
///     einsum("ij,j->"_ein, x, y)           // all products, summed
///
/// Letters missing in the result are summed over. Any dimension may be sharded; if a summed one is,
/// the result is Partial<Sum>. Three or more arrays are multiplied from left to right.
///
/// @return  an array with the dimensions after the arrow, in that order
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @cost    matrix products; an operand is copied if its dimensions do not merge into rows and
///          columns
/// @throws Error if the extents of one letter differ
template <class... R, char... C, AnyTensor X, AnyTensor... More>
  requires(!detail::asks_exact<R...>)
constexpr auto einsum(Einsum<C...>, const X& x, const More&... more) {
  using Text = Einsum<C...>;
  detail::verify_einsum<Text, X, More...>();
  if constexpr (sizeof...(More) == 0) {
    static_assert(sizeof...(R) == 0, "cleave: an einsum of one operand takes no placements");
    return detail::EinsumOfOne<Text>::call(x, std::make_index_sequence<Text::parts.result.size>{});
  } else if constexpr (sizeof...(More) == 1) {
    return detail::EinsumOfTwo<Text>::template call<R...>(x, more...);
  } else {
    return [&]<class W, class... Rest>(const W& w, const Rest&... rest) {
      using Steps = detail::EinsumOfMore<Text>;
      const auto first = einsum(detail::einsum_of<typename Steps::First>(), x, w);
      return einsum<R...>(detail::einsum_of<Steps>(), first, rest...);
    }(more...);
  }
}
CLEAVE_USAGE(einsum, "einsum(\"ij,jk->ik\"_ein, x, w)")

inline namespace literals {

/// The text of an einsum: `"ij,jk->ik"_ein`.
template <detail::EinsumLiteral Text>
constexpr auto operator""_ein() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return Einsum<Text.chars[I]...>{};
  }(std::make_index_sequence<sizeof(Text.chars) - 1>{});
}

}  // namespace literals

}  // namespace cleave
