// Gradient buckets: gradients that are reduced together, of one element type per bucket.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>

namespace cleave::inline v0::parallel {

/// The sizes of buckets in bytes.
struct BucketSizes {
  /// The first bucket of each element type: small, so that communication starts early.
  index_t first = index_t(1) << 20;
  index_t others = index_t(25) << 20;
};

/// The properties of a parameter that determine its bucket.
struct BucketEntry {
  DType dtype = DType::float32;
  index_t bytes = 0;
};

/// Assigns parameters to buckets: consecutive parameters of one element type, until the bucket
/// reaches its size in bytes. Buckets are ordered by their last parameters.
///
/// @param entries  of all parameters
/// @param order    all parameter numbers, in the order in which gradients become complete
/// @return         the numbers in each bucket, in that order
inline std::vector<std::vector<int>> arrange_buckets(std::span<const BucketEntry> entries,
                                                     std::span<const int> order,
                                                     const BucketSizes& sizes) {
  struct Open {
    DType dtype;
    index_t limit, bytes;
    std::vector<int> members;
  };
  std::vector<Open> open;  // one per element type
  std::vector<std::vector<int>> buckets;
  for (const int number : order) {
    const BucketEntry& entry = entries[std::size_t(number)];
    auto at = std::find_if(open.begin(), open.end(),
                           [&](const Open& o) { return o.dtype == entry.dtype; });
    if (at == open.end()) at = open.insert(at, {entry.dtype, sizes.first, 0, {}});
    at->members.push_back(number);
    at->bytes += entry.bytes;
    if (at->bytes < at->limit) continue;
    buckets.push_back(std::move(at->members));
    *at = {entry.dtype, sizes.others, 0, {}};
  }
  for (Open& rest : open)
    if (!rest.members.empty()) buckets.push_back(std::move(rest.members));
  std::vector<std::size_t> place(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[std::size_t(order[i])] = i;
  const auto end_of = [&](const std::vector<int>& bucket) {
    return place[std::size_t(bucket.back())];
  };
  std::sort(buckets.begin(), buckets.end(),
            [&](const auto& a, const auto& b) { return end_of(a) < end_of(b); });
  return buckets;
}

/// The numbers n-1 .. 0: the expected order, because backward runs from the end of a module.
inline std::vector<int> reversed_order(std::size_t n) {
  std::vector<int> order(n);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace cleave::inline v0::parallel
