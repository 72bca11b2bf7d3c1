// Attention in blocks of queries and keys on a GPU, as on the host: the products of all queries
// with all keys are never stored. Of a block of all heads, a matrix product computes the products,
// one launch turns them into weights, and a second matrix product adds weighted values.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <cleave/kernels/contract.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/cuda/attention_rows.hpp>
#include <cleave/kernels/cuda/gemm_cuda.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/host/attention_blocks.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// Keys of a block, and the most bytes of its products, so that they stay in the L2 cache.
inline constexpr index_t attention_keys = 256, attention_bytes = 16 << 20;

/// Threads for rows of n elements.
inline RowTeams attention_teams(index_t rows, index_t n) {
  RowTeams teams{std::uint32_t(rows), 1, 1, n};
  while (teams.lanes < block_threads && index_t(teams.lanes) < n) teams.lanes *= 2;
  return teams;
}
inline dim3 blocks_of(const RowTeams& teams) {
  const std::uint32_t per_block = block_threads / teams.lanes;
  return dim3((teams.rows + per_block - 1) / per_block);
}

/// The letters of products with queries of `q` dimensions and keys of `k`: "abik,abjk->abij".
inline kernels::Contraction attention_letters(int q, int k) {
  kernels::Contraction letters;
  const auto add = [&](int x, int w, int y) {
    letters.index[std::size_t(letters.count++)] = {std::int8_t(x), std::int8_t(w), std::int8_t(y)};
  };
  for (int d = 0; d < q - 2; ++d) add(d, d < k - 2 ? d : -1, d);
  add(q - 2, -1, q - 2), add(-1, k - 2, q - 1), add(q - 1, k - 1, -1);
  return letters;
}
/// Of weights and values: "abij,abjk->abik".
inline kernels::Contraction weighted_letters(int q, int k) {
  kernels::Contraction letters = attention_letters(q, k);
  letters.index[std::size_t(q - 1)] = {-1, std::int8_t(k - 1), std::int8_t(q - 1)};
  letters.index[std::size_t(q)] = {std::int8_t(q - 1), std::int8_t(k - 2), -1};
  return letters;
}
/// Of transposed weights and rows of queries, summed over queries: "abij,abik->abjk".
inline kernels::Contraction gathered_letters(int q, int k) {
  kernels::Contraction letters = attention_letters(q, k);
  for (int d = 0; d < q - 2; ++d)
    letters.index[std::size_t(d)] = {std::int8_t(d), std::int8_t(d),
                                     std::int8_t(d < k - 2 ? d : -1)};
  const auto last = std::int8_t(q - 1);
  letters.index[std::size_t(q - 2)] = {std::int8_t(q - 2), std::int8_t(q - 2), -1};
  letters.index[std::size_t(q - 1)] = {last, -1, std::int8_t(k - 2)};
  letters.index[std::size_t(q)] = {-1, last, std::int8_t(k - 1)};
  return letters;
}

/// The blocks of attention of one call.
template <class T, class M>
class AttentionSweep {
 public:
  using Rows = AttentionRows<T, M>;
  using Array = kernels::Strided<const T>;

  AttentionSweep(const kernels::AttentionMask& mask, const kernels::Strided<const M>* array,
                 const Array& q, const Array& k)
      : mask_(mask), q_(q), k_(k), row_(q.extents.dims - 2), heads_(q.extents) {
    heads_.dims = row_;
    const index_t heads = heads_.product();
    keys_ = std::min(k.extents[k.extents.dims - 2], attention_keys);
    queries_ = q.extents[row_];
    while (queries_ > 128 && heads * queries_ * keys_ * index_t(sizeof(T)) > attention_bytes)
      queries_ = (queries_ + 1) / 2;
    if (array != nullptr) array_ = *array;
  }

  const Shape& heads() const { return heads_; }
  index_t rows() const { return heads_.product() * q_.extents[row_]; }
  /// Memory for as many elements as the products of a block.
  std::shared_ptr<void> scratch(index_t elements) const {
    return allocate_bytes(Cuda{}, std::size_t(elements) * sizeof(T));
  }
  index_t block_elements() const { return heads_.product() * queries_ * keys_; }

  /// The rows of queries, or of keys and values, of a block.
  template <class U>
  static kernels::Strided<U> part(const kernels::Strided<U>& x, index_t first, index_t count) {
    return kernels::every(x, x.extents.dims - 2, first, 1, count);
  }
  kernels::Strided<T> products(const Rows& rows, T* data) const {
    Shape extents = heads_;
    extents.dims += 2;
    extents[row_] = rows.queries, extents[row_ + 1] = rows.keys;
    return {data, extents, row_major_strides(extents)};
  }
  template <class U>
  PerQuery<U> per_query(const kernels::Strided<U>& x) const {
    return {x.data, RowPlaces::of(heads_, x, row_)};
  }

  /// Computes x y^T of a block to `to`.
  void pairs(const Rows& rows, const Array& x, const Array& y, index_t first_key, T* to) const {
    contract(kernels::On<Cuda>{}, attention_letters(row_ + 2, y.extents.dims), products(rows, to),
             part(x, rows.first_query, rows.queries), part(y, first_key, rows.keys));
  }
  /// to += weights · y, or = for `add` false.
  void add_weighted(const Rows& rows, const Array& y, index_t first_key,
                    const kernels::Strided<T>& to, bool add = true) const {
    contract(kernels::On<Cuda>{}, weighted_letters(row_ + 2, y.extents.dims),
             part(to, rows.first_query, rows.queries), read(products(rows, rows.products)),
             part(y, first_key, rows.keys), add);
  }
  /// to += weights^T · x
  void add_gathered(const Rows& rows, const Array& x, index_t first_key,
                    const kernels::Strided<T>& to) const {
    contract(kernels::On<Cuda>{}, gathered_letters(row_ + 2, to.extents.dims),
             part(to, first_key, rows.keys), read(products(rows, rows.products)),
             part(x, rows.first_query, rows.queries), true);
  }

  template <class Step>
  void launch_rows(const Rows& rows, const Step& step) const {
    const RowTeams teams = attention_teams(heads_.product() * rows.queries, rows.keys);
    launch("scaled_dot_product_attention", attention_rows_kernel<Step, T, M>, blocks_of(teams),
           dim3(block_threads), step, rows, teams);
  }

  /// Calls f(rows, first key) for all blocks that causality does not mask entirely, with products.
  template <class F>
  void each_block(const F& f) const {
    if (rows() == 0) return;
    const std::shared_ptr<void> memory = scratch(block_elements());
    const index_t n = q_.extents[row_], m = k_.extents[k_.extents.dims - 2];
    const index_t d = q_.extents[row_ + 1];
    for (index_t i = 0; i < n; i += queries_)
      for (index_t j = 0; j < m; j += keys_) {
        Rows rows;
        rows.products = static_cast<T*>(memory.get());
        rows.queries = std::min(queries_, n - i), rows.keys = std::min(keys_, m - j);
        const index_t position = mask_.first_query + i;
        if (mask_.is_causal && mask_.first_key + j >= position + rows.queries) break;
        rows.first_query = i;
        rows.scale = T(d > 0 ? 1 / std::sqrt(double(d)) : 1);
        rows.is_causal = mask_.is_causal;
        rows.visible = position + 1 - mask_.first_key - j;
        if (array_.data != nullptr) {
          const int row = array_.extents.dims - 2;
          rows.mask_step = array_.extents[row + 1] == 1 ? 0 : array_.strides[row + 1];
          rows.mask = array_.data + j * rows.mask_step;
          rows.of_mask = RowPlaces::of(heads_, array_, row);
        }
        pairs(rows, q_, k_, j, rows.products);
        f(rows, j);
      }
  }

 private:
  static Array read(const kernels::Strided<T>& x) { return {x.data, x.extents, x.strides}; }

  kernels::AttentionMask mask_;
  kernels::Strided<const M> array_{};
  Array q_, k_;
  int row_;
  Shape heads_;
  index_t queries_ = 0, keys_ = 0;
};

template <class T>
AttentionSweep<T, bool> sweep_of(const kernels::AttentionMask& mask,
                                 const kernels::Strided<const T>& q,
                                 const kernels::Strided<const T>& k) {
  return {mask, nullptr, q, k};
}
template <class T, class M>
AttentionSweep<T, M> sweep_of(const kernels::AttentionArray<M>& mask,
                              const kernels::Strided<const T>& q,
                              const kernels::Strided<const T>& k) {
  return {{}, &mask.of, q, k};
}

}  // namespace cuda::detail

namespace kernels {

/// As on the host, in the order of the current stream.
/// @cost  two matrix products and one launch per block; scratch memory for a block of at most 16
///        MiB of products, or 128 queries of all heads
template <class Mask, class T>
void attention(On<Cuda>, const Mask& mask, const Strided<T>& y, const Strided<T>& logarithms,
               const Strided<const T>& q, const Strided<const T>& k, const Strided<const T>& v) {
  const auto sweep = cuda::detail::sweep_of(mask, q, k);
  if (sweep.rows() == 0) return;
  const std::shared_ptr<void> memory = sweep.scratch(sweep.rows());
  const Strided<T> totals{static_cast<T*>(memory.get()), logarithms.extents, logarithms.strides};
  const index_t e = y.extents[y.extents.dims - 1];
  sweep.each_block([&](const auto& rows, index_t first_key) {
    sweep.launch_rows(rows, cuda::detail::TakeAttentionRow<T>{
                                sweep.per_query(logarithms), sweep.per_query(totals), y.data,
                                q.extents[q.extents.dims - 2], e, first_key == 0});
    sweep.add_weighted(rows, v, first_key, y, first_key > 0);
  });
  const cuda::detail::RowTeams teams = cuda::detail::attention_teams(sweep.rows(), e);
  cuda::launch("scaled_dot_product_attention", cuda::detail::finish_attention_kernel<T>,
               cuda::detail::blocks_of(teams), dim3(cuda::block_threads), y.data, logarithms.data,
               static_cast<const T*>(totals.data), e, teams);
}

template <class Mask, class T>
void attention_largest(On<Cuda> on, const Mask& mask, const Strided<T>& out,
                       const Strided<const T>& q, const Strided<const T>& k) {
  fill_elements(on, out, -std::numeric_limits<T>::infinity());
  const auto sweep = cuda::detail::sweep_of(mask, q, k);
  sweep.each_block([&](const auto& rows, index_t) {
    sweep.launch_rows(rows, cuda::detail::LargestOfAttentionRow<T>{sweep.per_query(out)});
  });
}

template <class Mask, class T>
void attention_sums(On<Cuda> on, const Mask& mask, const Strided<T>& y, const Strided<T>& totals,
                    const Strided<const T>& shifts, const Strided<const T>& q,
                    const Strided<const T>& k, const Strided<const T>& v) {
  fill_elements(on, y, T(0));
  fill_elements(on, totals, T(0));
  const auto sweep = cuda::detail::sweep_of(mask, q, k);
  sweep.each_block([&](const auto& rows, index_t first_key) {
    sweep.launch_rows(
        rows, cuda::detail::WeighAttentionRow<T>{sweep.per_query(shifts), sweep.per_query(totals)});
    sweep.add_weighted(rows, v, first_key, y);
  });
}

/// @cost  besides, up to four matrix products and two launches per block
template <class Mask, class T>
void attention_gradients(On<Cuda> on, const Mask& mask, const AttentionGradients<T>& out,
                         const Strided<const T>& g, const Strided<const T>& slopes,
                         const Strided<const T>& logarithms, const Strided<const T>& q,
                         const Strided<const T>& k, const Strided<const T>& v) {
  for (const Strided<T>* to : {&out.q, &out.k, &out.v})
    if (to->data != nullptr) fill_elements(on, *to, T(0));
  const auto sweep = cuda::detail::sweep_of(mask, q, k);
  const bool rises = out.q.data != nullptr || out.k.data != nullptr;
  const std::shared_ptr<void> memory = sweep.scratch(rises ? sweep.block_elements() : 0);
  T* const rising = static_cast<T*>(memory.get());
  sweep.each_block([&](const auto& rows, index_t first_key) {
    sweep.launch_rows(rows, cuda::detail::WeighAttentionRow<T>{sweep.per_query(logarithms), {}});
    if (out.v.data != nullptr) sweep.add_gathered(rows, g, first_key, out.v);
    if (!rises) return;
    sweep.pairs(rows, g, v, first_key, rising);
    sweep.launch_rows(rows, cuda::detail::SlopeOfAttentionRow<T>{sweep.per_query(slopes), rising});
    if (out.q.data != nullptr) sweep.add_weighted(rows, k, first_key, out.q);
    if (out.k.data != nullptr) sweep.add_gathered(rows, q, first_key, out.k);
  });
}

}  // namespace kernels

}  // namespace cleave::inline v0
