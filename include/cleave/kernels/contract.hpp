// Contractions of arrays with any number of dimensions, as matrix products. Dimensions of one kind
// (in both operands and the result, in one operand and the result, summed over) are merged; arrays
// whose dimensions do not merge in place are copied.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <cleave/kernels/host/gemm.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::kernels {

/// Which dimensions of x, w and y = x · w correspond. Every dimension of y is one of x or w.
struct Contraction {
  /// One letter: its dimension in each array, or -1 if the array lacks it.
  struct Index {
    std::int8_t x = -1, w = -1, y = -1;
  };
  std::array<Index, 2 * std::size_t(max_dims)> index{};
  int count = 0;
};

namespace detail {

/// A loop nest over an array.
struct Loops {
  Shape extents{};
  Shape strides{};

  void add(index_t extent, index_t stride) {
    extents[extents.dims++] = extent;
    strides[strides.dims++] = stride;
  }
  index_t size() const { return extents.product(); }

  /// Whether the loops merge into one. @param stride  set to the stride of the merged loop
  bool merge(index_t& stride) const {
    bool found = false;
    index_t next = 0;
    stride = 1;
    for (int d = extents.dims - 1; d >= 0; --d) {
      if (extents[d] == 1) continue;
      if (found && strides[d] != next) return false;
      if (!found) stride = strides[d];
      found = true;
      next = strides[d] * extents[d];
    }
    return true;
  }
};

/// An operand or the result as a batch of matrices: loops over matrices, rows and columns.
template <class T>
struct Matrices {
  T* data = nullptr;
  Loops batch{}, rows{}, cols{};
  std::shared_ptr<void> memory{};  ///< owns the elements of a copy

  /// Whether rows and columns each merge into one loop. @param m  set to the first matrix
  bool merge(Matrix<T>& m) const {
    m = {data, rows.size(), cols.size(), 0, 1};
    return rows.merge(m.row_stride) && cols.merge(m.col_stride);
  }

  auto view() const {
    const Loops all = joined();
    using V = std::conditional_t<std::is_const_v<T>, ConstView, View>;
    return V{data, dtype_of<std::remove_const_t<T>>(), all.extents, all.strides};
  }

  /// Uninitialised memory of the same extents: contiguous matrices, one after another.
  template <class Device>
  Matrices<std::remove_const_t<T>> dense_like(Device device) const {
    Matrices<std::remove_const_t<T>> copy;
    copy.memory = allocate_bytes(device, std::size_t(joined().extents.product()) * sizeof(T));
    copy.data = static_cast<std::remove_const_t<T>*>(copy.memory.get());
    const Shape strides = row_major_strides(joined().extents);
    int next = 0;
    for (const auto& [from, to] : {std::pair(&batch, &copy.batch), std::pair(&rows, &copy.rows),
                                   std::pair(&cols, &copy.cols)})
      for (int d = 0; d < from->extents.dims; ++d) to->add(from->extents[d], strides[next++]);
    return copy;
  }

 private:
  Loops joined() const {
    Loops all = batch;
    for (const Loops* loops : {&rows, &cols})
      for (int d = 0; d < loops->extents.dims; ++d) all.add(loops->extents[d], loops->strides[d]);
    return all;
  }
};

/// The operand itself if its rows and columns merge, else a copy for which they do.
template <class Device, class T>
Matrices<const T> as_matrices(Device device, const Matrices<const T>& m) {
  Matrix<const T> matrix;
  if (m.merge(matrix)) return m;
  Matrices<T> copy = m.dense_like(device);
  strided_copy(device, m.view(), copy.view());
  return {copy.data, copy.batch, copy.rows, copy.cols, std::move(copy.memory)};
}

/// Whether gemm can write the result in place: its rows or its columns are contiguous.
template <class T>
bool can_write(const Matrices<T>& y) {
  Matrix<T> c;
  return y.merge(c) && (c.col_stride == 1 || c.cols == 1 || c.row_stride == 1 || c.rows == 1);
}

/// y = x · w, or y += x · w, for every matrix of the batch; one call of gemm_batched covers the
/// last batch loop.
template <class Device, class T>
void multiply_each(On<Device> on, Matrix<const T> x, const Loops& of_x, Matrix<const T> w,
                   const Loops& of_w, Matrix<T> y, const Loops& of_y, bool add) {
  const int last = of_y.extents.dims - 1;
  const Batches batches = last < 0 ? Batches{}
                                   : Batches{of_y.extents[last], of_x.strides[last],
                                             of_w.strides[last], of_y.strides[last]};
  Shape at = Shape::filled(of_y.extents.dims, 0);
  for (;;) {
    gemm_batched(on, x, w, y, batches, add);
    int d = last - 1;
    for (; d >= 0; --d) {
      const index_t step = ++at[d] < of_y.extents[d] ? 1 : 1 - at[d];
      x.data += step * of_x.strides[d];
      w.data += step * of_w.strides[d];
      y.data += step * of_y.strides[d];
      if (step == 1) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace detail

/// Whether y = x · w + bias was computed at once: devices that can overload this.
template <class Device, class T>
bool gemm_with_bias(On<Device>, const Matrix<const T>&, const Matrix<const T>&, const Matrix<T>&,
                    const T*) {
  return false;
}

/// The array as a matrix whose columns are its last dimension.
/// @return whether the others merge into rows
template <class T>
bool as_rows(const Strided<T>& s, Matrix<T>& m) {
  const int last = s.extents.dims - 1;
  detail::Matrices<T> rows{s.data};
  for (int d = 0; d < last; ++d) rows.rows.add(s.extents[d], s.strides[d]);
  rows.cols.add(s.extents[last], s.strides[last]);
  return rows.merge(m);
}

/// y = x · w, or y += x · w, summed over the letters that y lacks.
///
/// Extents of 1 in x or w repeat along letters of all three arrays. @see gemm on accumulation
///
/// @pre otherwise extents agree, and every letter occurs in at least two of x, w and y
/// @cost a copy of x, w or y if its dimensions of one kind do not merge into one stride
template <class Device, class T>
void contract(On<Device> on, const Contraction& letters, const Strided<T>& y,
              const Strided<const T>& x, const Strided<const T>& w, bool add = false) {
  detail::Matrices<const T> a{x.data}, b{w.data};
  detail::Matrices<T> c{y.data};
  const auto step = [](const auto& operand, int d, index_t extent) {
    return operand.extents[d] == 1 && extent != 1 ? 0 : operand.strides[d];
  };
  for (int i = 0; i < letters.count; ++i) {
    const Contraction::Index& at = letters.index[std::size_t(i)];
    const index_t extent = at.y >= 0 ? y.extents[at.y] : x.extents[at.x];
    if (at.x >= 0 && at.w >= 0 && at.y >= 0) {
      a.batch.add(extent, step(x, at.x, extent));
      b.batch.add(extent, step(w, at.w, extent));
      c.batch.add(extent, y.strides[at.y]);
    } else if (at.y < 0) {
      a.cols.add(extent, x.strides[at.x]);
      b.rows.add(extent, w.strides[at.w]);
    } else if (at.x >= 0) {
      a.rows.add(extent, x.strides[at.x]);
      c.rows.add(extent, y.strides[at.y]);
    } else {
      b.cols.add(extent, w.strides[at.w]);
      c.cols.add(extent, y.strides[at.y]);
    }
  }
  if (c.batch.size() * c.rows.size() * c.cols.size() == 0) return;
  const detail::Matrices<const T> left = as_matrices(Device{}, a), right = as_matrices(Device{}, b);
  const detail::Matrices<T> result = can_write(c) ? c : c.dense_like(Device{});
  if (add && result.data != c.data) strided_copy(Device{}, c.view(), result.view());
  Matrix<const T> p, q;
  Matrix<T> r;
  left.merge(p), right.merge(q), result.merge(r);
  if (r.col_stride == 1 || r.cols == 1)
    detail::multiply_each(on, p, left.batch, q, right.batch, r, result.batch, add);
  else  // y^T = w^T · x^T
    detail::multiply_each(on, transposed(q), right.batch, transposed(p), left.batch, transposed(r),
                          result.batch, add);
  if (result.data != c.data) strided_copy(Device{}, result.view(), c.view());
}

}  // namespace cleave::inline v0::kernels
