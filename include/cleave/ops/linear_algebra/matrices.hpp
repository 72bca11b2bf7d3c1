// What the operations of linear algebra have in common: batches of matrices, which are the last two
// dimensions. Each rank computes with whole matrices: batches may be sharded, matrices are
// gathered.
#pragma once

#include <array>
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
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/shapes/diagonal.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/shapes/triangle.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::detail {

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

/// The loops over the matrices of arrays, whose dimensions before the last two are those of x.
template <class T, class... Y>
auto loops_over_matrices(const kernels::Strided<T>& x, const Y&... y) {
  return kernels::detail::loops_besides(3u << (x.extents.dims - 2), x.extents, x.strides,
                                        y.strides...);
}

}  // namespace cleave::detail
