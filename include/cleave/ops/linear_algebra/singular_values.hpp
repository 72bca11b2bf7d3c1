// Singular values and vectors: svd.
//
//     // u[S0,R,R], s[S0,R], vh[S0,R,R] = svd(a[S0,R,R])     a batch: no communication
#pragma once

#include <algorithm>
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

namespace cleave::inline v0 {

namespace ops {

/// u, s and vh with a = u diag(s) vh. @see svd
struct SingularValues {
  index_t rank = 0;  ///< the smaller one of both extents

  static constexpr const char* name = "svd";
  template <class T>
  using result_of = Types<T, kernels::real_t<T>, T>;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    const RuleText batch = cleave::detail::batch_letters(dims[0]);
    return cleave::detail::joined(batch, "xy->", batch, "xk,", batch, "k,", batch, "ky");
  }
  static constexpr const char* replicated = "xyk";
  constexpr Shape extents() const { return Shape::filled(1, rank); }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& u,
                     const kernels::Strided<kernels::real_t<T>>& s, const kernels::Strided<T>& vh,
                     const kernels::Strided<const T>& x) {
    if (x.extents.product() == 0) return;
    const int d = x.extents.dims - 2, m = cleave::detail::lapack_extent(task, x.extents[d]),
              n = cleave::detail::lapack_extent(task, x.extents[d + 1]);
    const auto k = std::size_t(std::min(m, n));
    std::vector<T> a(std::size_t(m) * std::size_t(n)), left(std::size_t(m) * k),
        right(k * std::size_t(n));
    std::vector<kernels::real_t<T>> values(k);
    kernels::LapackWork<T> work;
    cleave::detail::loops_over_matrices(x, u, s, vh)
        .each([&](index_t from, index_t to_u, index_t to_s, index_t to_vh) {
          cleave::detail::pack_matrix(x.data + from, x, a.data(), true);
          if (!cleave::detail::are_finite(a.data(), a.size()))
            cleave::detail::fail_for_matrix(task, from, "has an element that is not finite");
          if (kernels::singular_values(m, n, a.data(), left.data(), values.data(), right.data(),
                                       work) != 0)
            cleave::detail::fail_for_matrix(task, from, "has singular values that do not converge");
          cleave::detail::unpack_matrix(left.data(), u.data + to_u, u, true);
          for (std::size_t i = 0; i < k; ++i) s.data[to_s + index_t(i) * s.strides[d]] = values[i];
          cleave::detail::unpack_matrix(right.data(), vh.data + to_vh, vh, true);
        });
  }
  // J. Townsend: Differentiating the singular value decomposition (2016); of complex matrices Z.-Q.
  // Wan and S.-X. Zhang, arXiv:1909.02659 (2019). With f = 1 / (s[j]² - s[i]²):
  //   u^H da v - diag(ds) = (u^H du - its diagonal) s - s (v^H dv - its diagonal), ..
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x) {
    using cleave::detail::adjoint;
    using cleave::detail::over_differences;
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    const auto& [u, s, vh] = y;
    const auto squares = square(s);
    const auto columns = unsqueeze(cast<T>(s), dim<-2>{});
    const auto rows = unsqueeze(cast<T>(s), dim<-1>{});
    const auto by_columns = unsqueeze(cast<T>(call_op(detail::OrOne{}, s)), dim<-2>{});
    const auto by_rows = unsqueeze(cast<T>(call_op(detail::OrOne{}, s)), dim<-1>{});
    const auto of_u = matmul(adjoint(u), std::get<0>(g));
    const auto of_v = matmul(std::get<2>(g), adjoint(vh));
    const auto turning_u = over_differences(sub(of_u, adjoint(of_u)), squares);
    const auto turning_v = over_differences(sub(adjoint(of_v), of_v), squares);
    const auto inside =
        add(add(mul(turning_u, columns), mul(rows, turning_v)), diag(cast<T>(std::get<1>(g))));
    const auto outside_u = div(sub(std::get<0>(g), matmul(u, of_u)), by_columns);
    const auto outside_v = div(sub(std::get<2>(g), matmul(of_v, vh)), by_rows);
    const auto left = add(matmul(u, inside), outside_u);
    if constexpr (is_complex<T>) {
      const auto phases = mul(sub(diagonal(of_u), conj(diagonal(of_u))), T(0.5));
      const auto turned = mul(u, div(unsqueeze(phases, dim<-2>{}), by_columns));
      return add(matmul(add(left, turned), vh), matmul(u, outside_v));
    } else {
      return add(matmul(left, vh), matmul(u, outside_v));
    }
  }
};

}  // namespace ops

/// The singular values, descending, and the orthonormal vectors of matrices (LAPACK's gesdd):
/// `const auto [u, s, vh] = svd(a)`, with a = u diag(s) vh.
///
/// A column of u may be multiplied by any number of size 1, if the row of vh is divided by it, and
/// vectors of equal values turned among each other: results of LAPACK, not of a. Gradients are of
/// functions that do not depend on this, of matrices whose singular values differ and are not 0.
///
/// @param a     [.., m, n], float, double or complex; k = min(m, n)
/// @return      a std::tuple of u [.., m, k], s [.., k], real, and vh [.., k, n], the conjugated
///              vectors, one per row; batches sharded as they are
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered
/// @cost        about 6 m n k + 11 k³ multiplications and additions per matrix, on every rank that
///              has it
/// @throws Error if a matrix has an element that is not finite, or does not converge
template <AnyTensor A>
constexpr auto svd(const A& a) {
  detail::require_lapack<A>();
  const Shape shape = shape_of(a);
  const index_t m = shape[A::dims - 2], n = shape[A::dims - 1];
  return call_op(ops::SingularValues{m < n ? m : n}, a);
}
CLEAVE_USAGE(svd, "svd(a)")

}  // namespace cleave::inline v0
