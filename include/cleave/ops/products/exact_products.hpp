// Exact products and network layers: `matmul<exact>`, `einsum<exact>`, `linear<exact>` and
// `cross_entropy<exact>` compute exact sums, rounded once, and so do their gradients. A network of
// them has bitwise identical losses on any mesh.
//
//     // y[S0,R] = matmul<exact>(x[S0,S1], w[R,S0])   one all-reduce over tp: 176 bytes per float
//
// docs/exact_sums.md states the guarantee and its cost.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <cleave/kernels/host/exact_contract.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/losses/cross_entropy.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/products/linear.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/exact_reductions.hpp>

namespace cleave::inline v0 {

namespace ops {

/// A rank's part of exact products: integers, in a new last dimension.
template <class Text>
struct ExactProductParts {
  using result = kernels::ExactWord;
  index_t words = 0;

  static constexpr const char* name = "exact_parts";
  /// The text with one more letter in the result.
  static constexpr RuleText factors = [] {
    RuleText text;
    text += Text::text;
    char word = 'a';
    while (cleave::detail::EinsumText::has(Text::text, word)) ++word;
    text += word;
    return text;
  }();
  constexpr Shape extents() const { return Shape::filled(1, words); }

  static void kernel(const auto& on, const Task&, const auto& y, const auto& x, const auto& w) {
    exact_product_parts(on, Contract<Text>::letters, y, x, w);
  }
};

/// ExactProductParts and ExactValue in one kernel, for summed dimensions that are not sharded.
template <class Text>
struct ExactProductWhole {
  static constexpr const char* name = "einsum";
  static constexpr const char* factors = Text::chars;
  static constexpr RuleText replicated = [] {
    RuleText letters;
    for (const char letter : std::string_view(Text::parts.operand[0]))
      if (!cleave::detail::EinsumText::has(Text::parts.result, letter)) letters += letter;
    return letters;
  }();

  static void kernel(const auto& on, const Task&, const auto& y, const auto& x, const auto& w) {
    exact_products(on, Contract<Text>::letters, y, x, w);
  }
};

/// The exact product of two arrays, in which each letter occurs in at least two of x, w and y.
template <class Text>
struct ExactContract : Composite {
  static constexpr const char* name = "einsum";
  static constexpr bool takes_request = true;

  template <class Request, class X, class W>
  static constexpr auto body(const Request& request, const X& x, const W& w) {
    using T = typename X::value_type;
    constexpr auto terms = kernels::ExactTerms::products;
    if constexpr (!cleave::detail::may_shard<summed_in(0), X>() &&
                  !cleave::detail::may_shard<summed_in(1), W>()) {
      return cleave::detail::call_as(request, ExactProductWhole<Text>{}, x, w);
    } else {
      const auto parts = call_op(ExactProductParts<Text>{kernels::exact_words<T>(terms)}, x, w);
      return cleave::detail::call_as(request, ExactValue<terms, T>{}, parts);
    }
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& w) {
    return call_op(ExactContract<typename Gradients::Left>{}, g, conj(w));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& x, const auto&) {
    return call_op(ExactContract<typename Gradients::Right>{}, conj(x), g);
  }

 private:
  using Gradients = cleave::detail::EinsumGradients<Text>;
  /// The dimensions of an operand that are summed over, as a mask.
  static constexpr unsigned summed_in(std::size_t operand) {
    return cleave::detail::letters_alone(Text::parts.operand[operand], "", Text::parts.result);
  }
};

/// y = x · weight^T + bias with an exact product: two roundings.
struct ExactLinear : Composite {
  static constexpr const char* name = "linear";

  template <class X>
  static constexpr auto body(const X& x, const auto& weight, const auto& bias) {
    return add(product<X, typename cleave::detail::LinearText<X::dims>::Forward>(x, weight), bias);
  }
  template <class X>
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X&, const auto& weight,
                                 const auto&) {
    return product<X, typename cleave::detail::LinearText<X::dims>::OfX>(g, conj(weight));
  }
  template <class X>
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const X& x, const auto&,
                                 const auto&) {
    return product<X, typename cleave::detail::LinearText<X::dims>::OfWeight>(g, conj(x));
  }
  template <class X>
  static constexpr auto gradient(wrt<2>, const auto& g, const auto&, const X&, const auto&,
                                 const auto&) {
    if constexpr (X::dims == 1) return g;
    else return call_op(ExactSum<(1u << (X::dims - 1)) - 1u>{}, g);
  }

 private:
  template <class X, class Which>
  static constexpr auto product(const auto& a, const auto& b) {
    return call_op(ExactContract<decltype(cleave::detail::einsum_of<Which>())>{}, a, b);
  }
};

/// log(softmax(x)) over dimension 1, with an exact sum of the rounded exponentials.
struct ExactLogSoftmax : Composite {
  static constexpr const char* name = "log_softmax";
  static constexpr auto body(const auto& logits) {
    const auto x = resolve(logits);
    const auto shifted = sub(x, unsqueeze(resolve(max(x, dim<1>{})), dim<1>{}));
    const auto total = call_op(ExactSum<2u>{}, exp(shifted));
    return sub(shifted, unsqueeze(log(total), dim<1>{}));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    return sub(g, mul(exp(y), unsqueeze(call_op(ExactSum<2u>{}, g), dim<1>{})));
  }
};

/// The mean of -log(softmax(logits)[class]), with exact sums.
struct ExactCrossEntropy : Composite {
  static constexpr const char* name = "cross_entropy";
  static constexpr auto body(const auto& logits, const auto& classes) {
    const auto y = call_op(ExactLogSoftmax{}, logits);
    using T = typename std::remove_cvref_t<decltype(y)>::value_type;
    const auto chosen =
        cleave::detail::call_as(cleave::detail::like(y), OneHot<T>{shape_of(y)[1]}, classes);
    return neg(mean<exact>(call_op(ExactSum<2u>{}, mul(chosen, y)), dim<0>{}));
  }
};

}  // namespace ops

/// einsum(text, x, w) of two arrays: the exact result, rounded once to the element type. Gradients
/// are exact, too.
///
/// @return  never Partial on the axes that shard a summed dimension
/// @collective every rank of the mesh, if a summed dimension is sharded, or an operand has to be
///             redistributed
/// @cost    tens of times that of einsum; one all-reduce, with the bytes per result of dot<exact>
template <detail::ExactTag E, class... R, char... C, AnyTensor X, AnyTensor W>
constexpr auto einsum(Einsum<C...>, const X& x, const W& w) {
  detail::verify_einsum<Einsum<C...>, X, W>();
  return call_op<R...>(ops::ExactContract<Einsum<C...>>{}, x, w);
}

/// The exact product of two matrices, rounded once. Otherwise as einsum<exact>.
template <detail::ExactTag E, class... R, AnyTensor A, AnyTensor B>
constexpr auto matmul(const A& x, const B& w) {
  static_assert(A::dims == 2 && B::dims == 2, "cleave: matmul<exact> takes two matrices");
  return einsum<E, R...>("ik,kj->ij"_ein, x, w);
}

/// x · weight^T + bias, where the bias is added to the exact product, rounded once.
template <detail::ExactTag E, class... R, AnyTensor X, AnyTensor W, AnyTensor B>
constexpr auto linear(const X& x, const W& weight, const B& bias) {
  static_assert(X::dims > 0 && W::dims == 2 && B::dims == 1,
                "cleave: linear takes x [.., k], weight [n, k] and bias [n]");
  return call_op<R...>(ops::ExactLinear{}, x, weight, bias);
}

/// cross_entropy(logits, classes) with exact sums: of a row's rounded exponentials, and over rows.
template <detail::ExactTag E, class... R, AnyTensor X, AnyTensor C>
constexpr auto cross_entropy(const X& logits, const C& classes) {
  static_assert(X::dims == 2 && C::dims == 1,
                "cleave: cross_entropy takes logits [n, c] and classes [n]");
  return call_op<R...>(ops::ExactCrossEntropy{}, logits, classes);
}

}  // namespace cleave::inline v0
