// Least squares: lstsq.
//
//     // x[S0,R,R] = lstsq(a[S0,R,R], b[S0,R,R])     a batch: no communication
//     // x[R,S1]   = lstsq(a[R,R], b[R,S1])          one matrix: right-hand sides stay
//     // x[R]      = lstsq(a[S0], b[S0])             one tall matrix: rows stay, by qr
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/lapack_orthogonal.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/linear_algebra/qr.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Whether the rows of one matrix are cut, and those of its right-hand sides in the same way.
template <class A, class B>
constexpr bool has_rows_cut_alike() {
  if constexpr (!has_cut_rows<A>() || !is_dtensor<innermost_t<B>>) return false;
  else return innermost_t<B>::dims <= 2 && innermost_t<A>::layout == innermost_t<B>::layout;
}

}  // namespace detail

namespace ops {

/// The x of least norm with least |a x - b|, of matrices a of full rank.
struct LeastSquares {
  static constexpr const char* name = "lstsq";
  static constexpr RuleText factors(const std::array<int, 2>& dims) {
    const RuleText batch = cleave::detail::batch_letters(dims[0]);
    return cleave::detail::joined(batch, "xy,", batch, "xz->", batch, "yz");
  }
  static constexpr const char* replicated = "xy";
  static constexpr const char* partials = LinearSystem::partials;
  template <class T>
  static void kernel(const kernels::On<Host>& on, const Task& task, const kernels::Strided<T>& x,
                     const kernels::Strided<const T>& a, const kernels::Strided<const T>& b) {
    if (x.extents.product() == 0) return;
    if (a.extents.product() == 0) return fill_elements(on, x, T(0));
    const int d = a.extents.dims - 2, m = cleave::detail::lapack_extent(task, a.extents[d]),
              n = cleave::detail::lapack_extent(task, a.extents[d + 1]),
              columns = cleave::detail::lapack_extent(task, x.extents[d + 1]);
    const auto rows = std::size_t(std::max(m, n));
    std::vector<T> factors(std::size_t(m) * std::size_t(n)), sides(rows * std::size_t(columns));
    kernels::LapackWork<T> work;
    // b, then x, in columns that are as long as the longer of theirs
    const auto in_columns = [&](index_t extent) {
      return View{sides.data(), dtype_of<T>(), Shape(std::array<index_t, 2>{extent, columns}),
                  Shape(std::array<index_t, 2>{1, index_t(rows)})};
    };
    const auto matrix = [d](const auto& y, index_t at) {
      return View{const_cast<T*>(y.data + at), dtype_of<T>(),
                  Shape(std::array<index_t, 2>{y.extents[d], y.extents[d + 1]}),
                  Shape(std::array<index_t, 2>{y.strides[d], y.strides[d + 1]})};
    };
    cleave::detail::loops_over_matrices(x, a, b).each([&](index_t to, index_t of, index_t from) {
      cleave::detail::pack_matrix(a.data + of, a, factors.data(), true);
      strided_copy(matrix(b, from), in_columns(m));
      if (const int row =
              kernels::least_squares_in_place(m, n, columns, factors.data(), sides.data(), work);
          row != 0)
        cleave::detail::fail_for_matrix(task, of,
                                        "does not have full rank: diagonal element " +
                                            std::to_string(row) + " of its triangular factor is 0");
      strided_copy(in_columns(n), matrix(x, to));
    });
  }
  // With s the pseudo-inverse of a, and r = b - a x: dx = s db - s da x + s s^H da^H r + (1 - s a)
  // da^H s^H x. G. H. Golub and V. Pereyra: The differentiation of pseudo-inverses and nonlinear
  // least squares problems whose variables separate. SIAM J. Numer. Anal. 10(2), 1973.
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto&) {
    return call_op(LeastSquares{}, cleave::detail::adjoint(a), g);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& x, const auto& a,
                                 const auto& b) {
    using cleave::detail::adjoint;
    const auto up = adjoint(a);
    const auto of_b = call_op(LeastSquares{}, up, g);
    const auto beside = sub(b, matmul(a, x));
    const auto free = sub(g, matmul(up, of_b));
    return sub(add(matmul(beside, adjoint(call_op(LeastSquares{}, a, of_b))),
                   matmul(call_op(LeastSquares{}, up, x), adjoint(free))),
               matmul(of_b, adjoint(x)));
  }
};

}  // namespace ops

namespace detail {

/// The x with least |a x - b| of cut rows, on every rank: r x = q^H b, if a has as many rows as
/// columns.
template <class A>
auto solved_by_rows(const A& a, const auto& b) {
  using T = typename A::value_type;
  using Everywhere = replicated_t<innermost_t<A>::mesh_type::axis_count>;
  if (shape_of(a)[0] < shape_of(a)[1]) return call_op<Everywhere>(ops::LeastSquares{}, a, b);
  static_assert(std::is_same_v<T, typename std::remove_cvref_t<decltype(b)>::value_type>,
                "cleave: the matrices and the right-hand sides have different element types; cast "
                "one of them");
  if (shape_of(a)[0] != shape_of(b)[0])
    throw Error("lstsq",
                "the matrix has " + std::to_string(shape_of(a)[0]) +
                    " rows, the right-hand sides " + std::to_string(shape_of(b)[0]),
                context_of(a));
  const auto [q, r] = qr(a);
  const auto& triangle = innermost(r).to_local();
  for (index_t i = 0; i < triangle.extent(0); ++i)
    if (triangle(i, i) == T(0))
      throw Error("lstsq",
                  "the matrix does not have full rank: diagonal element " + std::to_string(i + 1) +
                      " of its triangular factor is 0",
                  context_of(a));
  const auto sides = resolve(matmul(adjoint(q), b));
  return call_op<Everywhere>(ops::TriangularSolve{{}, Side::upper}, r, sides);
}

}  // namespace detail

/// The x with the least norm of a x - b, column by column, and of those the one of least norm
/// (LAPACK's gels): more rows than columns are equations that cannot all hold, fewer leave x open.
///
/// @param a     [.., m, n], float, double or complex, of full rank
/// @param b     [.., m, k], or [.., m], with the same batch dimensions
/// @return      [.., n, k], or [.., n]; batches and k stay sharded as they are
/// @collective  every rank of the mesh, if m or n is sharded: a and b are redistributed so that
///              each rank has whole matrices, and its own right-hand sides. Of one matrix with
///              m >= n, if its rows and those of b are cut alike and nothing else is, rows stay: as
///              in qr, and a sum of n k elements
/// @cost        m n p - (m + n) p²/2 + p³/3 multiplications and additions, p = min(m, n), and
///              2 m n k per matrix, on every rank that has it
/// @throws Error if a triangular factor of a matrix has a zero on its diagonal. Rounding may hide
///              that the rank is not full: svd tells
template <class... R, AnyTensor A, AnyTensor B>
constexpr auto lstsq(const A& a, const B& b) {
  detail::require_lapack<A>();
  if constexpr (sizeof...(R) > 0 || !detail::has_rows_cut_alike<A, B>())
    return detail::solved<R...>(ops::LeastSquares{}, a, b);
  else if constexpr (B::dims == 2) return detail::solved_by_rows(a, b);
  else return squeeze(detail::solved_by_rows(a, unsqueeze(b, dim<-1>{})), dim<-1>{});
}
CLEAVE_USAGE(lstsq, "lstsq(a, b)")

}  // namespace cleave::inline v0
