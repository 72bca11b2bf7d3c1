// Matrix products.
#pragma once

#include <type_traits>

#include <cleave/kernels/host/gemm.hpp>
#include <cleave/ops/arithmetic.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/transpose.hpp>

namespace cleave {

namespace ops {

/// Rows of A and columns of B may be sharded freely; where both shard k, and where one of them is
/// a sum over ranks that the other does not take part in, the product is a sum over ranks:
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

/// y = x · w, both matrices.
///
/// @param x  [m, k]
/// @param w  [k, n], of the same element type
/// @return   [m, n]; a Partial<Sum> on the axes that shard k in both
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error if the k of x and w differ, or their meshes
template <class... R, AnyTensor A, AnyTensor B>
constexpr auto matmul(const A& x, const B& w) {
  static_assert(A::dims == 2 && B::dims == 2, "cleave: matmul takes two matrices");
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the operands of matmul have different element types; cast one of them");
  return call_op<R...>(ops::Matmul{}, x, w);
}

}  // namespace cleave
