// Matrix products.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include <cleave/kernels/host/gemm.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Rows of x and columns of w may be sharded freely. If both shard k, or one of them is a sum over
/// ranks and the other is replicated, the product is a sum over ranks:
///
///     // y[S0,S1] = x[S0,R] · w[R,S1]
///     // y[P]     = x[S1]   · w[S0]      x1·w1 + x2·w2
///     // y[P]     = x[P]    · w[R]       (x1 + x2)·w = x1·w + x2·w
struct Matmul {
  static constexpr const char* name = "matmul";
  static constexpr const char* factors = "ik,kj->ij";
  static constexpr const char* partials = "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg";

  static void kernel(const auto& on, const Task&, const auto& y, const auto& x, const auto& w) {
    gemm(on, kernels::as_matrix(x), kernels::as_matrix(w), kernels::as_matrix(y));
  }
  // dL/dx = g · w^H
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto& w) {
    return matmul(g, conj(transpose(w)));
  }
  // dL/dw = x^H · g
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& x, const auto&) {
    return matmul(conj(transpose(x)), g);
  }
};

}  // namespace ops

namespace detail {

/// The product of arrays as in NumPy: over the last two dimensions, with the others as batches. An
/// operand of one dimension is a row on the left, a column on the right.
template <int Left, int Right>
struct BatchedProduct {
  static constexpr int batch = Left > Right ? Left - 2 : Right - 2;
  static constexpr RuleText letters(int dims, std::string_view matrix) {
    RuleText word = dim_letters(batch - dims + int(matrix.size()), batch);
    word += matrix;
    return word;
  }
  static constexpr RuleText text =
      factors_text(letters(Left, Left == 1 ? "y" : "xy"), letters(Right, Right == 1 ? "y" : "yz"),
                   letters((batch > 0 ? batch : 0) + (Left > 1) + (Right > 1),
                           Left == 1 ? (Right == 1 ? "" : "z") : (Right == 1 ? "x" : "xz")));
  static constexpr bool repeats = Left > 2 && Right > 2;
};

template <class A, class B>
constexpr void require_inner(const A& x, const B& w) {
  const index_t left = shape_of(x)[A::dims - 1], right = shape_of(w)[B::dims > 1 ? B::dims - 2 : 0];
  if (left == right || !knows_extents(x) || !knows_extents(w)) return;
  ErrorContext context = context_of(x);
  context.shapes += " and " + to_string(shape_of(w));
  throw Error(
      "matmul",
      "inner extents differ: " + std::to_string(left) + " in x, " + std::to_string(right) + " in w",
      context);
}

}  // namespace detail

/// The matrix product y = x · w, batched over all dimensions but the last two, as in NumPy.
///
///     // [m, k] · [k, n] -> [m, n]              [b, m, k] · [b, k, n] -> [b, m, n]
///     // [m, k] · [k]    -> [m]                 [b, m, k] · [k, n]    -> [b, m, n]
///     // [k]    · [k]    -> a scalar            [b, 1, m, k] · [c, k, n] -> [b, c, m, n]
///
/// @param x  [.., m, k], or [k]
/// @param w  [.., k, n], or [k], of the same element type; batch dimensions broadcast, aligned at
///           the last one
/// @return   [.., m, n]; Partial<Sum> on the axes that shard k in both
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error if the extents k of x and w differ, batches do not broadcast, or the meshes differ
template <class... R, AnyTensor A, AnyTensor B>
  requires(!detail::asks_exact<R...>)
constexpr auto matmul(const A& x, const B& w) {
  static_assert(A::dims > 0 && B::dims > 0, "cleave: matmul requires at least one dimension");
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the operands of matmul have different element types; cast one of them");
  if constexpr (A::dims == 2 && B::dims == 2) {
    return call_op<R...>(ops::Matmul{}, x, w);
  } else {
    using Text = detail::BatchedProduct<A::dims, B::dims>;
    if constexpr (Text::repeats) detail::require_inner(x, w);
    return call_op<R...>(ops::Contract<decltype(detail::einsum_of<Text>()), Text::repeats>{}, x, w);
  }
}
CLEAVE_USAGE(matmul, "matmul(x, w)")

}  // namespace cleave::inline v0
