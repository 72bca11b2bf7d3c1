// Which gradients travel together: parameters in buckets of one element type each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>

namespace cleave::parallel {

/// How large buckets are to be.
struct BucketSizes {
  /// Of the first bucket of each element type: small, so that communication starts early.
  index_t first = index_t(1) << 20;
  index_t others = index_t(25) << 20;
};

/// What is to be known of a parameter.
struct BucketEntry {
  DType dtype = DType::float32;
  index_t bytes = 0;
};

/// Cuts a sequence of parameters into buckets: consecutive ones of an element type, until they have
/// the bytes that a bucket is to have. Buckets stand in the order in which their last ones stand.
///
/// @param entries  of all parameters
/// @param order    their numbers, each once, in the order in which gradients become complete
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

/// The numbers n-1 .. 0: a guess, as backward goes through a module from its end.
inline std::vector<int> reversed_order(std::size_t n) {
  std::vector<int> order(n);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace cleave::parallel
