// Cholesky factors of positive definite matrices.
//
//     // l[S0,R,R] = cholesky(a[S0,R,R])     a batch: no communication
//     // l[R]      = cholesky(a[S0])         one matrix: it is gathered
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/kernels/host/lapack.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/products/matmul.hpp>

namespace cleave::inline v0 {

namespace ops {

/// l with a = l l^H, a lower triangle. Reads the lower triangles of a only.
struct Cholesky {
  static constexpr const char* name = "cholesky";
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return cleave::detail::matrix_letters(dims[0]);
  }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x) {
    if (x.extents.product() == 0) return;
    const int n = cleave::detail::lapack_extent(task, x.extents[x.extents.dims - 1]);
    const std::size_t row = std::size_t(n);
    std::vector<T> a(row * row);
    cleave::detail::loops_over_matrices(x, y).each([&](index_t from, index_t to) {
      cleave::detail::pack_matrix(x.data + from, x, a.data(), false);
      if constexpr (is_complex<T>)
        for (std::size_t i = 0; i < row; ++i) a[i * (row + 1)] = a[i * (row + 1)].real();
      if (const int minor = kernels::cholesky_in_place(n, a.data()); minor != 0)
        cleave::detail::fail_for_matrix(
            task, from,
            "is not positive definite: so says its leading minor of order " +
                std::to_string(minor));
      for (std::size_t i = 0; i < row; ++i)
        for (std::size_t j = i + 1; j < row; ++j) a[i * row + j] = T(0);
      cleave::detail::unpack_matrix(a.data(), y.data + to, y, false);
    });
  }
  // I. Murray: Differentiation of the Cholesky decomposition. arXiv:1602.07527 (2016). Elements
  // below the diagonal stand for those above it, too.
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& l, const auto&) {
    using cleave::detail::adjoint;
    using cleave::detail::half_triangle;
    const auto up = adjoint(l);
    const TriangularSolve solve{{}, Side::upper};
    const auto half = call_op(solve, up, half_triangle(matmul(up, g)));
    const auto both = call_op(solve, up, adjoint(half));
    return half_triangle(add(both, adjoint(both)));
  }
};

}  // namespace ops

/// The Cholesky factors l of Hermitian positive definite matrices, a = l l^H (LAPACK's potrf).
///
/// @param a     [.., n, n], float, double or complex. The elements above the diagonal, and the
///              imaginary parts on it, are not read; gradients count each element below for both
/// @return      lower triangles, the shape of a, with the batch dimensions sharded as they are
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered
/// @cost        n³/3 multiplications and additions per matrix, on every rank that has it
/// @throws Error if a matrix is not square, or not positive definite
template <class... R, AnyTensor A>
constexpr auto cholesky(const A& a) {
  detail::require_square("cholesky", a);
  return call_op<R...>(ops::Cholesky{}, a);
}
CLEAVE_USAGE(cholesky, "cholesky(a)")

}  // namespace cleave::inline v0
