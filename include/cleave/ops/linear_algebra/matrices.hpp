// What the operations of linear algebra have in common: batches of matrices, which are the last two
// dimensions. Each rank computes with whole matrices: batches may be sharded, matrices are
// gathered.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/host/lapack.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/shapes/diagonal.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/triangle.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::detail {

/// The letters of the last two of so many dimensions: what a matrix consists of.
constexpr RuleText matrix_letters(int dims) { return dim_letters(dims - 2, dims); }

/// For an operation on the matrices of X: whether there is a LAPACK, and element types that it has.
template <class X>
constexpr void require_lapack() {
#if CLEAVE_HAS_LAPACK
  constexpr bool found = true;
#else
  constexpr bool found = false;
#endif
  using T = typename X::value_type;
  static_assert(found || sizeof(X) == 0,
                "cleave: LAPACK was not found when this was built: install the Debian package "
                "libopenblas-dev (Meson option blas)");
  static_assert(X::dims >= 2, "cleave: linear algebra requires matrices, two dimensions or more");
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                    std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>,
                "cleave: linear algebra takes float, double and complex numbers of both; call "
                "cast<double>(x)");
  static_assert(std::is_same_v<typename X::device_type, Host>,
                "cleave: linear algebra runs on the host; call x.to_host() first");
}

/// @throws Error if the matrices of x are not square
template <class X>
constexpr void require_square(const char* operation, const X& x) {
  require_lapack<X>();
  const Shape shape = shape_of(x);
  if (shape[X::dims - 2] != shape[X::dims - 1] && knows_extents(x))
    throw Error(operation, "the matrices are not square", context_of(x));
}

/// A call fails for the matrix of the first operand that begins at `offset`: "matrix [2, 0] is
/// singular", with its global indices in the batch.
/// @param problem  "is singular"
[[noreturn]] inline void fail_for_matrix(const cleave::Task& task, index_t offset,
                                         const std::string& problem) {
  const OperandRef& x = task.in[0];
  const int batch = x.dims - 2;
  Shape at = Shape::filled(batch, 0);
  const auto reached = [&] {
    index_t sum = 0;
    for (int d = 0; d < batch; ++d) sum += at[d] * x.strides[d];
    return sum;
  };
  for (int d = batch - 1; reached() != offset && d >= 0;) {  // the next index, row-major
    d = batch - 1;
    while (d >= 0 && ++at[d] == x.extents[d]) at[d--] = 0;
  }
  if (x.layout != nullptr)
    for (int d = 0; d < batch; ++d) {
      const DimOwnership own(*x.layout, {0, 1, 2, 3, 4, 5, 6, 7}, d, x.shape[d], x.mesh->extents());
      at[d] = own.global(own.parts_of(x.mesh->coordinate()), at[d]);
    }
  task.fail((batch == 0 ? "the matrix " : "matrix " + to_string(at) + " ") + problem);
}

/// The same for a matrix of which one element of a factor is 0. @param which  from 1 on
[[noreturn]] inline void fail_as_singular(const cleave::Task& task, index_t offset,
                                          const char* element, int which) {
  fail_for_matrix(
      task, offset,
      "is singular: its " + std::string(element) + " " + std::to_string(which) + " is 0");
}

/// conj(transpose(x))
template <class X>
constexpr auto adjoint(const X& x) {
  return conj(transpose(x, dim<-2, -1>{}));
}

/// The lower triangle of x with half of its diagonal.
template <class X>
constexpr auto half_triangle(const X& x) {
  return sub(tril(x), mul(diag(diagonal(x)), 0.5));
}

/// An extent as LAPACK counts.
inline int lapack_extent(const cleave::Task& task, index_t extent) {
  if (extent > std::numeric_limits<int>::max())
    task.fail("LAPACK counts in 32 bits: " + std::to_string(extent) + " is too large");
  return int(extent);
}

/// The letters of the batch dimensions of so many dimensions.
constexpr RuleText batch_letters(int dims) { return dim_letters(0, dims - 2); }

/// x[i, j] / (w[j] - w[i]), and 0 where the two are equal, as on the diagonal.
///
/// @param x  [.., k, k]
/// @param w  [.., k], real
template <class X>
constexpr auto over_differences(const X& x, const auto& w) {
  using T = typename X::value_type;
  const auto differences = sub(unsqueeze(w, dim<-2>{}), unsqueeze(w, dim<-1>{}));
  const auto differ = sub(1, call_op(IsZero{}, differences));
  return mul(x, cast<T>(div(differ, call_op(OrOne{}, differences))));
}

/// Copies a matrix to dense memory, or dense memory to a matrix, row by row; the columns one after
/// the other if `by_columns`.
template <class T>
void pack_matrix(const T* from, const kernels::Strided<const T>& of, T* dense, bool by_columns) {
  const int d = of.extents.dims - 2, r = by_columns ? d + 1 : d, c = by_columns ? d : d + 1;
  pack_view(
      ConstView{from, dtype_of<T>(), Shape(std::array<index_t, 2>{of.extents[r], of.extents[c]}),
                Shape(std::array<index_t, 2>{of.strides[r], of.strides[c]})},
      dense);
}
template <class T>
void unpack_matrix(const T* dense, T* to, const kernels::Strided<T>& of, bool by_columns) {
  const int d = of.extents.dims - 2, r = by_columns ? d + 1 : d, c = by_columns ? d : d + 1;
  unpack_view(dense,
              View{to, dtype_of<T>(), Shape(std::array<index_t, 2>{of.extents[r], of.extents[c]}),
                   Shape(std::array<index_t, 2>{of.strides[r], of.strides[c]})});
}

/// Whether no element is infinite or NaN.
template <class T>
bool are_finite(const T* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(std::real(x[i])) || !std::isfinite(std::imag(x[i]))) return false;
  return true;
}

/// The loops over the matrices of arrays, whose dimensions before the last two are those of x.
template <class T, class... Y>
auto loops_over_matrices(const kernels::Strided<T>& x, const Y&... y) {
  return kernels::detail::loops_besides(3u << (x.extents.dims - 2), x.extents, x.strides,
                                        y.strides...);
}

}  // namespace cleave::inline v0::detail
