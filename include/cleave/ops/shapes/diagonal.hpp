// Diagonals of matrices, traces and diagonal matrices: diagonal, trace, diag; and outer products.
//
//     // y[S0] = diagonal(x[S0,R])     y[P] = diagonal(x[S1])     no communication
//     // y[S0,R] = diag(x[S0])
#pragma once

#include <array>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/products/einsum.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace kernels {

/// A view of the diagonal elements in x, whose last two dimensions are a block of a matrix. The
/// elements lie along the view's last dimension.
///
/// @param row, column  global indices of the first element of x
/// @param skipped      set to the number of rows of x before the first diagonal element
template <class T>
Strided<T> diagonal_of(const Strided<T>& x, index_t row, index_t column, index_t& skipped) {
  const int d = x.extents.dims - 2;
  const index_t first = row > column ? row : column;
  const index_t row_end = row + x.extents[d], column_end = column + x.extents[d + 1];
  const index_t end = row_end < column_end ? row_end : column_end;
  Strided<T> part = x;
  part.extents.dims = part.strides.dims = d + 1;
  part.extents[d] = first < end ? end - first : 0;
  part.strides[d] = x.strides[d] + x.strides[d + 1];
  skipped = first < end ? first - row : 0;
  if (first < end) part.data += skipped * x.strides[d] + (first - column) * x.strides[d + 1];
  return part;
}

}  // namespace kernels

namespace ops {

/// y[.., i] = x[.., i, i]. If columns are sharded, a rank stores zeros for the elements of other
/// ranks; the result is the sum over ranks.
struct Diagonal {
  static constexpr const char* name = "diagonal";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    using cleave::detail::dim_letters;
    return cleave::detail::factors_text(dim_letters(0, dims[0]), dim_letters(0, dims[0] - 1));
  }
  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x) {
    fill_elements(on, y, T(0));
    if (x.extents.product() == 0) return;
    const int row = x.extents.dims - 2;
    index_t skipped = 0;
    const auto part = diagonal_of(x, task.in_box->begin[row], task.in_box->begin[row + 1], skipped);
    copy_elements(on, part, every(y, row, skipped, 1, part.extents[row]));
  }
  template <class X>
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X& x);
};

/// y[.., i, j] = x[.., i] where i == j, else 0.
struct Diag {
  index_t extent = 0;

  static constexpr const char* name = "diag";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    using cleave::detail::dim_letters;
    return cleave::detail::factors_text(dim_letters(0, dims[0]), dim_letters(0, dims[0] + 1));
  }
  constexpr Shape extents() const { return Shape::filled(1, extent); }
  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    fill_elements(on, y, T(0));
    if (y.extents.product() == 0) return;
    const int row = y.extents.dims - 2;
    index_t skipped = 0;
    const auto part = diagonal_of(y, task.box->begin[row], task.box->begin[row + 1], skipped);
    copy_elements(on, every(x, row, skipped, 1, part.extents[row]), part);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) {
    return call_op(Diagonal{}, g);
  }
};

template <class X>
constexpr auto Diagonal::gradient(wrt<0>, const auto& g, const auto&, const X& x) {
  return cleave::detail::call_as(cleave::detail::like(x), Diag{shape_of(x)[X::dims - 1]}, g);
}

}  // namespace ops

/// The diagonals x[.., i, i] of square matrices, which are the last two dimensions.
///
/// @return    [.., n]; Partial<Sum> on the axes that shard the columns
/// @throws Error if the matrices are not square
template <class... R, AnyTensor X>
constexpr auto diagonal(const X& x) {
  static_assert(X::dims >= 2, "cleave: diagonal requires at least two dimensions");
  const Shape shape = shape_of(x);
  if (shape[X::dims - 2] != shape[X::dims - 1] && detail::knows_extents(x))
    throw Error("diagonal", "the matrix is not square", detail::context_of(x));
  return call_op<R...>(ops::Diagonal{}, x);
}
CLEAVE_USAGE(diagonal, "diagonal(x)")

/// Diagonal matrices with x on their diagonals: [.., n] becomes [.., n, n]. Shards of x become
/// shards of the rows.
template <class... R, AnyTensor X>
constexpr auto diag(const X& x) {
  static_assert(X::dims >= 1, "cleave: diag requires at least one dimension");
  return call_op<R...>(ops::Diag{shape_of(x)[X::dims - 1]}, x);
}
CLEAVE_USAGE(diag, "diag(x)")

/// The sum of the diagonal of each matrix: [.., n, n] becomes [..]; Partial<Sum> on the axes that
/// shard rows or columns. @see diagonal
template <class... R, AnyTensor X>
constexpr auto trace(const X& x) {
  return sum<R...>(diagonal(x), dim<-1>{});
}
CLEAVE_USAGE(trace, "trace(x)")

/// The outer product of two vectors: y[i, j] = a[i] · b[j].
template <class... R, AnyTensor A, AnyTensor B>
constexpr auto outer(const A& a, const B& b) {
  static_assert(A::dims == 1 && B::dims == 1, "cleave: outer takes two arrays of one dimension");
  return einsum<R...>(Einsum<'i', ',', 'j', '-', '>', 'i', 'j'>{}, a, b);
}
CLEAVE_USAGE(outer, "outer(a, b)")

}  // namespace cleave::inline v0
