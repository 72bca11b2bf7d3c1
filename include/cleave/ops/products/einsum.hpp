// Products of arrays in Einstein notation: one letter per dimension; letters missing in the result
// are summed over.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/products/contract_all.hpp>
#include <cleave/ops/products/contract_pair.hpp>
#include <cleave/ops/products/contraction_plan.hpp>
#include <cleave/ops/products/einsum_text.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

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

/// More operands, likewise.
template <class Text>
struct EinsumOfAll {
  /// The dimensions of operand i, as a mask, that neither another operand nor the result has.
  static constexpr unsigned mask(int i) {
    RuleText others = Text::parts.result;
    for (int k = 0; k < Text::parts.operands; ++k)
      if (k != i)
        for (const char c : std::string_view(Text::parts.operand[std::size_t(k)]))
          if (!EinsumText::has(others, c)) others += c;
    return letters_alone(Text::parts.operand[std::size_t(i)], others, "");
  }
  static constexpr RuleText text = [] {
    RuleText letters;
    for (int i = 0; i < Text::parts.operands; ++i) {
      if (i > 0) letters += ',';
      letters += letters_without(Text::parts.operand[std::size_t(i)], mask(i));
    }
    letters += "->";
    letters += Text::parts.result;
    return letters;
  }();
  using Op = ops::ContractAll<decltype(einsum_of<EinsumOfAll>())>;

  template <class... R, std::size_t... I, class... X>
  static constexpr auto call(const fewest_bytes& limits, std::index_sequence<I...>, const X&... x) {
    return call_op<R...>(Op{{}, limits}, summed_over<mask(int(I))>(x)...);
  }
  template <class... R, std::size_t... I, class... X>
  static ContractionPlan explain(const fewest_bytes& limits, std::index_sequence<I...>,
                                 const X&... x) {
    return Op::template explain<typename Request<R...>::asked>(limits,
                                                               summed_over<mask(int(I))>(x)...);
  }
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
///     einsum("ab,bc,cd->ad"_ein, x, v, w)  // in the order that communicates least
///
/// Letters missing in the result are summed over. Any dimension may be sharded; if a summed one is,
/// the result is Partial<Sum>. The placements of two operands alone decide how their product is
/// computed. Three to eight operands are multiplied in pairs, in the order and with the placements
/// between by which a rank receives the fewest bytes. @see plan_contractions, explain
///
/// @return  an array with the dimensions after the arrow, in that order
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @cost    matrix products; an operand is copied if its dimensions do not merge into rows and
///          columns. Of three and more operands, the first call with some extents plans; gradients
///          multiply anew, each by its own plan, and no product of operands is kept for them
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
    return detail::EinsumOfAll<Text>::template call<R...>({}, std::index_sequence_for<X, More...>{},
                                                          x, more...);
  }
}

/// The same of two to eight operands, planned by bytes also if there are two, where no product
/// holds more than `limits.memory_limit` bytes on a rank, in panels where need be. Placements that
/// a program chooses at run time, and `explicit_communication`, leave nothing to plan; programs
/// multiply from left to right.
///
/// @throws Error also if no plan keeps to the limit
template <class... R, char... C, AnyTensor X, AnyTensor W, AnyTensor... More>
constexpr auto einsum(Einsum<C...>, const fewest_bytes& limits, const X& x, const W& w,
                      const More&... more) {
  using Text = Einsum<C...>;
  detail::verify_einsum<Text, X, W, More...>();
  return detail::EinsumOfAll<Text>::template call<R...>(
      limits, std::index_sequence_for<X, W, More...>{}, x, w, more...);
}
CLEAVE_USAGE(einsum, "einsum(\"ij,jk->ik\"_ein, x, w)")

/// The plan of such a call: orders, placements, bytes. Letters that only one operand has are summed
/// over on each rank.
///
///     explain("ab,bc,cd->ad"_ein, fewest_bytes{}, x, v, w).text()
///
/// @param x  Tensors, or DTensors whose placements are constants of their types
/// @collective none
/// @throws Error as the call
template <class... R, char... C, AnyTensor X, AnyTensor W, AnyTensor... More>
ContractionPlan explain(Einsum<C...>, const fewest_bytes& limits, const X& x, const W& w,
                        const More&... more) {
  using Text = Einsum<C...>;
  detail::verify_einsum<Text, X, W, More...>();
  static_assert(!detail::has_open_layout<X> && !detail::has_open_layout<W> &&
                    (!detail::has_open_layout<More> && ...),
                "cleave: products with placements that are chosen at run time are not planned: "
                "they are computed from left to right");
  return detail::EinsumOfAll<Text>::template explain<R...>(
      limits, std::index_sequence_for<X, W, More...>{}, x, w, more...);
}

}  // namespace cleave::inline v0
