// broadcast and permute: send tensors unchanged from one rank to others.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cleave/comm/async.hpp>
#include <cleave/comm/functional/entry.hpp>
#include <cleave/comm/functional/group.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::functional {

/// The root's elements on every rank.
///
/// @param x     on the root the elements, unmodified; elsewhere only its extents are used. The
///              root's must not change before its result has been waited for
/// @param root  a rank of the group
/// @return      a copy on every rank, the root included
/// @collective  every rank of the group, with the same extents and root, in the same order as its
///              other asynchronous calls
/// @cost        receives x; allocates the result
/// @throws Error for an invalid group, or a root outside of it
template <Element T, int Rank, class Device>
Async<Tensor<T, Rank, Device>> broadcast(const Tensor<T, Rank, Device>& x, int root,
                                         const Group& group) {
  const detail::Entry entry(Device{}, "functional::broadcast", group);
  if (root < 0 || root >= entry.size())
    entry.fail("the root is rank " + std::to_string(root) + " of " + std::to_string(entry.size()));
  return entry.start(Device{}, [x, root, result = Tensor<T, Rank, Device>(x.shape())](
                                   const detail::Channel& channel) {
    const bool sends = channel.group().rank() == root;
    Collective call;
    call.kind = CollectiveKind::broadcast;
    call.root = root;
    if (sends) call.source = x.view();
    else call.destination = result.view();
    call.global_count = x.size();
    channel.run(call);
    if (sends) result.copy_(x);
    return result;
  });
}

/// A pair of `permute`: rank `source` sends its elements to rank `destination`.
struct Hop {
  int source = 0;
  int destination = 0;
};

namespace detail {

// Templates constrained to one type: compiled where called, not wherever this file is included.

/// @throws Error if a hop leaves the group, or two have the same source or destination
template <std::same_as<Entry> E>
void verify_hops(const std::vector<Hop>& hops, const E& entry) {
  std::vector<bool> sends(std::size_t(entry.size()), false), receives = sends;
  for (const Hop& hop : hops) {
    const auto outside = [&](int rank) { return rank < 0 || rank >= entry.size(); };
    if (outside(hop.source) || outside(hop.destination))
      entry.fail("the pair {" + std::to_string(hop.source) + ", " +
                 std::to_string(hop.destination) + "} is outside of the group of " +
                 std::to_string(entry.size()) + " ranks");
    if (sends[std::size_t(hop.source)])
      entry.fail("rank " + std::to_string(hop.source) + " is the source of two pairs");
    if (receives[std::size_t(hop.destination)])
      entry.fail("rank " + std::to_string(hop.destination) + " is the destination of two pairs");
    sends[std::size_t(hop.source)] = receives[std::size_t(hop.destination)] = true;
  }
}

/// The pairs as a number that ranks compare, independent of their order.
template <std::same_as<Hop> H>
std::uint64_t packed_hops(std::vector<H> hops) {
  std::sort(hops.begin(), hops.end(),
            [](const Hop& a, const Hop& b) { return a.source < b.source; });
  std::vector<int> numbers;
  for (const Hop& hop : hops) numbers.insert(numbers.end(), {hop.source, hop.destination});
  return packed_detail(numbers);
}

}  // namespace detail

/// Every pair's source sends its elements to the pair's destination.
///
///     permute(x, {{0, 1}, {1, 2}, {2, 0}}, world)    // a ring
///
/// @param x     unmodified; must not change before the result has been waited for
/// @param hops  pairs of ranks of the group; a rank is the source of at most one pair and the
///              destination of at most one, which may be the same pair
/// @return      the elements of this rank's source; zeros on a rank that is not a destination
/// @collective  every rank of the group, with the same extents and pairs, in the same order as its
///              other asynchronous calls
/// @cost        receives x; allocates the result
/// @throws Error for an invalid group, or invalid pairs
template <Element T, int Rank, class Device>
Async<Tensor<T, Rank, Device>> permute(const Tensor<T, Rank, Device>& x,
                                       const std::vector<Hop>& hops, const Group& group) {
  const detail::Entry entry(Device{}, "functional::permute", group);
  detail::verify_hops(hops, entry);
  return entry.start(Device{}, [x, hops, result = Tensor<T, Rank, Device>(x.shape())](
                                   const detail::Channel& channel) {
    const int rank = channel.group().rank();
    const Box whole = Box::of(Shape(x.shape()));
    std::vector<Transfer> sends, receives;
    for (const Hop& hop : hops) {
      if (hop.source == rank) sends.push_back({hop.destination, whole, whole});
      if (hop.destination == rank) receives.push_back({hop.source, whole, whole});
    }
    Collective call;
    call.kind = CollectiveKind::exchange;
    call.source = x.view();
    call.destination = result.view();
    call.sends = sends;
    call.receives = receives;
    call.global_count = x.size();
    call.detail = detail::packed_hops(hops);
    channel.run(call);
    if (receives.empty()) result.fill_(T{});
    return result;
  });
}

}  // namespace cleave::functional
