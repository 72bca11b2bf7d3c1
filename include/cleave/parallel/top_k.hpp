// Top-k sparsification: a communication hook that sends only the largest elements of each rank's
// gradients, with their indices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <cleave/parallel/error_feedback.hpp>

namespace cleave::inline v0 {

/// Each rank sends the given share of a bucket's elements, those with the largest absolute values;
/// the rest is added to its next gradient (error feedback).
///
/// @cost   receives (n-1) · share of the bucket for n ranks, each element with an index of 8 bytes
/// @throws Error for gradients on a GPU
class TopK {
 public:
  /// @param share  in (0, 1]; at least one element of a bucket is sent
  explicit TopK(double share = 0.01) : share_(share) {
    if (!(share > 0 && share <= 1))
      throw Error("TopK", "the share must be in (0, 1], not " + std::to_string(share));
  }

  void operator()(const GradientBucket& bucket) {
    bucket.require_host("TopK");
    nn::detail::with_real_type("replicate", bucket.gradient.dtype,
                               [&]<class Real>(Real*) { exchange<Real>(bucket); });
  }

 private:
  template <class Real>
  void exchange(const GradientBucket& bucket) {
    using A = accumulator_t<Real>;
    const index_t n = bucket.gradient.bytes() / index_t(sizeof(Real));
    const auto count = std::size_t(std::min(n, index_t(std::ceil(share_ * double(n)))));
    std::vector<A> mine(static_cast<std::size_t>(n));
    auto* const gradient = static_cast<Real*>(bucket.gradient.data);
    parallel::for_parts<Real>(bucket, [&](const BucketPart& part, const Real* g, index_t size) {
      const A* const left = left_.of<A>(part.key, size);
      A* const sum = mine.data() + (g - gradient);
      for (index_t i = 0; i < size; ++i) sum[i] = A(g[i]) + left[i];
    });

    // each rank sends its indices, then the values
    const std::vector<std::int64_t> largest = indices_of_largest(mine, count);
    const std::size_t bytes = count * (sizeof(std::int64_t) + sizeof(A));
    const Tensor<std::uint8_t, 1> sent({index_t(bytes)});
    const Tensor<std::uint8_t, 1> all({index_t(bytes) * bucket.group->size()});
    std::memcpy(sent.data(), largest.data(), count * sizeof(std::int64_t));
    for (std::size_t k = 0; k < count; ++k)
      std::memcpy(sent.data() + count * sizeof(std::int64_t) + k * sizeof(A),
                  &mine[std::size_t(largest[k])], sizeof(A));
    bucket.all_gather(sent.view(), all.view());

    for (const std::int64_t i : largest) mine[std::size_t(i)] = 0;
    parallel::for_parts<Real>(bucket, [&](const BucketPart& part, const Real* g, index_t size) {
      const A* const rest = mine.data() + (g - gradient);
      std::copy(rest, rest + size, left_.of<A>(part.key, size));
    });
    std::fill(mine.begin(), mine.end(), A(0));
    for (int rank = 0; rank < bucket.group->size(); ++rank)
      add(all.data() + std::size_t(rank) * bytes, count, mine);
    for (index_t i = 0; i < n; ++i) gradient[i] = Real(mine[std::size_t(i)]);
  }

  /// Of equal values, the lower index comes first; NaN counts as the largest value.
  template <class A>
  static std::vector<std::int64_t> indices_of_largest(const std::vector<A>& values,
                                                      std::size_t count) {
    const auto weight = [&](std::int64_t i) {
      const A value = std::abs(values[std::size_t(i)]);
      return std::isnan(value) ? std::numeric_limits<A>::infinity() : value;
    };
    std::vector<std::int64_t> indices(values.size());
    std::iota(indices.begin(), indices.end(), std::int64_t(0));
    std::nth_element(indices.begin(), indices.begin() + std::ptrdiff_t(count), indices.end(),
                     [&](std::int64_t a, std::int64_t b) {
                       const A x = weight(a), y = weight(b);
                       return x != y ? x > y : a < b;
                     });
    indices.resize(count);
    std::sort(indices.begin(), indices.end());
    return indices;
  }

  template <class A>
  static void add(const std::uint8_t* received, std::size_t count, std::vector<A>& sum) {
    for (std::size_t k = 0; k < count; ++k) {
      std::int64_t index = 0;
      A value{};
      std::memcpy(&index, received + k * sizeof index, sizeof index);
      std::memcpy(&value, received + count * sizeof index + k * sizeof value, sizeof value);
      sum[std::size_t(index)] += value;
    }
  }

  double share_;
  parallel::NumbersByKey left_{};
};

}  // namespace cleave::inline v0
