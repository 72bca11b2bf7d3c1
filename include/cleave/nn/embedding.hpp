// Embedding layer: rows of a learned table.
#pragma once

#include <cleave/nn/lazy.hpp>
#include <cleave/nn/parameter_placements.hpp>
#include <cleave/ops/indices/index_select.hpp>

namespace cleave::inline v0::nn {

/// Looks up the row of the weight for each index.
///
///     // y[S0,R,R] = embedding(ids[S0,R])   weight[R,R]
///     // y[S0,R,S2] = embedding(ids[S0,R])  weight[R,S1]
///     // y[S0,P]   = embedding(ids[S0,R])   weight[R,S0]: zeros where another rank has the row
template <class W = Lazy<float, 2>>
struct Embedding {
  W weight;  ///< [rows, width]
  static constexpr names members{"weight"};
  using colwise = Cut<Replicate, Shard<1>>;
  using rowwise = Cut<Replicate, Shard<0>>;

  /// @param ids  [..], integers in [0, rows)
  /// @return     [.., width]
  auto operator()(const auto& ids) const { return cleave::embedding(detail::made(weight), ids); }
};
template <class W>
Embedding(W) -> Embedding<W>;

/// An embedding with normally distributed elements of mean 0 and the given standard deviation.
template <class T = float>
Embedding<Lazy<T, 2>> embedding(index_t rows, index_t width, double deviation = 1) {
  return {{{rows, width}, normal(0, deviation)}};
}

}  // namespace cleave::inline v0::nn
