#pragma once

#include <cmath>
#include <complex>
#include <cstddef>

#include "../list/transforms.hpp"
#include "operation.hpp"

namespace cleave::testing {

/// The sums over j of x[j] · exp(sign · 2πi jk / n) along dimension d, for the first `kept` of n.
inline Numbers naive_transform(const Numbers& x, std::size_t d, double sign, index_t kept = -1) {
  naive::Indices shape = x.shape;
  if (kept >= 0) shape[d] = kept;
  Numbers y(shape);
  const index_t n = x.shape[d];
  for (const naive::Indices& index : naive::all_indices(y.shape))
    for (index_t j = 0; j < n; ++j) {
      naive::Indices from = index;
      from[d] = j;
      const double angle = sign * 2 * 3.14159265358979323846 * double(j * index[d] % n) / double(n);
      y.at(index) += x.at(from) * Number64(std::cos(angle), std::sin(angle));
    }
  return y;
}

template <unsigned Mask, bool Inverse>
Naive naive_of(ops::Fourier<Mask, Inverse>) {
  return {[](const Arrays& x) {
    Numbers y = x[0];
    for (std::size_t d = 0; d < y.shape.size(); ++d)
      if (Mask >> d & 1u) y = naive_transform(y, d, Inverse ? 1 : -1);
    return y;
  }};
}

inline Naive naive_of(ops::RealFourier<1, 1>) {
  Naive naive{[](const Arrays& x) {
    return naive_transform(naive_transform(x[0], 1, -1, x[0].shape[1] / 2 + 1), 0, -1);
  }};
  naive.letters = {"ab"};
  naive.extents = {{5, 6}, {3, 1}, {7, 9}, {0, 4}, {2, 2}};
  return naive;
}

/// n is even: the part of the transform that is not kept has the conjugates of the one that is.
inline Naive naive_of(ops::HermitianFourier<1, 1>) {
  Naive naive{[](const Arrays& x) {
    const Numbers half = naive_transform(x[0], 0, 1);
    const index_t n = 2 * (half.shape[1] - 1);
    Numbers whole({half.shape[0], n});
    for (const naive::Indices& index : naive::all_indices(whole.shape)) {
      const index_t k = index[1];
      const Number64 value = half.at({index[0], k <= n / 2 ? k : n - k});
      whole.at(index) = k == 0 || k == n / 2 ? value.real() : k < n / 2 ? value : std::conj(value);
    }
    return naive_transform(whole, 1, 1);
  }};
  naive.letters = {"ab"};
  naive.extents = {{5, 4}, {3, 2}, {7, 5}, {0, 3}};
  return naive;
}

/// The matrix of a cosine or sine transform with SciPy's weights at its ends, along dimension d.
inline Numbers naive_waves(const Numbers& x, std::size_t d, bool is_sine, const ops::WaveSums& of) {
  constexpr double pi = 3.14159265358979323846;
  Numbers y(x.shape);
  const auto n = double(x.shape[d]);
  const double shift = is_sine ? 1 : 0;
  for (const naive::Indices& index : naive::all_indices(y.shape))
    for (index_t j = 0; j < x.shape[d]; ++j) {
      naive::Indices from = index;
      from[d] = j;
      const double k = double(index[d]), i = double(j);
      const bool is_end = j == 0 || double(j) == n - 1;
      const bool is_last = double(j) == n - 1, is_result_last = k == n - 1;
      double angle = 0, weight = 2, period = 2 * n;
      if (of.type == 1) {
        period = is_sine ? 2 * n + 2 : 2 * n - 2;
        angle = 2 * pi * (i + shift) * (k + shift) / period;
        if (!is_sine && is_end) weight = of.end_in;
        if (!is_sine && (k == 0 || is_result_last)) weight *= of.end_out;
      } else if (of.type == 2) {
        angle = pi * (k + shift) * (2 * i + 1) / (2 * n);
        if (is_sine ? is_result_last : k == 0) weight *= of.end_out;
      } else if (of.type == 3) {
        angle = pi * (2 * k + 1) * (i + shift) / (2 * n);
        if (is_sine ? is_last : j == 0) weight = of.end_in;
      }
      const double wave = is_sine ? std::sin(angle) : std::cos(angle);
      y.at(index) += x.at(from) * (weight * wave * std::pow(period, of.power));
    }
  return y;
}

template <unsigned Mask, bool IsSine>
Naive naive_of(ops::WaveTransform<Mask, IsSine> op) {
  Naive naive{[op](const Arrays& x) {
    Numbers y = x[0];
    for (std::size_t d = 0; d < y.shape.size(); ++d)
      if (Mask >> d & 1u) y = naive_waves(y, d, IsSine, op.sums);
    return y;
  }};
  naive.letters = {"ab"};
  naive.extents = {{5, 6}, {3, 2}, {7, 9}, {0, 4}, {2, 2}};
  return naive;
}

/// The factor of element [i, j], j being a wave number itself.
inline Naive naive_of(ops::TimesOfWaves<ops::listing::SomeWaves, 2, 1>) {
  return {[](const Arrays& x) {
    Numbers y(x[0].shape);
    for (const naive::Indices& at : naive::all_indices(y.shape)) {
      const index_t n = y.shape[0], i = 2 * at[0] < n ? at[0] : at[0] - n;
      y.at(at) = x[0].at(at) * Number64(0.5 + double(i), double(at[1]) - 2);
    }
    return y;
  }};
}

}  // namespace cleave::testing
