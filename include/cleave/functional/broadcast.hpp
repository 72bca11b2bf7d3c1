// broadcast and permute: send tensors unchanged from one rank to others.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/functional/arguments.hpp>
#include <cleave/functional/functional_ranks.hpp>
#include <cleave/functional/run_functional.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::functional {

/// The root's elements on every rank.
///
/// @param argument  on the root the elements; elsewhere only its extents are used
/// @param root  a rank of the group
/// @return      a copy on every rank, the root included
/// @collective  every rank of the group, with the same extents and root
/// @cost        receives x; allocates the result
/// @throws Error for an invalid group, or a root outside of it
template <class X>
Async<detail::tensor_t<X>> broadcast(const X& argument, int root, const Group& group,
                                     CallSite where = CallSite::here()) {
  const detail::Call call("functional::broadcast", argument, group, where);
  if (root < 0 || root >= call.size())
    call.fail("the root is rank " + std::to_string(root) + " of " + std::to_string(call.size()));
  return call.start([x = call.input, root, result = detail::tensor_t<X>(call.input.shape())](
                        const detail::Channel& channel) {
    const bool sends = channel.group().rank() == root;
    channel.run(Collective::broadcast(x.view(), result.view(), root));
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

/// Two numbers: a Hop, or what `std::get` takes (std::pair, std::tuple, std::array).
template <class Pair>
concept PairLike = std::same_as<Pair, Hop> || requires { std::tuple_size<Pair>::value; };

/// A rank as an int; numbers that do not fit are outside of every group.
template <class Rank>
int rank_from(const Rank& rank) {
  static_assert(std::is_integral_v<Rank>, "cleave: the pairs of permute are numbers of ranks");
  const int number = int(rank);
  return Rank(number) == rank ? number : std::numeric_limits<int>::max();
}

template <PairLike Pair>
Hop hop_from(const Pair& pair) {
  if constexpr (std::same_as<Pair, Hop>) {
    return pair;
  } else {
    static_assert(std::tuple_size<Pair>::value == 2,
                  "cleave: permute takes pairs {source, destination}");
    return {rank_from(std::get<0>(pair)), rank_from(std::get<1>(pair))};
  }
}

template <class Range>
concept PairRange = requires(Range& range) {
  std::end(range);
  requires PairLike<std::remove_cvref_t<decltype(*std::begin(range))>>;
};

}  // namespace detail

/// The pairs of `permute`: a list in braces, or any range of pairs.
class Hops {
 public:
  Hops(std::initializer_list<Hop> hops) : list_(hops) {}
  template <class Range>
  Hops(const Range& range) {
    append(range);
  }
  template <class Range>  // which may iterate over itself only if it is not const
    requires(!std::same_as<Range, Hops>)
  Hops(Range& range) {
    append(range);
  }

  const std::vector<Hop>& list() const noexcept { return list_; }

 private:
  template <class Range>
  void append(Range& range) {
    static_assert(detail::PairRange<Range>,
                  "cleave: permute takes a range of pairs {source, destination}");
    if constexpr (detail::PairRange<Range>)
      for (const auto& pair : range) list_.push_back(detail::hop_from(pair));
  }

  std::vector<Hop> list_;
};

namespace detail {

// Templates constrained to one type: compiled where called, not wherever this file is included.

/// @throws Error if a hop leaves the group, or two have the same source or destination
template <std::derived_from<Entry> E>
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
/// @param pairs {source, destination}, in any range: ranks of the group; a rank is the source of at
///              most one pair and the destination of at most one, perhaps of the same
/// @return      the elements of this rank's source; zeros on a rank that is not a destination
/// @collective  every rank of the group, with the same extents and pairs
/// @cost        receives x; allocates the result
/// @throws Error for an invalid group, or invalid pairs
template <class X>
Async<detail::tensor_t<X>> permute(const X& argument, const Hops& pairs, const Group& group,
                                   CallSite where = CallSite::here()) {
  using Result = detail::tensor_t<X>;
  const detail::Call call("functional::permute", argument, group, where);
  detail::verify_hops(pairs.list(), call);
  return call.start([x = call.input, hops = pairs.list(),
                     result = Result(call.input.shape())](const detail::Channel& channel) {
    const int rank = channel.group().rank();
    const Box whole = Box::of(Shape(x.shape()));
    std::vector<Transfer> sends, receives;
    for (const Hop& hop : hops) {
      if (hop.source == rank) sends.push_back({hop.destination, whole, whole});
      if (hop.destination == rank) receives.push_back({hop.source, whole, whole});
    }
    Collective exchange =
        Collective::exchange(CollectiveKind::exchange, x.view(), result.view(), sends, receives);
    exchange.global_count = x.size();
    exchange.detail = detail::packed_hops(hops);
    channel.run(exchange);
    if (receives.empty()) result.fill_(typename Result::value_type{});
    return result;
  });
}

}  // namespace cleave::inline v0::functional
