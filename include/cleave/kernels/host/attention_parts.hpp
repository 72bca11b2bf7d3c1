// The contribution of one rank's keys to attention: the largest product of each query, the sums of
// exponentials, and the sums of values weighted by these.
#pragma once

#include <algorithm>
#include <limits>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/host/attention_blocks.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// Calls f(index, row) for all heads of q; `row` is the head's first row, numbered across heads.
template <class F>
void each_numbered_head(Shape extents, const F& f) {
  const int row = extents.dims - 2;
  extents[row + 1] = 1;  // heads exist even if d = 0
  index_t head = 0;
  each_head(extents, [&](const index_t* index) { f(index, head++ * extents[row]); });
}

}  // namespace detail

/// The largest product of each query with the keys it attends to, divided by sqrt(d); -infinity if
/// it attends to none.
///
/// @param mask  an AttentionMask, or an AttentionArray
/// @param out   [b.., g.., n], row-major and contiguous
/// @param q     [b.., g.., n, d], any strides
/// @param k     [b.., m, d], likewise; m may be 0
template <class Mask, class T>
void attention_largest(On<Host>, const Mask& mask, const Strided<T>& out, const Strided<const T>& q,
                       const Strided<const T>& k) {
  std::fill_n(out.data, out.extents.product(), -std::numeric_limits<T>::infinity());
  const detail::Scratch<T> products(detail::query_block * detail::key_block);
  detail::each_numbered_head(q.extents, [&](const index_t* index, index_t first) {
    const auto seen = mask.at_head(index, q.extents.dims);
    detail::each_attention_block(
        seen, detail::head_of(q, index), detail::head_of(k, index), products.data(),
        [&](const detail::AttentionBlock<T>& block) {
          for (index_t r = 0; r < block.queries; ++r) {
            T& largest = out.data[first + block.first_query + r];
            const index_t keys = block.seen_by(r, seen);
            largest = larger(largest, detail::reduce_row<Max, T>(block.row(r), keys, 1));
          }
        });
  });
}

/// Sums over the keys that a query attends to: of exp(product - shift), and of the values times
/// these exponentials.
///
/// @param y       [b.., g.., n, e], row-major and contiguous
/// @param totals  [b.., g.., n], likewise
/// @param shifts  [b.., g.., n], any strides
template <class Mask, class T>
void attention_sums(On<Host>, const Mask& mask, const Strided<T>& y, const Strided<T>& totals,
                    const Strided<const T>& shifts, const Strided<const T>& q,
                    const Strided<const T>& k, const Strided<const T>& v) {
  std::fill_n(y.data, y.extents.product(), T(0));
  std::fill_n(totals.data, totals.extents.product(), T(0));
  const detail::Scratch<T> products(detail::query_block * detail::key_block);
  detail::each_numbered_head(q.extents, [&](const index_t* index, index_t first) {
    const auto seen = mask.at_head(index, q.extents.dims);
    const Matrix<T> result = detail::head_of(y, index);
    const Matrix<const T> values = detail::head_of(v, index);
    detail::each_attention_block(
        seen, detail::head_of(q, index), detail::head_of(k, index), products.data(),
        [&](const detail::AttentionBlock<T>& block) {
          for (index_t r = 0; r < block.queries; ++r) {
            const index_t query = block.first_query + r;
            detail::exponentials(block.row(r), block.seen_by(r, seen), block.keys,
                                 detail::element_of(shifts, index, query));
            totals.data[first + query] += detail::reduce_row<Sum, T>(block.row(r), block.keys, 1);
          }
          gemm(On<Host>{}, block.read(), detail::rows_of(values, block.first_key, block.keys),
               detail::rows_of(result, block.first_query, block.queries), true);
        });
  });
}

}  // namespace cleave::inline v0::kernels
