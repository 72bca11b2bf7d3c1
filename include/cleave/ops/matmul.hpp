// Matrix products.
#pragma once

#include <type_traits>

#include <cleave/kernels/host/gemm.hpp>
#include <cleave/ops/call.hpp>

namespace cleave {

struct Matmul {};

/// Rows of A and columns of B may be sharded freely; where both shard k, and where one of them is
/// a sum over ranks that the other does not take part in, the product is a sum over ranks:
///
///     // y[S0,S1] = x[S0,R] · w[R,S1]
///     // y[P]     = x[S1]   · w[S0]      x1·w1 + x2·w2
///     // y[P]     = x[P]    · w[R]       (x1 + x2)·w = x1·w + x2·w
template <>
struct sharding_rule<Matmul> {
  static constexpr const char* factors = "ik,kj->ij";
  static constexpr const char* partials = "sum,R->sum; R,sum->sum; avg,R->avg; R,avg->avg";
};

namespace detail {

/// What a rank contributes; typed by elements, like every kernel.
template <class T, class Device>
Tensor<T, 2, Device> matmul_local(const Tensor<T, 2, Device>& x, const Tensor<T, 2, Device>& w) {
  const Tensor<T, 2, Device> y({x.extent(0), w.extent(1)});
  gemm(kernels::On<Device>{}, as_matrix(kernels::read(x)), as_matrix(kernels::read(w)),
       as_matrix(kernels::write(y)));
  return y;
}

}  // namespace detail

/// y = x · w, both matrices.
///
/// @param x  [m, k]
/// @param w  [k, n], of the same element type
/// @return   [m, n]; a Partial<Sum> on the axes that shard k in both
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error if the k of x and w differ, or their meshes
template <class... R, AnyTensor A, AnyTensor B>
auto matmul(const A& x, const B& w) {
  static_assert(A::dims == 2 && B::dims == 2, "cleave: matmul takes two matrices");
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the operands of matmul have different element types; cast one of them");
  using Call = detail::Call<Matmul, detail::Request<R...>, A, B>;
  return Call("matmul", x, w)
      .run(detail::matmul_local<typename A::value_type, typename Call::Device>, x, w);
}

}  // namespace cleave
