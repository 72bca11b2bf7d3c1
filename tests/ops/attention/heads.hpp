// Queries, keys and values, and their attention by plain loops over all queries and keys.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <cleave/tensor/tensor.hpp>

namespace cleave::testing {

template <int Rank>
Tensor<double, Rank> waves(const std::array<index_t, std::size_t(Rank)>& shape, int seed) {
  const Tensor<double, Rank> x(shape);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(double(i * 37 % 1009) + seed);
  return x;
}

/// Two groups of queries that share keys.
struct Heads {
  Tensor<double, 4> q, g;  ///< [b, 2, n, d], [b, 2, n, e]
  Tensor<double, 3> k, v;  ///< [b, m, d], [b, m, e]

  Heads(index_t b, index_t n, index_t m)
      : q(waves<4>({b, 2, n, 3}, 1)),
        g(waves<4>({b, 2, n, 2}, 2)),
        k(waves<3>({b, m, 3}, 3)),
        v(waves<3>({b, m, 2}, 4)) {}
};

/// y and the gradients of sum(g y), computed from the definition.
struct PlainAttention {
  std::vector<double> y, dq, dk, dv;

  PlainAttention(const Heads& x, bool is_causal)
      : PlainAttention(x, [&](index_t i, index_t j) {
          return is_causal && j > i ? -std::numeric_limits<double>::infinity() : 0.0;
        }) {}
  /// @param added  to the product of query i and key j; -infinity hides the key
  template <class F>
    requires std::is_invocable_v<F, index_t, index_t>
  PlainAttention(const Heads& x, const F& added)
      : y(std::size_t(x.g.size())),
        dq(std::size_t(x.q.size())),
        dk(std::size_t(x.k.size())),
        dv(std::size_t(x.v.size())) {
    for (index_t b = 0; b < x.k.extent(0); ++b)
      for (index_t s = 0; s < 2; ++s)
        for (index_t i = 0; i < x.q.extent(2); ++i) add_query(x, b, s, i, added);
  }

 private:
  void add_query(const Heads& x, index_t b, index_t s, index_t i, const auto& added) {
    const index_t n = x.q.extent(2), m = x.k.extent(1), row = (b * 2 + s) * n + i;
    const double *q = x.q.data() + row * 3, *g = x.g.data() + row * 2;
    const double *k = x.k.data() + b * m * 3, *v = x.v.data() + b * m * 2;
    std::vector<double> p(static_cast<std::size_t>(m));
    double total = 0, mean = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      p[j] = std::exp((q[0] * k[3 * j] + q[1] * k[3 * j + 1] + q[2] * k[3 * j + 2]) / std::sqrt(3) +
                      added(i, index_t(j)));
      total += p[j];
    }
    if (total == 0) return;
    const auto along = [&](std::size_t j) { return g[0] * v[2 * j] + g[1] * v[2 * j + 1]; };
    for (std::size_t j = 0; j < p.size(); ++j) p[j] /= total, mean += p[j] * along(j);
    for (std::size_t j = 0; j < p.size(); ++j) {
      const std::size_t key = std::size_t(b * m) + j;
      for (std::size_t e = 0; e < 2; ++e) {
        y[std::size_t(row) * 2 + e] += p[j] * v[2 * j + e];
        dv[key * 2 + e] += p[j] * g[e];
      }
      for (std::size_t d = 0; d < 3; ++d) {
        const double slope = p[j] * (along(j) - mean) / std::sqrt(3);
        dq[std::size_t(row) * 3 + d] += slope * k[3 * j + d];
        dk[key * 3 + d] += slope * q[d];
      }
    }
  }
};

}  // namespace cleave::testing
