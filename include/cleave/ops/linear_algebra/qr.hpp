// QR factors of matrices.
//
//     // q[S0,R,R], r[S0,R,R] = qr(a[S0,R,R])     a batch: no communication
//     // q[S0,R], r[R]        = qr(a[S0,R])       one matrix: triangles are gathered, rows stay
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <cleave/kernels/host/lapack_orthogonal.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/linear_algebra/qr_of_cut_rows.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/slice.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Of factors q r that are unique, because the diagonal of r is real and positive.
///
/// With x = q^H da r^-1: dr = (triu(x + x^H) - diag(x + x^H) / 2) r, and dq is what remains of
/// da = dq r + q dr. Columns of r beyond its square part are q^H times those of a.
struct WithQrGradient {
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    using cleave::detail::adjoint;
    const auto& [q, r] = y;
    using R = std::remove_cvref_t<decltype(r)>;
    constexpr dim<R::dims - 1> columns;
    const index_t k = shape_of(r)[R::dims - 2], more = shape_of(r)[R::dims - 1] - k;
    const auto square = narrow(r, columns, 0, k);
    const auto rest = narrow(r, columns, k, more);
    const auto of_square = narrow(std::get<1>(g), columns, 0, k);
    const auto of_rest = narrow(std::get<1>(g), columns, k, more);
    const auto of_q = add(std::get<0>(g), matmul(q, matmul(rest, adjoint(of_rest))));
    const auto half = cleave::detail::half_triangle(
        sub(matmul(square, adjoint(of_square)), matmul(adjoint(of_q), q)));
    const auto sides = add(of_q, matmul(q, add(half, adjoint(half))));
    const auto of_first =
        adjoint(call_op(TriangularSolve{{}, Side::upper}, square, adjoint(sides)));
    return cat(columns, of_first, matmul(q, of_rest));
  }
};

/// q and r with a = q r. @see qr
struct QrFactors : WithQrGradient {
  index_t rank = 0;  ///< the smaller one of both extents

  static constexpr const char* name = "qr";
  template <class T>
  using result_of = Types<T, T>;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    const RuleText batch = cleave::detail::batch_letters(dims[0]);
    return cleave::detail::joined(batch, "xy->", batch, "xk,", batch, "ky");
  }
  static constexpr const char* replicated = "xyk";
  constexpr Shape extents() const { return Shape::filled(1, rank); }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& q,
                     const kernels::Strided<T>& r, const kernels::Strided<const T>& x) {
    if (x.extents.product() == 0) return;
    const int d = x.extents.dims - 2, m = cleave::detail::lapack_extent(task, x.extents[d]),
              n = cleave::detail::lapack_extent(task, x.extents[d + 1]);
    std::vector<T> a(std::size_t(m) * std::size_t(n)),
        triangle(std::size_t(std::min(m, n)) * std::size_t(n));
    kernels::LapackWork<T> work;
    cleave::detail::loops_over_matrices(x, q, r).each(
        [&](index_t from, index_t to_q, index_t to_r) {
          cleave::detail::pack_matrix(x.data + from, x, a.data(), true);
          kernels::orthonormalize(m, n, a.data(), triangle.data(), work);
          cleave::detail::unpack_matrix(a.data(), q.data + to_q, q, true);
          cleave::detail::unpack_matrix(triangle.data(), r.data + to_r, r, true);
        });
  }
};

/// The factors of one matrix whose rows are cut.
struct QrOfCutRows : Composite, WithQrGradient {
  static constexpr const char* name = "qr";
  static auto body(const auto& x) { return cleave::detail::qr_of_cut_rows<QrFactors>(x); }
};

}  // namespace ops

/// The reduced factors of matrices, a = q r, by Householder reflections (LAPACK's geqrf, orgqr):
/// `const auto [q, r] = qr(a)`.
///
/// @param a     [.., m, n], float, double or complex; k = min(m, n)
/// @return      a std::tuple of q [.., m, k], whose columns are orthonormal, and r [.., k, n], an
///              upper triangle whose diagonal is real and at least 0, which makes both unique if
///              the first k columns of a are independent, as gradients require; batches sharded as
///              they are. Of one matrix whose rows are cut, q is cut as they are
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered.
///              Of one matrix whose rows alone are cut, an n by n triangle per rank is: elsewhere,
///              rows stay. Traced programs gather the matrix
/// @cost        4 m n k - 2 (m + n) k² + 4 k³/3 multiplications and additions per matrix, on every
///              rank that has it
template <AnyTensor A>
constexpr auto qr(const A& a) {
  detail::require_lapack<A>();
  if constexpr (detail::has_cut_rows<A>()) {
    return call_op(ops::QrOfCutRows{}, a);
  } else {
    const Shape shape = shape_of(a);
    const index_t m = shape[A::dims - 2], n = shape[A::dims - 1];
    return call_op(ops::QrFactors{{}, m < n ? m : n}, a);
  }
}
CLEAVE_USAGE(qr, "qr(a)")

}  // namespace cleave::inline v0
