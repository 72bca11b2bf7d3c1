// all_to_all: every rank splits its tensor into one piece for each rank, and concatenates the
// pieces that it receives. Pieces are boxes of the tensors: nothing is packed where peers are read
// directly.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/functional/arguments.hpp>
#include <cleave/functional/functional_ranks.hpp>
#include <cleave/functional/run_functional.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::functional {

namespace detail {

// Templates constrained to one type: compiled where called, not wherever this file is included.

/// Equal pieces of dimension `split`, concatenated along dimension `concat`.
/// @param detail  the dimensions that the user named
template <std::same_as<Channel> C>
void run_equal_pieces(const C& channel, const ConstView& source, const View& result, int split,
                      int concat, std::uint64_t detail) {
  const int ranks = channel.group().size(), rank = channel.group().rank();
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < ranks; ++r) {
    const auto cut = [&](int index) { return piece_of(source.extents, split, index, ranks); };
    const auto place = [&](int index) { return piece_of(result.extents, concat, index, ranks); };
    sends.push_back({r, cut(r), place(rank)});
    receives.push_back({r, cut(rank), place(r)});
  }
  Collective call =
      Collective::exchange(CollectiveKind::all_to_all, source, result, sends, receives);
  call.global_count = source.size() * ranks;
  call.detail = detail;
  call.even = true;
  channel.run(call);
}

/// How many elements of a dimension go to each rank and come from each.
struct Splits {
  std::vector<index_t> sent{};
  std::vector<index_t> received{};
};

/// @param what  "sent" or "received"
/// @throws Error if the sum is more than index_t can hold
template <std::derived_from<Entry> E>
index_t sum_of(const std::vector<index_t>& sizes, const char* what, const E& entry) {
  index_t sum = 0;
  for (const index_t size : sizes) {
    if (size > std::numeric_limits<index_t>::max() - sum)
      entry.fail("the sum of the " + std::string(what) + " sizes does not fit in index_t");
    sum += size;
  }
  return sum;
}

/// @throws Error if there is not one size for each rank, one is negative, or the sent sizes do not
/// add up to dimension `d`
template <std::derived_from<Entry> E>
void verify_splits(const Splits& splits, const Shape& extents, int d, const E& entry) {
  const auto verify = [&](const std::vector<index_t>& sizes, const char* what) {
    if (int(sizes.size()) != entry.size())
      entry.fail(std::to_string(sizes.size()) + " " + what + " sizes are given for " +
                 std::to_string(entry.size()) + " ranks");
    for (std::size_t r = 0; r < sizes.size(); ++r)
      if (sizes[r] < 0)
        entry.fail("the size " + std::string(what) + (what[0] == 's' ? " to" : " from") + " rank " +
                   std::to_string(r) + " is " + std::to_string(sizes[r]) +
                   "; sizes must not be negative");
  };
  verify(splits.sent, "sent");
  verify(splits.received, "received");
  const index_t sum = sum_of(splits.sent, "sent", entry);
  if (sum != extents[d])
    entry.fail("the sent sizes add up to " + std::to_string(sum) + ", but dimension " +
                   std::to_string(d) + " has " + std::to_string(extents[d]) + " elements",
               to_string(extents));
}

/// A rank's note to a peer about the pieces that they send each other.
struct Notice {
  index_t sent_at = 0;        ///< where the peer's piece begins here
  index_t sent = 0;           ///< its size
  index_t received_at = 0;    ///< where the piece from the peer will begin here
  index_t received = 0;       ///< the expected size of that piece
  index_t cross_section = 0;  ///< elements per unit of size
};

/// The notices of all peers: a rank cannot know where its piece begins in a peer's tensor.
template <std::same_as<Channel> C>
std::vector<Notice> exchange_notices(const C& channel, const std::vector<Notice>& mine, int d) {
  constexpr index_t words = index_t(sizeof(Notice) / sizeof(index_t));
  const Shape extents(std::array<index_t, 2>{index_t(mine.size()), words});
  std::vector<Notice> theirs = mine;  // on a dry mesh, peers do as this rank expects
  for (Notice& notice : theirs) std::swap(notice.sent, notice.received);
  run_equal_pieces(channel, ConstView::dense(mine.data(), DType::int64, extents),
                   View::dense(theirs.data(), DType::int64, extents), 0, 0, packed_detail({&d, 1}));
  return theirs;
}

/// How this rank and a peer disagree, which the peer finds, too; empty if they agree.
template <std::same_as<Channel> C>
std::string disagreement(const Notice& mine, const Notice& theirs, int rank, int peer,
                         const C& channel) {
  const auto sizes = [&](int from, int to, index_t sent, index_t received) {
    return "rank " + std::to_string(from) + " of group '" + channel.name() + "' sends " +
           std::to_string(sent) + " to rank " + std::to_string(to) + ", which expects " +
           std::to_string(received);
  };
  if (mine.sent != theirs.received) return sizes(rank, peer, mine.sent, theirs.received);
  if (theirs.sent != mine.received) return sizes(peer, rank, theirs.sent, mine.received);
  if (mine.cross_section == theirs.cross_section) return "";
  return "ranks " + std::to_string(rank) + " and " + std::to_string(peer) + " of group '" +
         channel.name() + "' have different extents in dimensions other than the split one";
}

/// All ranks throw if two of them disagree: others would wait for messages that are never sent.
template <std::same_as<Channel> C>
void compare_notices(const std::vector<Notice>& mine, const std::vector<Notice>& theirs,
                     const C& channel) {
  const int ranks = channel.group().size(), rank = channel.group().rank();
  std::string problem;
  std::int64_t pair = 0;  // 1 + its index in a table of ranks and peers; 0: all agree
  for (int r = 0; r < ranks && pair == 0; ++r) {
    problem = disagreement(mine[std::size_t(r)], theirs[std::size_t(r)], rank, r, channel);
    if (!problem.empty()) pair = 1 + std::int64_t(rank) * ranks + r;
  }
  std::int64_t last = pair;  // the maximum over all ranks
  const Shape one(std::array<index_t, 1>{1});
  channel.on_host().run(Collective::all_reduce(ReduceOp::max,
                                               ConstView::dense(&pair, DType::int64, one),
                                               View::dense(&last, DType::int64, one)));
  if (last == 0) return;
  if (problem.empty())
    problem = "ranks " + std::to_string((last - 1) / ranks) + " and " +
              std::to_string((last - 1) % ranks) + " of group '" + channel.name() +
              "' disagree about the sizes that they send each other";
  throw Error(channel.operation(), problem, {.rank = channel.group().state().world_rank});
}

/// Sends pieces of the given sizes.
template <std::same_as<Channel> C>
void run_unequal_pieces(const C& channel, const ConstView& source, const View& result,
                        const Splits& splits, int d) {
  const int ranks = channel.group().size();
  Shape others = source.extents;
  others[d] = 1;
  std::vector<Notice> mine(std::size_t(ranks), Notice{});
  Notice next{.cross_section = others.product()};
  for (std::size_t r = 0; r < mine.size(); ++r) {
    next.sent = splits.sent[r];
    next.received = splits.received[r];
    mine[r] = next;
    next.sent_at += next.sent;
    next.received_at += next.received;
  }
  const std::vector<Notice> theirs = exchange_notices(channel.on_host(), mine, d);
  compare_notices(mine, theirs, channel);

  const auto slab = [&](index_t begin, index_t width) {
    Box box = Box::of(source.extents);
    box.begin[d] = begin;
    box.end[d] = begin + width;
    return box;
  };
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < ranks; ++r) {
    const Notice &here = mine[std::size_t(r)], &there = theirs[std::size_t(r)];
    if (here.sent > 0)
      sends.push_back({r, slab(here.sent_at, here.sent), slab(there.received_at, here.sent)});
    if (here.received > 0)
      receives.push_back(
          {r, slab(there.sent_at, here.received), slab(here.received_at, here.received)});
  }
  Collective call =
      Collective::exchange(CollectiveKind::all_to_all, source, result, sends, receives);
  call.detail = packed_detail({&d, 1});
  channel.run(call);
}

}  // namespace detail

/// Sends piece r of dimension `split` to rank r; concatenates the received pieces along dimension
/// `concat`, in rank order.
///
/// @param argument  [.., e, .., f, ..] with e, along `split`, a multiple of n
/// @return     [.., e/n, .., n f, ..]
/// @collective every rank of the group, with the same extents
/// @cost       receives (n-1)/n of x; allocates the result
/// @throws Error for an invalid group, a dimension that x lacks or that n does not divide, or more
/// elements on all ranks than index_t can hold
template <class X>
Async<detail::tensor_t<X>> all_to_all(const X& argument, int split, int concat, const Group& group,
                                      CallSite where = CallSite::here()) {
  using Result = detail::tensor_t<X>;
  static_assert(Result::dims > 0, "cleave: a scalar has no dimension to split");
  const detail::Call call("functional::all_to_all", argument, group, where);
  auto extents = call.input.shape();
  const int from = call.dim(split, Shape(extents)), to = call.dim(concat, Shape(extents));
  if (call.input.size() > std::numeric_limits<index_t>::max() / call.size())
    call.fail("the " + std::to_string(call.size()) +
                  " ranks together have more elements than index_t can hold",
              to_string(Shape(extents)));
  extents[std::size_t(from)] = call.piece_extent(Shape(extents), from);
  extents[std::size_t(to)] *= call.size();
  return call.start(
      [x = call.input, from, to, result = Result(extents)](const detail::Channel& channel) {
        detail::run_equal_pieces(channel, x.view(), result.view(), from, to,
                                 packed_detail(std::array<int, 2>{from, to}));
        return result;
      });
}

/// The same with `concat` = `split` = `dim`: the result has the extents of x.
template <class X>
Async<detail::tensor_t<X>> all_to_all(const X& x, int dim, const Group& group,
                                      CallSite where = CallSite::here()) {
  return all_to_all(x, dim, dim, group, where);
}

/// Pieces of different sizes along dimension `dim`: the first sent[0] elements go to rank 0, the
/// next sent[1] to rank 1, ..; received pieces are concatenated in rank order.
///
/// @param argument  extents along `dim` may differ from rank to rank
/// @param sent      one size for each rank; they add up to the extent of the dimension
/// @param received  the size of each rank's piece for this one
/// @collective      every rank of the group
/// @cost            ranks first send each other 40 bytes about their pieces, and all-reduce 8 bytes
///                  to see whether all agree; then receives the pieces; allocates the result
/// @throws Error    for an invalid group, a dimension that x lacks, sizes that are not as above;
///                  when waited for, on every rank, if two ranks disagree about a piece
template <class X>
Async<detail::tensor_t<X>> all_to_all(const X& argument, const std::vector<index_t>& sent,
                                      const std::vector<index_t>& received, int dim,
                                      const Group& group, CallSite where = CallSite::here()) {
  using Result = detail::tensor_t<X>;
  static_assert(Result::dims > 0, "cleave: a scalar has no dimension to split");
  const detail::Call call("functional::all_to_all", argument, group, where);
  auto extents = call.input.shape();
  const int d = call.dim(dim, Shape(extents));
  detail::Splits splits{sent, received};
  detail::verify_splits(splits, Shape(extents), d, call);
  extents[std::size_t(d)] = detail::sum_of(received, "received", call);
  return call.start([x = call.input, d, splits = std::move(splits),
                     result = Result(extents)](const detail::Channel& channel) {
    detail::run_unequal_pieces(channel, x.view(), result.view(), splits, d);
    return result;
  });
}

}  // namespace cleave::inline v0::functional
