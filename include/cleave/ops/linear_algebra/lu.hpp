// LU factors of matrices.
//
//     // p[S0,R,R], l[S0,R,R], u[S0,R,R] = lu(a[S0,R,R])     a batch: no communication
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <cleave/kernels/host/lapack.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/linear_algebra/matrices.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/shapes/cat.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/triangle.hpp>

namespace cleave::inline v0 {

namespace ops {

/// p, l and u with a = p l u. @see lu
struct LuFactors {
  index_t rows = 0;
  index_t rank = 0;  ///< the smaller one of both extents

  static constexpr const char* name = "lu";
  template <class T>
  using result_of = Types<T, T, T>;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    const RuleText batch = cleave::detail::batch_letters(dims[0]);
    return cleave::detail::joined(batch, "xy->", batch, "xz,", batch, "xk,", batch, "ky");
  }
  static constexpr const char* replicated = "xyzk";
  constexpr Shape extents() const { return Shape(std::array<index_t, 2>{rows, rank}); }
  template <class T>
  static void kernel(const kernels::On<Host>&, const Task& task, const kernels::Strided<T>& p,
                     const kernels::Strided<T>& l, const kernels::Strided<T>& u,
                     const kernels::Strided<const T>& x) {
    if (p.extents.product() == 0) return;
    const int d = x.extents.dims - 2, m = cleave::detail::lapack_extent(task, x.extents[d]),
              n = cleave::detail::lapack_extent(task, x.extents[d + 1]), k = std::min(m, n);
    std::vector<T> a(std::size_t(m) * std::size_t(n)), part;
    std::vector<int> pivots(static_cast<std::size_t>(k)), from_row(static_cast<std::size_t>(m));
    const auto unpack = [&](const kernels::Strided<T>& y, index_t to, const auto& element) {
      part.clear();
      for (int j = 0; j < y.extents[d + 1]; ++j)
        for (int i = 0; i < y.extents[d]; ++i) part.push_back(element(i, j));
      cleave::detail::unpack_matrix(part.data(), y.data + to, y, true);
    };
    const auto factor = [&](int i, int j) {
      return a[std::size_t(i) + std::size_t(j) * std::size_t(m)];
    };
    cleave::detail::loops_over_matrices(x, p, l, u)
        .each([&](index_t from, index_t to_p, index_t to_l, index_t to_u) {
          if (k > 0) {
            cleave::detail::pack_matrix(x.data + from, x, a.data(), true);
            kernels::factorize_in_place(m, n, a.data(), pivots.data());
          }
          std::iota(from_row.begin(), from_row.end(), 0);
          for (int i = 0; i < k; ++i)
            std::swap(from_row[std::size_t(i)], from_row[std::size_t(pivots[std::size_t(i)] - 1)]);
          unpack(p, to_p, [&](int i, int j) { return T(from_row[std::size_t(j)] == i ? 1 : 0); });
          unpack(l, to_l, [&](int i, int j) { return i > j ? factor(i, j) : T(i == j ? 1 : 0); });
          unpack(u, to_u, [&](int i, int j) { return i > j ? T(0) : factor(i, j); });
        });
  }
  // With x = l^-1 p^T da u^-1 of the first k rows and columns: dl = l tril(x, -1), du = triu(x) u.
  // Further rows of l are those of p^T da times u^-1, further columns of u l^-1 times those of it.
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto&) {
    using cleave::detail::adjoint;
    const auto& [p, l, u] = y;
    constexpr int d = std::remove_cvref_t<decltype(p)>::dims - 2;
    constexpr dim<d> rows;
    constexpr dim<d + 1> columns;
    constexpr TriangularSolve solve{{}, Side::upper};
    const index_t m = shape_of(l)[d], k = shape_of(l)[d + 1], n = shape_of(u)[d + 1];
    const auto& of_l = std::get<1>(g);
    const auto& of_u = std::get<2>(g);
    const auto of_below = narrow(of_l, rows, k, m - k);
    const auto of_right = narrow(of_u, columns, k, n - k);
    const auto triangles = add(tril(matmul(adjoint(l), of_l), -1), triu(matmul(of_u, adjoint(u))));
    const auto of_x = sub(sub(triangles, matmul(adjoint(narrow(l, rows, k, m - k)), of_below)),
                          matmul(of_right, adjoint(narrow(u, columns, k, n - k))));
    const auto by_l = call_op(solve, adjoint(narrow(l, rows, 0, k)), cat(columns, of_x, of_right));
    const auto left = cat(rows, narrow(by_l, columns, 0, k), of_below);
    const auto by_u = adjoint(call_op(solve, narrow(u, columns, 0, k), adjoint(left)));
    const auto right = call_op(Embed<d>{m, 0, 1}, narrow(by_l, columns, k, n - k));
    return matmul(p, cat(columns, by_u, right));
  }
};

}  // namespace ops

/// The factors of matrices with partial pivoting (LAPACK's getrf), a = p l u:
/// `const auto [p, l, u] = lu(a)`.
///
/// p is a matrix, as in NumPy and PyTorch, so that it can be multiplied with; LAPACK's pivots are
/// of use to its functions only. To solve a system, call solve, which keeps the factors to itself.
///
/// @param a     [.., m, n], float, double or complex; k = min(m, n)
/// @return      a std::tuple of p [.., m, m], which permutes rows, l [.., m, k], a lower triangle
///              with ones on its diagonal, and u [.., k, n], an upper one; batches sharded as they
///              are. Gradients require that the first k rows and columns of p^T a are not singular
/// @collective  every rank of the mesh, if the last two dimensions are sharded: they are gathered
/// @cost        m n k - (m + n) k²/2 + k³/3 multiplications and additions per matrix, on every rank
///              that has it
template <AnyTensor A>
constexpr auto lu(const A& a) {
  detail::require_lapack<A>();
  const Shape shape = shape_of(a);
  const index_t m = shape[A::dims - 2], n = shape[A::dims - 1];
  return call_op(ops::LuFactors{m, m < n ? m : n}, a);
}
CLEAVE_USAGE(lu, "lu(a)")

}  // namespace cleave::inline v0
