// The keys that queries attend to: all, those up to their own position, or as given by an array.
#pragma once

#include <limits>
#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

/// The keys that a query attends to.
struct AttentionMask {
  bool is_causal = false;   ///< the keys up to its own position, else all
  index_t first_query = 0;  ///< the position of the first query
  index_t first_key = 0;    ///< the position of the first key

  const AttentionMask& at_head(const index_t*, int) const { return *this; }
  void apply(const auto&) const {}
};

namespace detail {

/// The array with strides of 0 along dimensions of extent 1, so that its elements repeat.
template <class T>
Strided<T> repeating(Strided<T> x) {
  for (int d = 0; d < x.extents.dims; ++d)
    if (x.extents[d] == 1) x.strides[d] = 0;
  return x;
}

/// The matrix of one head; the first entries of `index` are for the array's leading dimensions.
template <class T>
Matrix<T> head_of(const Strided<T>& x, const index_t* index) {
  const int row = x.extents.dims - 2;
  T* data = x.data;
  for (int d = 0; d < row; ++d) data += index[d] * x.strides[d];
  return {data, x.extents[row], x.extents[row + 1], x.strides[row], x.strides[row + 1]};
}

/// The mask of one head, given by an array.
template <class M>
struct HeadMask : AttentionMask {
  Matrix<const M> of{};

  /// Applies the mask to the products of a block. @see AttentionBlock
  template <class Block>
  void apply(const Block& block) const {
    for (index_t r = 0; r < block.queries; ++r) {
      auto* const products = block.row(r);
      const M* const row =
          of.data + (block.first_query + r) * of.row_stride + block.first_key * of.col_stride;
      for (index_t j = 0; j < block.keys; ++j) {
        using T = std::remove_reference_t<decltype(products[j])>;
        const M& m = row[j * of.col_stride];
        if constexpr (std::is_same_v<M, bool>)
          products[j] = m ? products[j] : -std::numeric_limits<T>::infinity();
        else products[j] += m;
      }
    }
  }
};

}  // namespace detail

/// A mask array: bools that select the keys of a query, or numbers that are added to the products.
template <class M>
struct AttentionArray {
  Strided<const M> of;  ///< [.., n, m], the last dimensions of the products; extents of 1 repeat

  /// @param index  index of the head in the dimensions of q before the last two
  detail::HeadMask<M> at_head(const index_t* index, int dims) const {
    return {{}, detail::head_of(detail::repeating(of), index + (dims - of.extents.dims))};
  }
};

}  // namespace cleave::inline v0::kernels
