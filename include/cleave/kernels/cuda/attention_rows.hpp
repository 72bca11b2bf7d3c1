// Rows of products of queries with keys on a GPU: the softmax over the keys processed so far,
// weights and their gradients. Each row is read and written once per launch.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/cuda/fused_rows.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// Offsets of heads, numbered in row-major order, and of their rows in an array.
struct RowPlaces {
  int dims = 0;
  index_t extent[max_dims] = {}, stride[max_dims] = {};
  index_t row_stride = 0;

  /// @param x  its dimensions before `row` are the last ones before the rows of the heads
  template <class T>
  static RowPlaces of(const Shape& heads, const kernels::Strided<T>& x, int row) {
    RowPlaces places;
    places.dims = row;
    for (int d = 0; d < row; ++d) {
      places.extent[d] = heads[heads.dims - row + d];
      places.stride[d] = x.extents[d] == 1 ? 0 : x.strides[d];
    }
    places.row_stride = x.extents[row] == 1 ? 0 : x.strides[row];
    return places;
  }
  __device__ index_t offset(index_t head, index_t row) const {
    index_t at = row * row_stride;
    for (int d = dims - 1; d >= 0; --d) {
      at += head % extent[d] * stride[d];
      head /= extent[d];
    }
    return at;
  }
};

/// A block of queries of all heads, and a block of keys: rows of products.
template <class T, class M>
struct AttentionRows {
  T* products = nullptr;  ///< [heads, queries, keys]
  index_t queries = 0, keys = 0, first_query = 0;
  T scale = T(1);
  bool is_causal = false;   ///< queries see the keys up to their own positions
  index_t visible = 0;      ///< the number of keys that the first one sees then; negative: none
  const M* mask = nullptr;  ///< bools or numbers, from the block's first key on; may be null
  RowPlaces of_mask{};
  index_t mask_step = 0;

  __device__ index_t head(index_t row) const { return row / queries; }
  /// The number of a row's query in its head.
  __device__ index_t query(index_t row) const { return first_query + row % queries; }
  __device__ T* row(index_t row) const { return products + row * keys; }
  __device__ index_t seen_by(index_t row) const {
    if (!is_causal) return keys;
    const index_t seen = visible + row % queries;
    return seen < 0 ? 0 : seen < keys ? seen : keys;
  }
  /// A product as it enters the softmax.
  __device__ T score(index_t row, index_t j) const {
    const T product = this->row(row)[j] * scale;
    if (mask == nullptr) return product;
    const M& m = mask[of_mask.offset(head(row), query(row)) + j * mask_step];
    if constexpr (std::is_same_v<M, bool>) return m ? product : -std::numeric_limits<T>::infinity();
    else return product + m;
  }
};

/// Numbers of a query of a head: [heads, all queries], any strides.
template <class T>
struct PerQuery {
  T* data = nullptr;
  RowPlaces places{};

  template <class Rows>
  __device__ T& at(const Rows& rows, index_t row) const {
    return data[places.offset(rows.head(row), rows.query(row))];
  }
};

/// Replaces the products of a row by weights, not yet normalised, and rescales its sums.
template <class T>
struct TakeAttentionRow {
  PerQuery<T> largest, totals;
  T* y;  ///< [heads, all queries, e]
  index_t all_queries, e;
  bool is_first;

  template <class M>
  __device__ void operator()(const RowTeam& team, const AttentionRows<T, M>& rows, index_t row,
                             bool exists) const {
    constexpr T none = -std::numeric_limits<T>::infinity();
    const index_t seen = exists ? rows.seen_by(row) : 0;
    T most = none;
    for (index_t j = team.lane(); j < seen; j += team.lanes())
      most = kernels::larger(most, rows.score(row, j));
    most = team.fold(most, [](T a, T b) { return kernels::larger(a, b); });
    const T before = is_first || !exists ? none : largest.at(rows, row);
    const T now = kernels::larger(before, most), shift = now == none ? T(0) : now;
    T sum = 0;
    for (index_t j = team.lane(); exists && j < rows.keys; j += team.lanes()) {
      const T weight = j < seen ? std::exp(rows.score(row, j) - shift) : T(0);
      rows.row(row)[j] = weight, sum += weight;
    }
    sum = team.fold(sum, [](T a, T b) { return a + b; });  // all have read `largest`
    if (!exists) return;
    const T faded = std::exp(before - shift);
    if (team.lane() == 0) {
      T& total = totals.at(rows, row);
      total = is_first ? sum : total * faded + sum;
      largest.at(rows, row) = now;
    }
    T* const out = y + (rows.head(row) * all_queries + rows.query(row)) * e;
    for (index_t c = team.lane(); !is_first && c < e; c += team.lanes()) out[c] *= faded;
  }
};

/// Raises the largest product of a row.
template <class T>
struct LargestOfAttentionRow {
  PerQuery<T> largest;

  template <class M>
  __device__ void operator()(const RowTeam& team, const AttentionRows<T, M>& rows, index_t row,
                             bool exists) const {
    T most = -std::numeric_limits<T>::infinity();
    const index_t seen = exists ? rows.seen_by(row) : 0;
    for (index_t j = team.lane(); j < seen; j += team.lanes())
      most = kernels::larger(most, rows.score(row, j));
    most = team.fold(most, [](T a, T b) { return kernels::larger(a, b); });
    if (!exists || team.lane() != 0) return;
    T& before = largest.at(rows, row);
    before = kernels::larger(before, most);
  }
};

/// Replaces the products of a row by exp(product - shift), and adds these to its total, if any.
template <class T>
struct WeighAttentionRow {
  PerQuery<const T> shifts;
  PerQuery<T> totals;

  template <class M>
  __device__ void operator()(const RowTeam& team, const AttentionRows<T, M>& rows, index_t row,
                             bool exists) const {
    const index_t seen = exists ? rows.seen_by(row) : 0;
    const T shift = exists ? shifts.at(rows, row) : T(0);
    T sum = 0;
    for (index_t j = team.lane(); exists && j < rows.keys; j += team.lanes()) {
      const T weight = j < seen ? std::exp(rows.score(row, j) - shift) : T(0);
      rows.row(row)[j] = weight, sum += weight;
    }
    if (totals.data == nullptr) return;  // the same for all threads
    sum = team.fold(sum, [](T a, T b) { return a + b; });
    if (exists && team.lane() == 0) totals.at(rows, row) += sum;
  }
};

/// Replaces weights p by the gradients of scaled products, p · (rising - slope) · scale.
template <class T>
struct SlopeOfAttentionRow {
  PerQuery<const T> slopes;
  const T* rising;  ///< g v^T of the block

  template <class M>
  __device__ void operator()(const RowTeam& team, const AttentionRows<T, M>& rows, index_t row,
                             bool exists) const {
    if (!exists) return;
    const T slope = slopes.at(rows, row);
    for (index_t j = team.lane(); j < rows.keys; j += team.lanes())
      rows.row(row)[j] *= (rising[row * rows.keys + j] - slope) * rows.scale;
  }
};

template <class Step, class T, class M>
__global__ void attention_rows_kernel(Step step, AttentionRows<T, M> rows, RowTeams teams) {
  const RowTeam team(teams);
  step(team, rows, index_t(team.row()), team.exists());
}

/// Normalises sums. A query without keys gets zeros, and a logarithm that makes its weights 0.
/// @param logarithms  in: the largest products
template <class T>
__global__ void finish_attention_kernel(T* y, T* logarithms, const T* totals, index_t e,
                                        RowTeams teams) {
  const RowTeam team(teams);
  if (!team.exists()) return;
  const index_t row = team.row();
  const T total = totals[row];
  for (index_t c = team.lane(); c < e; c += team.lanes())
    y[row * e + c] /= total == T(0) ? T(1) : total;
  if (team.lane() == 0) logarithms[row] = total == T(0) ? T(0) : logarithms[row] + std::log(total);
}

}  // namespace cuda::detail

}  // namespace cleave::inline v0
