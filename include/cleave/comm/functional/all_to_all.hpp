// all_to_all: every rank cuts its tensor into one part for each rank, and puts together what it
// receives from each. Parts are boxes of the tensors: nothing is packed where peers are read
// directly.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/async.hpp>
#include <cleave/comm/functional/entry.hpp>
#include <cleave/comm/functional/group.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::functional {

namespace detail {

inline void run_all_to_all(const Channel& channel, const ConstView& source, const View& result,
                           const std::vector<Transfer>& sends,
                           const std::vector<Transfer>& receives, index_t global_count, bool even) {
  Collective call;
  call.kind = CollectiveKind::all_to_all;
  call.source = source;
  call.destination = result;
  call.sends = sends;
  call.receives = receives;
  call.global_count = global_count;
  call.even = even;
  channel.run(call);
}

/// Equal parts of dimension `split`, put together along dimension `concat`.
inline void run_equal_parts(const Channel& channel, const ConstView& source, const View& result,
                            int split, int concat) {
  const int ranks = channel.group().size(), rank = channel.group().rank();
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < ranks; ++r) {
    const auto cut = [&](int part) { return part_of(source.extents, split, part, ranks); };
    const auto place = [&](int part) { return part_of(result.extents, concat, part, ranks); };
    sends.push_back({r, cut(r), place(rank)});
    receives.push_back({r, cut(rank), place(r)});
  }
  run_all_to_all(channel, source, result, sends, receives, source.size() * ranks, true);
}

/// How many elements of a dimension go to each rank and come from each.
struct Splits {
  std::vector<index_t> sent{};
  std::vector<index_t> received{};
};

/// @throws Error if there is not one size for each rank, one is negative, or what is sent is not
///         all of dimension `d`
inline void verify_splits(const Splits& splits, const Shape& extents, int d, const Entry& entry) {
  const auto verify = [&](const std::vector<index_t>& sizes, const char* what) {
    if (int(sizes.size()) != entry.size())
      entry.fail("there are " + std::to_string(sizes.size()) + " sizes of what is " + what +
                 " for " + std::to_string(entry.size()) + " ranks");
    for (std::size_t r = 0; r < sizes.size(); ++r)
      if (sizes[r] < 0)
        entry.fail("the size of what is " + std::string(what) + (what[0] == 's' ? " to" : " from") +
                   " rank " + std::to_string(r) + " is " + std::to_string(sizes[r]));
  };
  verify(splits.sent, "sent");
  verify(splits.received, "received");
  const index_t sum = std::accumulate(splits.sent.begin(), splits.sent.end(), index_t(0));
  if (sum != extents[d])
    entry.fail("the sizes of what is sent add up to " + std::to_string(sum) + ", but dimension " +
                   std::to_string(d) + " has " + std::to_string(extents[d]) + " elements",
               to_string(extents));
}

/// What a rank tells a peer about the parts that they send each other.
struct Notice {
  index_t sent_at = 0;        ///< where the peer's part begins here
  index_t sent = 0;           ///< its size
  index_t received_at = 0;    ///< where what comes from the peer will begin here
  index_t received = 0;       ///< the size it is expected to have
  index_t cross_section = 0;  ///< elements per unit of size
};

/// Notices of all peers: a rank cannot know where its part begins in a peer's tensor.
inline std::vector<Notice> exchange_notices(const Channel& channel,
                                            const std::vector<Notice>& mine) {
  constexpr index_t words = index_t(sizeof(Notice) / sizeof(index_t));
  const Shape extents(std::array<index_t, 2>{index_t(mine.size()), words});
  std::vector<Notice> theirs = mine;  // where nothing moves, peers do as this rank expects
  for (Notice& notice : theirs) std::swap(notice.sent, notice.received);
  run_equal_parts(channel, ConstView::dense(mine.data(), DType::int64, extents),
                  View::dense(theirs.data(), DType::int64, extents), 0, 0);
  return theirs;
}

/// Both ranks of a pair that do not agree throw.
inline void compare_notices(const Notice& mine, const Notice& theirs, int rank, int peer,
                            const Channel& channel) {
  const auto fail = [&](int from, int to, index_t sent, index_t received) {
    throw Error(channel.operation(),
                "rank " + std::to_string(from) + " of group '" + channel.name() + "' sends " +
                    std::to_string(sent) + " to rank " + std::to_string(to) + ", which expects " +
                    std::to_string(received),
                {.rank = channel.group().state().world_rank});
  };
  if (mine.sent != theirs.received) fail(rank, peer, mine.sent, theirs.received);
  if (theirs.sent != mine.received) fail(peer, rank, theirs.sent, mine.received);
  if (mine.cross_section != theirs.cross_section)
    throw Error(channel.operation(),
                "ranks " + std::to_string(rank) + " and " + std::to_string(peer) + " of group '" +
                    channel.name() + "' differ in other extents than that of the split dimension",
                {.rank = channel.group().state().world_rank});
}

/// Parts of the given sizes.
inline void run_split_parts(const Channel& channel, const ConstView& source, const View& result,
                            const Splits& splits, int d) {
  const int ranks = channel.group().size(), rank = channel.group().rank();
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
  const std::vector<Notice> theirs = exchange_notices(channel.on_host(), mine);

  const auto slab = [&](index_t begin, index_t width) {
    Box box = Box::of(source.extents);
    box.begin[d] = begin;
    box.end[d] = begin + width;
    return box;
  };
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < ranks; ++r) {
    const Notice &here = mine[std::size_t(r)], &there = theirs[std::size_t(r)];
    compare_notices(here, there, rank, r, channel);
    if (here.sent > 0)
      sends.push_back({r, slab(here.sent_at, here.sent), slab(there.received_at, here.sent)});
    if (here.received > 0)
      receives.push_back(
          {r, slab(there.sent_at, here.received), slab(here.received_at, here.received)});
  }
  run_all_to_all(channel, source, result, sends, receives, 0, false);
}

}  // namespace detail

/// Part r of dimension `split` goes to rank r; what comes is put together along dimension
/// `concat`, in the order of the ranks.
///
/// @param x    [.., e, .., f, ..] with e, along `split`, a multiple of n: unmodified; must not
///             change before the result has been waited for
/// @return     [.., e/n, .., n f, ..]
/// @collective every rank of the group, with the same extents, in the same order as its other
///             asynchronous calls
/// @cost       receives (n-1)/n of x; allocates the result
/// @throws Error for a group that is none, or a dimension that x lacks or that n does not divide
template <Element T, int Rank, class Device>
Async<Tensor<T, Rank, Device>> all_to_all(const Tensor<T, Rank, Device>& x, int split, int concat,
                                          const Group& group) {
  static_assert(Rank > 0, "cleave: a scalar has no dimension to split");
  const detail::Entry entry(Device{}, "functional::all_to_all", group);
  const int from = entry.dim(split, Shape(x.shape())), to = entry.dim(concat, Shape(x.shape()));
  auto extents = x.shape();
  extents[std::size_t(from)] = entry.share(Shape(extents), from);
  extents[std::size_t(to)] *= entry.size();
  return entry.start(Device{}, [x, from, to, result = Tensor<T, Rank, Device>(extents)](
                                   const detail::Channel& channel) {
    detail::run_equal_parts(channel, x.view(), result.view(), from, to);
    return result;
  });
}

/// The same with `concat` = `split` = `dim`: the result has the extents of x.
template <Element T, int Rank, class Device>
Async<Tensor<T, Rank, Device>> all_to_all(const Tensor<T, Rank, Device>& x, int dim,
                                          const Group& group) {
  return all_to_all(x, dim, dim, group);
}

/// Parts of different sizes along dimension `dim`: the first sent[0] elements go to rank 0, the
/// next sent[1] to rank 1, ..; what comes is put together in the order of the ranks.
///
/// @param x         extents along `dim` may differ from rank to rank; unmodified; must not change
///                  before the result has been waited for
/// @param sent      one size for each rank; together all of the dimension
/// @param received  what each rank sends to this one
/// @collective      every rank of the group, in the same order as its other asynchronous calls
/// @cost            ranks first tell each other 40 bytes about their parts; then receives what
///                  others send; allocates the result
/// @throws Error    for a group that is none, a dimension that x lacks, sizes that are not as
///                  above; when waited for, on both ranks that do not agree about a part
template <Element T, int Rank, class Device>
Async<Tensor<T, Rank, Device>> all_to_all(const Tensor<T, Rank, Device>& x,
                                          const std::vector<index_t>& sent,
                                          const std::vector<index_t>& received, int dim,
                                          const Group& group) {
  static_assert(Rank > 0, "cleave: a scalar has no dimension to split");
  const detail::Entry entry(Device{}, "functional::all_to_all", group);
  const int d = entry.dim(dim, Shape(x.shape()));
  detail::Splits splits{sent, received};
  detail::verify_splits(splits, Shape(x.shape()), d, entry);
  auto extents = x.shape();
  extents[std::size_t(d)] = std::accumulate(received.begin(), received.end(), index_t(0));
  return entry.start(Device{},
                     [x, d, splits = std::move(splits),
                      result = Tensor<T, Rank, Device>(extents)](const detail::Channel& channel) {
                       detail::run_split_parts(channel, x.view(), result.view(), splits, d);
                       return result;
                     });
}

}  // namespace cleave::functional
