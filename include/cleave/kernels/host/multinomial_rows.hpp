// Categories drawn with given weights, on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/kernels/weight_sums.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// Describes what is wrong with the weights of a row; empty if they are valid.
inline std::string wrong_weights(const std::vector<double>& weights, index_t draws,
                                 bool replacement) {
  index_t positive = 0;
  for (const double weight : weights) {
    if (!is_weight(weight))
      return "a weight is " + std::to_string(weight) + "; weights must be finite and not negative";
    positive += weight > 0;
  }
  if (draws == 0 || (replacement ? positive > 0 : positive >= draws)) return {};
  return std::to_string(positive) + " categories have a positive weight, for " +
         std::to_string(draws) + " draws " + (replacement ? "with" : "without") + " replacement";
}

/// Draws by inversion: each uniform number selects the category whose part of the sum contains it.
/// @see WeightSums
/// @param first  index of the row's first draw
template <class Out>
void draw_with_replacement(const std::vector<double>& weights, index_t draws, index_t first,
                           const RandomState& state, const Out& out) {
  const WeightSums levels(index_t(weights.size()));
  std::vector<double> sums(std::size_t(levels.start(0)));
  const double* below = weights.data();
  for (int level = 1; level <= levels.top(); ++level) {
    double* const to = sums.data() + levels.start(level);
    const index_t count = levels.size(level - 1);
    for (index_t i = 0; i < count; ++i) to[i / WeightSums::group] += below[i];
    below = to;
  }
  const auto weight = [&](index_t j) { return weights[std::size_t(j)]; };
  for (index_t k = 0; k < draws; ++k) {
    const auto bits = state.bits(first + k);
    out(k, levels.find(sums.data(), weight, unit_interval<double>(bits[0], bits[1])));
  }
}

/// Draws the categories with the smallest exponential variates of rate `weight`; in ascending order
/// these are draws without replacement (P. S. Efraimidis, P. G. Spirakis: Weighted random sampling
/// with a reservoir. Inf. Process. Lett. 97 (2006)).
/// @param first  index of the row's first category
template <class Out>
void draw_without_replacement(const std::vector<double>& weights, index_t draws, index_t first,
                              const RandomState& state, const Out& out) {
  std::vector<std::pair<double, index_t>> times;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (!(weights[j] > 0)) continue;
    times.emplace_back(exponential(state.bits(first + index_t(j)), weights[j]), index_t(j));
  }
  std::partial_sort(times.begin(), times.begin() + draws, times.end());
  for (index_t k = 0; k < draws; ++k) out(k, times[std::size_t(k)].second);
}

}  // namespace detail

/// out[i, k] = the category of draw k, from the categories with weights[i, ..].
///
/// @param weights  [rows, categories]
/// @param out      [rows, draws]
/// @param row      the global index of row 0; the draws of a row depend on its global index, its
///                 weights and the state
/// @return what is wrong with the first invalid row of weights; draws of such rows are not written
template <class T>
std::optional<std::string> multinomial_rows(On<Host>, const Strided<const T>& weights, index_t row,
                                            const RandomState& state, bool replacement,
                                            const Strided<index_t>& out) {
  std::optional<std::string> wrong;
  const index_t categories = weights.extents[1], draws = out.extents[1];
  std::vector<double> of_row(static_cast<std::size_t>(categories));
  for (index_t i = 0; i < out.extents[0]; ++i) {
    const T* const from = weights.data + i * weights.strides[0];
    for (index_t j = 0; j < categories; ++j)
      of_row[std::size_t(j)] = double(accumulator_t<T>(from[j * weights.strides[1]]));
    const std::string fault = detail::wrong_weights(of_row, draws, replacement);
    if (!fault.empty()) {
      if (!wrong) wrong = "row " + std::to_string(row + i) + ": " + fault;
      continue;
    }
    index_t* const to = out.data + i * out.strides[0];
    const auto write = [&](index_t k, index_t category) { to[k * out.strides[1]] = category; };
    if (replacement) detail::draw_with_replacement(of_row, draws, (row + i) * draws, state, write);
    else detail::draw_without_replacement(of_row, draws, (row + i) * categories, state, write);
  }
  return wrong;
}

}  // namespace cleave::inline v0::kernels
