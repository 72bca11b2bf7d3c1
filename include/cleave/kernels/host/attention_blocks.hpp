// Attention in blocks of queries and keys: y = softmax(q k^T / sqrt(d)) v and its gradients. The
// products of all queries with all keys are never stored.
//
// The softmax is computed online, one block of keys after another: the largest product so far, the
// sum of exponentials shifted by it and the weighted sum of values are kept per query, and rescaled
// when the largest product changes. Gradients recompute the weights of a block from the logarithm
// of the sum of exponentials.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/host/attention_mask.hpp>
#include <cleave/kernels/host/gemm.hpp>
#include <cleave/kernels/host/reduce_dims.hpp>
#include <cleave/kernels/host/whole_rows.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// The numbers of queries and of keys in a block.
inline constexpr index_t query_block = 128, key_block = 256;

template <class T>
Matrix<T> rows_of(const Matrix<T>& x, index_t first, index_t count) {
  return {x.data + first * x.row_stride, count, x.cols, x.row_stride, x.col_stride};
}

/// Calls f(index) for all indices of the dimensions before the last two.
template <class F>
void each_head(const Shape& extents, const F& f) {
  index_t index[max_dims] = {};
  if (extents.product() == 0) return;
  for (;;) {
    f(static_cast<const index_t*>(index));
    int d = extents.dims - 3;
    for (; d >= 0 && ++index[d] == extents[d]; --d) index[d] = 0;
    if (d < 0) return;
  }
}

/// A block of queries, a block of keys, and their products.
template <class T>
struct AttentionBlock {
  index_t first_query, queries, first_key, keys;
  T* products;  ///< [queries, keys]

  Matrix<T> all() const { return {products, queries, keys, keys, 1}; }
  Matrix<const T> read() const { return {products, queries, keys, keys, 1}; }
  T* row(index_t r) const { return products + r * keys; }

  /// The number of keys that query r attends to; they are the first of the block.
  index_t seen_by(index_t r, const AttentionMask& mask) const {
    if (!mask.is_causal) return keys;
    const index_t query = mask.first_query + first_query + r;
    return std::clamp<index_t>(query + 1 - mask.first_key - first_key, 0, keys);
  }
};

/// Calls f(block) for the blocks of one head that causality does not mask entirely, one block of
/// queries after another; the block's products are computed and divided by sqrt(d).
/// @param products  scratch memory for the products of a block
template <class Mask, class T, class F>
void each_attention_block(const Mask& mask, const Matrix<const T>& q, const Matrix<const T>& k,
                          T* products, const F& f) {
  const T scale = T(q.cols > 0 ? 1 / std::sqrt(double(q.cols)) : 1);
  for (index_t i = 0; i < q.rows; i += query_block) {
    const index_t queries = std::min(query_block, q.rows - i);
    for (index_t j = 0; j < k.rows; j += key_block) {
      if (mask.is_causal && mask.first_key + j >= mask.first_query + i + queries) break;
      const AttentionBlock<T> block{i, queries, j, std::min(key_block, k.rows - j), products};
      gemm(On<Host>{}, rows_of(q, i, queries), transposed(rows_of(k, j, block.keys)), block.all());
      for (index_t at = 0; at < queries * block.keys; ++at) products[at] *= scale;
      mask.apply(block);
      f(block);
    }
  }
}

/// Replaces the products of a query by exp(product - shift), and those of masked keys by 0.
template <class T>
void exponentials(T* row, index_t seen, index_t keys, T shift) {
  for (index_t j = 0; j < seen; ++j) row[j] -= shift;
  exp_row(row, row, seen);
  std::fill(row + seen, row + keys, T(0));
}

/// Scratch memory of a kernel, as one array.
template <class T>
class Scratch {
 public:
  explicit Scratch(index_t count)
      : memory_(allocate_bytes(Host{}, std::size_t(count) * sizeof(T))) {}
  T* data() const { return static_cast<T*>(memory_.get()); }

 private:
  std::shared_ptr<void> memory_;
};

/// The softmax of a block of queries over the keys processed so far.
template <class T>
struct RunningSoftmax {
  T largest[query_block], total[query_block];

  /// Replaces products by weights, not yet normalised, and rescales the sums in `y`.
  /// @param y  the weighted sums of the block's queries so far
  void take(const AttentionBlock<T>& block, const AttentionMask& mask, const Matrix<T>& y) {
    constexpr T none = -std::numeric_limits<T>::infinity();
    const bool is_first = block.first_key == 0;
    for (index_t r = 0; r < block.queries; ++r) {
      T* const row = block.row(r);
      const index_t seen = block.seen_by(r, mask);
      const T before = is_first ? none : largest[r];
      const T now = larger(before, reduce_row<Max, T>(row, seen, 1));
      const T shift = now == none ? T(0) : now;
      exponentials(row, seen, block.keys, shift);
      const T sum = reduce_row<Sum, T>(row, block.keys, 1);
      largest[r] = now;
      if (is_first) {
        total[r] = sum;
      } else {
        const T faded = std::exp(before - shift);
        total[r] = total[r] * faded + sum;
        T* const out = y.data + r * y.row_stride;
        for (index_t e = 0; e < y.cols; ++e) out[e] *= faded;
      }
    }
  }
  /// Normalises y. A query without keys gets zeros, and a logarithm that makes its weights 0.
  void finish(index_t queries, const Matrix<T>& y, T* logarithms) const {
    for (index_t r = 0; r < queries; ++r) {
      const bool sees_nothing = total[r] == T(0);
      const T divisor = sees_nothing ? T(1) : total[r];
      T* const out = y.data + r * y.row_stride;
      for (index_t e = 0; e < y.cols; ++e) out[e] /= divisor;
      logarithms[r] = sees_nothing ? T(0) : largest[r] + std::log(total[r]);
    }
  }
};

/// The element for row `r` of a head, of an array that lacks the last dimension.
template <class T>
const T& element_of(const Strided<const T>& x, const index_t* index, index_t r) {
  const int row = x.extents.dims - 1;
  const T* at = x.data + r * x.strides[row];
  for (int d = 0; d < row; ++d) at += index[d] * x.strides[d];
  return *at;
}

}  // namespace detail

/// y = softmax(q k^T / sqrt(d)) v, and the logarithms of the softmax's denominators.
///
/// @param mask        an AttentionMask, or an AttentionArray
/// @param y           [b.., g.., n, e], row-major and contiguous
/// @param logarithms  [b.., g.., n], likewise
/// @param q           [b.., g.., n, d], any strides
/// @param k,v         [b.., m, d] and [b.., m, e], m > 0, likewise
/// @cost              scratch memory for one block of products
template <class Mask, class T>
void attention(On<Host>, const Mask& mask, const Strided<T>& y, const Strided<T>& logarithms,
               const Strided<const T>& q, const Strided<const T>& k, const Strided<const T>& v) {
  const int row = q.extents.dims - 2;
  const index_t n = q.extents[row];
  const index_t queries = std::min(n, detail::query_block);
  const index_t keys = std::min(k.extents[k.extents.dims - 2], detail::key_block);
  const detail::Scratch<T> products(queries * keys);
  T* next = logarithms.data;
  detail::each_head(y.extents, [&](const index_t* index) {
    const Matrix<T> result = detail::head_of(y, index);
    const Matrix<const T> values = detail::head_of(v, index);
    const auto seen = mask.at_head(index, q.extents.dims);
    detail::RunningSoftmax<T> softmax;
    const auto finish = [&](index_t first) {
      const index_t count = std::min(detail::query_block, n - first);
      softmax.finish(count, detail::rows_of(result, first, count), next + first);
    };
    index_t first = 0;
    detail::each_attention_block(
        seen, detail::head_of(q, index), detail::head_of(k, index), products.data(),
        [&](const detail::AttentionBlock<T>& block) {
          if (block.first_query != first) finish(first), first = block.first_query;
          const Matrix<T> out = detail::rows_of(result, block.first_query, block.queries);
          softmax.take(block, seen, out);
          const Matrix<const T> of = detail::rows_of(values, block.first_key, block.keys);
          gemm(On<Host>{}, block.read(), of, out, block.first_key > 0);
        });
    finish(first);
    next += n;
  });
}

/// Destinations of the gradients with respect to q, k and v, each row-major and contiguous; null
/// data for gradients that are not required.
template <class T>
struct AttentionGradients {
  Strided<T> q{}, k{}, v{};
};

namespace detail {

/// The gradients of one head, block by block.
template <class T>
struct HeadGradients {
  Matrix<const T> q, k, v, g;
  Matrix<T> dq, dk, dv;          ///< null data: not required
  const T *slopes, *logarithms;  ///< one per query, with the steps below
  index_t slope_step, logarithm_step;
  T scale;
  T* others;  ///< scratch memory for one block of products

  void add(const AttentionBlock<T>& block, const AttentionMask& mask) const {
    const auto queries = [&](const auto& x) {
      return rows_of(x, block.first_query, block.queries);
    };
    const auto keys = [&](const auto& x) { return rows_of(x, block.first_key, block.keys); };
    for (index_t r = 0; r < block.queries; ++r)
      exponentials(block.row(r), block.seen_by(r, mask), block.keys,
                   logarithms[(block.first_query + r) * logarithm_step]);
    if (dv.data != nullptr) gemm(On<Host>{}, transposed(block.read()), queries(g), keys(dv), true);
    if (dq.data == nullptr && dk.data == nullptr) return;
    const AttentionBlock<T> rising{block.first_query, block.queries, block.first_key, block.keys,
                                   others};
    gemm(On<Host>{}, queries(g), transposed(keys(v)), rising.all());
    for (index_t r = 0; r < block.queries; ++r) {
      T* const p = block.row(r);
      const T mean = slopes[(block.first_query + r) * slope_step];
      const T* const towards = rising.row(r);
      for (index_t j = 0; j < block.keys; ++j) p[j] *= (towards[j] - mean) * scale;
    }
    if (dq.data != nullptr) gemm(On<Host>{}, block.read(), keys(k), queries(dq), true);
    if (dk.data != nullptr) gemm(On<Host>{}, transposed(block.read()), queries(q), keys(dk), true);
  }
};

}  // namespace detail

/// The gradients of attention with respect to q, k and v, or to some of them.
///
/// With p the weights of the softmax, and ds = p · (g v^T - slope) / sqrt(d), the gradients are
/// dq = ds k, dk = ds^T q and dv = p^T g; those of k and v are summed over the g.. dimensions.
///
/// @param g           the gradient of y
/// @param slopes      [b.., g.., n]: the sums of g · y over e, less the gradient of the logarithms
/// @param logarithms  [b.., g.., n], as `attention` returns them
/// @cost              one product of queries and keys for the weights, one for each of dq, dk and
///                    dv, and one more for dq or dk. Scratch memory for two blocks of products
template <class Mask, class T>
void attention_gradients(On<Host>, const Mask& mask, const AttentionGradients<T>& out,
                         const Strided<const T>& g, const Strided<const T>& slopes,
                         const Strided<const T>& logarithms, const Strided<const T>& q,
                         const Strided<const T>& k, const Strided<const T>& v) {
  const int row = q.extents.dims - 2;
  const index_t d = q.extents[row + 1];
  const index_t queries = std::min(q.extents[row], detail::query_block);
  const index_t keys = std::min(k.extents[k.extents.dims - 2], detail::key_block);
  for (const Strided<T>* to : {&out.q, &out.k, &out.v})
    if (to->data != nullptr) std::fill_n(to->data, to->extents.product(), T(0));
  const detail::Scratch<T> products(queries * keys), others(queries * keys);
  detail::each_head(g.extents, [&](const index_t* index) {
    const auto seen = mask.at_head(index, q.extents.dims);
    const auto head = [&](const auto& x) { return detail::head_of(x, index); };
    const auto target = [&](const Strided<T>& x) {
      return x.data != nullptr ? detail::head_of(x, index) : Matrix<T>{};
    };
    const auto first_of = [&](const Strided<const T>& x) {
      const T* at = x.data;
      for (int b = 0; b < row; ++b) at += index[b] * x.strides[b];
      return at;
    };
    const detail::HeadGradients<T> gradients{head(q),
                                             head(k),
                                             head(v),
                                             head(g),
                                             target(out.q),
                                             target(out.k),
                                             target(out.v),
                                             first_of(slopes),
                                             first_of(logarithms),
                                             slopes.strides[row],
                                             logarithms.strides[row],
                                             T(d > 0 ? 1 / std::sqrt(double(d)) : 1),
                                             others.data()};
    detail::each_attention_block(
        seen, gradients.q, gradients.k, products.data(),
        [&](const detail::AttentionBlock<T>& block) { gradients.add(block, seen); });
  });
}

}  // namespace cleave::inline v0::kernels
