// Sums of weights by levels, to draw a category with its probability: the same additions in the
// same order on every device, so that draws are the same.
#pragma once

#include <cmath>
#include <limits>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels {

/// Whether a number can be a weight: finite and not negative.
CLEAVE_HOST_DEVICE constexpr bool is_weight(double x) {
  return x >= 0 && x <= std::numeric_limits<double>::max();
}

/// The levels of sums over a row of weights. Level 0 is the weights; each level above has the sums,
/// in order, of groups of the one below; the top is one number. All levels but the weights are
/// stored together, the top first.
class WeightSums {
 public:
  static constexpr int group = 32;

  explicit WeightSums(index_t categories) : categories_(categories) {
    while (size(top_) > 1) ++top_;
  }

  int top() const { return top_; }
  /// Numbers of a level; the levels of an empty row have one zero each.
  CLEAVE_HOST_DEVICE index_t size(int level) const {
    index_t count = categories_;
    for (; level > 0; --level) count = count > 0 ? (count + group - 1) / group : 1;
    return count;
  }
  /// Where a level above the weights is stored; level 0: how many numbers are stored.
  index_t start(int level) const {
    index_t at = 0;
    for (int above = top_; above > level; --above) at += size(above);
    return at;
  }

  /// The category whose part of the sum of all contains u times that sum, and whose weight is
  /// positive: the last such category if rounding reaches the end.
  ///
  /// @param sums    the levels
  /// @param weight  weight(j) of category j
  /// @param u       in [0, 1)
  /// @pre the sum of all is positive
  template <class Weight>
  CLEAVE_HOST_DEVICE index_t find(const double* sums, const Weight& weight, double u) const {
    double at =
        std::fma(u, sums[0], 0.0);  // rounded alone: a compiler might fuse it with what follows
    index_t place = 0;
    const double* below = sums + 1;
    for (int level = top_ - 1; level >= 0; --level) {
      const index_t first = place * group, count = size(level);
      const index_t end = count - first < group ? count : first + group;
      double left = at;
      for (index_t j = first; j < end; ++j) {
        const double next = level > 0 ? below[j] : weight(j);
        if (!(next > 0)) continue;
        place = j, at = left;
        if (left < next) break;
        left -= next;
      }
      below += count;
    }
    return place;
  }

 private:
  index_t categories_;
  int top_ = 1;
};

}  // namespace cleave::inline v0::kernels
