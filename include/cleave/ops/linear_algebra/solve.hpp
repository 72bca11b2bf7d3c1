// Systems of linear equations and inverses: solve, triangular_solve, inv.
//
//     // x[S0,R,R] = solve(a[S0,R,R], b[S0,R,R])     a batch: no communication
//     // x[R,S1]   = solve(a[S0,R], b[R,S1])         one matrix: it is gathered, right-hand sides
//     stay
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/lapack.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/triangle.hpp>

namespace cleave::inline v0 {

/// The side of a matrix that counts, with the diagonal.
enum class Side : std::uint8_t { lower, upper };

namespace ops {

/// The rule of a x = b, [.., n, n] · [.., n, k]: batches and right-hand sides may be sharded.
struct LinearSystem {
  static constexpr RuleText factors(const std::array<int, 2>& dims) {
    using cleave::detail::dim_letters;
    const RuleText batch = dim_letters(0, dims[0] - 2);
    return cleave::detail::joined(batch, "xy,", batch, "yz->", batch, "xz");
  }
  static constexpr const char* replicated = "xy";
  static constexpr const char* partials = "R,sum->sum; R,avg->avg";
};

/// The inverses of matrices.
struct Inverse {
  static constexpr const char* name = "inv";
  static constexpr auto factors = Elementwise::factors<1>;
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return cleave::detail::matrix_letters(dims[0]);
  }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x) {
    if (x.extents.product() == 0) return;
    const int n = cleave::detail::lapack_extent(task, x.extents[x.extents.dims - 1]);
    const int work = n < 32 ? n : 32 * n;
    std::vector<T> buffer(std::size_t(n) * std::size_t(n) + std::size_t(work));
    std::vector<int> pivots(static_cast<std::size_t>(n));
    cleave::detail::loops_over_matrices(x, y).each([&](index_t from, index_t to) {
      T* const a = buffer.data();
      cleave::detail::pack_matrix(x.data + from, x, a, false);
      int row = kernels::factorize_in_place(n, a, pivots.data());
      if (row == 0)
        row = kernels::invert_in_place(n, a, pivots.data(), a + std::size_t(n) * std::size_t(n),
                                       work);
      if (row != 0) cleave::detail::fail_as_singular(task, from, "pivot", row);
      cleave::detail::unpack_matrix(a, y.data + to, y, false);
    });
  }
  // dL/da = -y^H g y^H
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    const auto left = cleave::detail::adjoint(y);
    return neg(matmul(matmul(left, g), left));
  }
};

/// The solutions x of a x = b.
struct Solve : LinearSystem {
  static constexpr const char* name = "solve";
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& x,
                     const kernels::Strided<const T>& a, const kernels::Strided<const T>& b) {
    if (x.extents.product() == 0) return;
    const int n = cleave::detail::lapack_extent(task, x.extents[x.extents.dims - 2]);
    const int columns = cleave::detail::lapack_extent(task, x.extents[x.extents.dims - 1]);
    std::vector<T> factors(std::size_t(n) * std::size_t(n));
    std::vector<T> sides(std::size_t(n) * std::size_t(columns));
    std::vector<int> pivots(static_cast<std::size_t>(n));
    cleave::detail::loops_over_matrices(x, a, b).each([&](index_t to, index_t of, index_t from) {
      cleave::detail::pack_matrix(a.data + of, a, factors.data(), false);
      if (const int row = kernels::factorize_in_place(n, factors.data(), pivots.data()); row != 0)
        cleave::detail::fail_as_singular(task, of, "pivot", row);
      cleave::detail::pack_matrix(b.data + from, b, sides.data(), true);
      kernels::solve_in_place(n, columns, factors.data(), pivots.data(), sides.data());
      cleave::detail::unpack_matrix(sides.data(), x.data + to, x, true);
    });
  }
  // dL/db = a^-H g,  dL/da = -dL/db x^H
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto&) {
    return call_op(Solve{}, cleave::detail::adjoint(a), g);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& x, const auto& a,
                                 const auto& b) {
    return neg(matmul(gradient(wrt<1>{}, g, x, a, b), cleave::detail::adjoint(x)));
  }
};

/// The solutions x of a x = b, where a is a triangle: what is on its other side is not read.
struct TriangularSolve : LinearSystem {
  Side side = Side::lower;

  static constexpr const char* name = "triangular_solve";
  template <class T>
  void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& x,
              const kernels::Strided<const T>& a, const kernels::Strided<const T>& b) const {
    if (x.extents.product() == 0) return;
    const int n = cleave::detail::lapack_extent(task, x.extents[x.extents.dims - 2]);
    const int columns = cleave::detail::lapack_extent(task, x.extents[x.extents.dims - 1]);
    std::vector<T> triangle(std::size_t(n) * std::size_t(n));
    std::vector<T> sides(std::size_t(n) * std::size_t(columns));
    cleave::detail::loops_over_matrices(x, a, b).each([&](index_t to, index_t of, index_t from) {
      cleave::detail::pack_matrix(a.data + of, a, triangle.data(), false);
      cleave::detail::pack_matrix(b.data + from, b, sides.data(), true);
      if (const int row = kernels::solve_triangle_in_place(side == Side::upper, n, columns,
                                                           triangle.data(), sides.data());
          row != 0)
        cleave::detail::fail_as_singular(task, of, "diagonal element", row);
      cleave::detail::unpack_matrix(sides.data(), x.data + to, x, true);
    });
  }
  constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& a, const auto&) const {
    const Side other = side == Side::lower ? Side::upper : Side::lower;
    return call_op(TriangularSolve{{}, other}, cleave::detail::adjoint(a), g);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto& x, const auto& a,
                          const auto& b) const {
    const auto both = neg(matmul(gradient(wrt<1>{}, g, x, a, b), cleave::detail::adjoint(x)));
    return side == Side::lower ? tril(both) : triu(both);
  }
};

}  // namespace ops

namespace detail {

/// Calls an operation on matrices a and right-hand sides b, which may be vectors.
template <class... R, class Op, class A, class B>
constexpr auto solved(const Op& op, const A& a, const B& b) {
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the matrices and the right-hand sides have different element types; cast "
                "one of them");
  static_assert(A::dims == B::dims || A::dims == B::dims + 1,
                "cleave: right-hand sides are [.., n, k], or [.., n], with the batches of the "
                "matrices [.., n, n]");
  if constexpr (A::dims == B::dims) {
    return call_op<R...>(op, a, b);
  } else {
    static_assert(sizeof...(R) == 0,
                  "cleave: placements are asked for right-hand sides [.., n, k]");
    return squeeze(call_op(op, a, unsqueeze(b, dim<-1>{})), dim<-1>{});
  }
}

}  // namespace detail

/// The solution x of a x = b, by LU factorisation with partial pivoting (LAPACK's getrf, getrs).
///
/// @param a     [.., n, n], float, double or complex
/// @param b     [.., n, k], or [.., n], with the same batch dimensions
/// @return      the shape of b; batches and k stay sharded as they are
/// @collective  every rank of the mesh, if n is sharded: a and b are redistributed so that each
///              rank has whole matrices, and its own right-hand sides
/// @cost        2 n³/3 + 2 n² k multiplications and additions per matrix, on every rank that has it
/// @throws Error if a matrix is not square, or exactly singular
template <class... R, AnyTensor A, AnyTensor B>
constexpr auto solve(const A& a, const B& b) {
  detail::require_square("solve", a);
  return detail::solved<R...>(ops::Solve{}, a, b);
}
CLEAVE_USAGE(solve, "solve(a, b)")

/// The solution x of a x = b, where a is the lower triangle of what is given, or the upper one:
/// `triangular_solve(a, b, Side::upper)` (LAPACK's trtrs). The elements on the other side are not
/// read, and their gradients are 0. Otherwise as solve, at n² k multiplications and additions.
template <class... R, AnyTensor A, AnyTensor B>
constexpr auto triangular_solve(const A& a, const B& b, Side side = Side::lower) {
  detail::require_square("triangular_solve", a);
  return detail::solved<R...>(ops::TriangularSolve{{}, side}, a, b);
}
CLEAVE_USAGE(triangular_solve, "triangular_solve(a, b), triangular_solve(a, b, Side::upper)")

/// The inverses of square matrices, by LU factorisation (LAPACK's getrf, getri). To solve a system,
/// call solve, which is faster and more accurate.
///
/// @param a     [.., n, n], float, double or complex
/// @return      the shape of a, with the batch dimensions sharded as they are
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered
/// @throws Error if a matrix is not square, or exactly singular
template <class... R, AnyTensor A>
constexpr auto inv(const A& a) {
  detail::require_square("inv", a);
  return call_op<R...>(ops::Inverse{}, a);
}
CLEAVE_USAGE(inv, "inv(a)")

}  // namespace cleave::inline v0
