// Eigenvalues and eigenvectors of Hermitian matrices: eigh.
//
//     // w[S0,R], v[S0,R,R] = eigh(a[S0,R,R])     a batch: no communication
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include <cleave/kernels/host/lapack_orthogonal.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/diagonal.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0 {

namespace ops {

/// w and v with a v = v diag(w). @see eigh
struct EigenvaluesHermitian {
  static constexpr const char* name = "eigh";
  template <class T>
  using result_of = Types<kernels::real_t<T>, T>;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    const RuleText batch = cleave::detail::batch_letters(dims[0]);
    return cleave::detail::joined(batch, "xy->", batch, "y,", batch, "xy");
  }
  static constexpr const char* replicated = "xy";
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task,
                     const kernels::Strided<kernels::real_t<T>>& w, const kernels::Strided<T>& v,
                     const kernels::Strided<const T>& x) {
    if (x.extents.product() == 0) return;
    const int d = x.extents.dims - 2, n = cleave::detail::lapack_extent(task, x.extents[d]);
    const auto rows = std::size_t(n);
    std::vector<T> a(rows * rows);
    std::vector<kernels::real_t<T>> values(rows);
    kernels::LapackWork<T> work;
    cleave::detail::loops_over_matrices(x, w, v).each(
        [&](index_t from, index_t to_w, index_t to_v) {
          cleave::detail::pack_matrix(x.data + from, x, a.data(), true);
          for (std::size_t j = 0; j < rows; ++j)
            if (!cleave::detail::are_finite(&a[j * (rows + 1)], rows - j))
              cleave::detail::fail_for_matrix(task, from, "has an element that is not finite");
          if (const int left = kernels::eigenvectors_in_place(n, a.data(), values.data(), work);
              left != 0)
            cleave::detail::fail_for_matrix(task, from,
                                            "has eigenvalues that do not converge: " +
                                                std::to_string(left) + " of " + std::to_string(n));
          for (std::size_t i = 0; i < rows; ++i)
            w.data[to_w + index_t(i) * w.strides[d]] = values[i];
          cleave::detail::unpack_matrix(a.data(), v.data + to_v, v, true);
        });
  }
  // dw = diag(v^H da v), dv = v (v^H da v / (w[j] - w[i])). Elements below the diagonal stand for
  // those above it, too.
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    using cleave::detail::adjoint;
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    const auto& [w, v] = y;
    const auto turned = cleave::detail::over_differences(matmul(adjoint(v), std::get<1>(g)), w);
    const auto all = matmul(matmul(v, add(diag(cast<T>(std::get<0>(g))), turned)), adjoint(v));
    return cleave::detail::half_triangle(add(all, adjoint(all)));
  }
};

}  // namespace ops

/// The eigenvalues, ascending, and the orthonormal eigenvectors of Hermitian matrices (LAPACK's
/// syevd, heevd): `const auto [w, v] = eigh(a)`, with a v = v diag(w).
///
/// A vector may be multiplied by any number of size 1, and vectors of equal eigenvalues turned
/// among each other: results of LAPACK, not of a. Gradients are of functions that do not depend on
/// this; of the vectors of equal eigenvalues, only the space that they span has one.
///
/// @param a     [.., n, n], float, double or complex. The elements above the diagonal, and the
///              imaginary parts on it, are not read; gradients count each element below for both
/// @return      a std::tuple of w [.., n], real, and v [.., n, n], a vector per column; batches
///              sharded as they are
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered
/// @cost        about 4 n³ multiplications and additions per matrix, on every rank that has it
/// @throws Error if a matrix is not square, has an element that is not finite, or does not converge
template <AnyTensor A>
constexpr auto eigh(const A& a) {
  detail::require_square("eigh", a);
  return call_op(ops::EigenvaluesHermitian{}, a);
}
CLEAVE_USAGE(eigh, "eigh(a)")

}  // namespace cleave::inline v0
