// The product of two arrays in Einstein notation, lowered to matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <cleave/kernels/contract.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/products/einsum_text.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave::inline v0 {

namespace detail {

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

}  // namespace cleave::inline v0
