// Schedules between ranks that share no memory: calls of the MPI library, messages, and reductions
// of our own, in rank order, where the library has none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/limits.hpp>
#include <cleave/comm/schedule/reductions.hpp>
#include <cleave/comm/schedule/schedule.hpp>

namespace cleave::detail {

/// Part `round` of `rounds` of a box, split along its longest dimension.
inline Box slice_of(Box box, int round, int rounds) {
  if (rounds == 1 || box.dims() == 0) return box;
  const Shape extents = box.extents();
  int longest = 0;
  for (int d = 1; d < extents.dims; ++d)
    if (extents[d] > extents[longest]) longest = d;
  const index_t begin = box.begin[longest], extent = extents[longest];
  box.begin[longest] = begin + extent * round / rounds;
  box.end[longest] = begin + extent * (round + 1) / rounds;
  return box;
}

/// Appends schedules for the ranks of one level.
class FlatSchedule {
 public:
  /// @param rank, size  of the level
  FlatSchedule(Schedule& schedule, RankLevel level, int rank, int size, const ScheduleLimits& limits)
      : schedule_(schedule), level_(level), rank_(rank), size_(size), limits_(limits) {}

  /// @param in_any_order  whether a reduction may be left to the library
  void append(const Collective& c, bool in_any_order) {
    const bool reduces =
        c.kind == CollectiveKind::reduce_scatter || c.kind == CollectiveKind::all_reduce;
    index_t elements = c.global_count;
    if (reduces) elements = c.source.size();
    if (c.kind == CollectiveKind::all_gather) elements = c.destination.size();
    const bool by_library = elements > 0 && elements <= limits_.library_count &&
                            (!reduces || (in_any_order && library_reduces(c.dtype(), c.op)));
    switch (c.kind) {
      case CollectiveKind::barrier:
      case CollectiveKind::broadcast: return schedule_.call(StepAction::library, level_, c);
      case CollectiveKind::scatter: return scatter(c);
      case CollectiveKind::gather: return gather(c);
      case CollectiveKind::exchange: return schedule_.call(StepAction::messages, level_, c);
      case CollectiveKind::all_to_all:
        return schedule_.call(by_library ? StepAction::library : StepAction::messages, level_, c);
      case CollectiveKind::all_gather:
        return by_library ? schedule_.call(StepAction::library, level_, c) : all_gather(c);
      case CollectiveKind::reduce_scatter:
        return by_library ? schedule_.call(StepAction::library, level_, c) : reduce_scatter(c);
      case CollectiveKind::all_reduce:
        return by_library ? schedule_.call(StepAction::library, level_, c) : all_reduce(c);
    }
  }

 private:
  void append(StepAction action, Collective call, std::vector<Transfer> sends,
              std::vector<Transfer> receives) {
    call.sends = schedule_.keep(std::move(sends));
    call.receives = schedule_.keep(std::move(receives));
    schedule_.call(action, level_, call);
  }
  Collective exchange_of(const Collective& c) const {
    Collective call = part_of_call(c, CollectiveKind::exchange);
    call.source = c.source;
    call.destination = c.destination;
    return call;
  }

  void scatter(const Collective& c) {
    std::vector<Transfer> sends, receives;
    const Box whole = Box::of(c.destination.extents);
    for (int r = 0; rank_ == c.root && r < size_; ++r)
      sends.push_back({r, c.pieces[std::size_t(r)], r == rank_ ? whole : Box{}});
    if (rank_ != c.root) receives.push_back({c.root, {}, whole});
    append(StepAction::messages, exchange_of(c), std::move(sends), std::move(receives));
  }

  void gather(const Collective& c) {
    std::vector<Transfer> sends, receives;
    for (int r = 0; rank_ == c.root && r < size_; ++r)
      if (r != rank_) receives.push_back({r, {}, c.pieces[std::size_t(r)]});
    const Box own = rank_ == c.root ? c.pieces[std::size_t(rank_)] : Box{};
    sends.push_back({c.root, Box::of(c.source.extents), own});
    append(StepAction::messages, exchange_of(c), std::move(sends), std::move(receives));
  }

  void all_gather(const Collective& c) {
    std::vector<Transfer> sends, receives;
    for (int r = 0; r < size_; ++r) {
      sends.push_back({r, Box::of(c.source.extents), c.pieces[std::size_t(rank_)]});
      if (r != rank_) receives.push_back({r, {}, c.pieces[std::size_t(r)]});
    }
    if (c.source.data == c.destination[c.pieces[std::size_t(rank_)]].data)
      std::erase_if(sends, [&](const Transfer& t) { return t.peer == rank_; });
    append(StepAction::messages, exchange_of(c), std::move(sends), std::move(receives));
  }

  /// Ranks exchange the addends of their pieces, slice by slice, and reduce them.
  void reduce_scatter(const Collective& c) {
    index_t longest = 0;
    for (const Box& piece : c.pieces) longest = std::max(longest, piece.volume());
    if (longest == 0) return;
    const index_t bytes = size_ * longest * index_t(size_of(c.source.dtype));
    const auto rounds = int(std::clamp<index_t>((bytes + limits_.scratch_bytes - 1) / limits_.scratch_bytes, 1, longest));
    const Box& own = c.pieces[std::size_t(rank_)];
    index_t slice = 0;  // the longest of this rank's
    for (int round = 0; round < rounds; ++round)
      slice = std::max(slice, slice_of(own, round, rounds).volume());
    const View addends = schedule_.scratch(c.source.dtype, size_ * slice);
    for (int round = 0; round < rounds; ++round) {
      const Box mine = slice_of(own, round, rounds);
      const index_t count = mine.volume();
      Collective call = part_of_call(c, CollectiveKind::all_to_all);
      call.source = c.source;
      call.destination = addends;
      std::vector<Transfer> sends, receives;
      std::vector<ConstView> operands;
      for (int r = 0; r < size_; ++r) {
        if (r != rank_) sends.push_back({r, slice_of(c.pieces[std::size_t(r)], round, rounds), {}});
        if (r != rank_) receives.push_back({r, {}, interval(r * count, (r + 1) * count)});
        operands.push_back(r != rank_ && count > 0
                               ? ConstView(dense_in(addends, r * count, mine.extents()))
                               : c.source[mine]);
      }
      append(StepAction::library, call, std::move(sends), std::move(receives));
      if (count > 0)
        schedule_.reduce(c.op, std::move(operands), c.destination[mine.relative_to(own.begin)]);
    }
  }

  /// Every rank reduces a share, or, of short arrays, everything.
  void all_reduce(const Collective& c) {
    const index_t elements = c.source.size();
    if (elements == 0) return;
    const DType type = c.source.dtype;
    const Shape flat = Shape::filled(1, elements);
    const View out = c.destination.contiguous() ? View::dense(c.destination.data, type, flat)
                                                : schedule_.scratch(type, elements);
    const ConstView in =
        c.source.contiguous() ? ConstView::dense(c.source.data, type, flat) : ConstView(out);
    if (!c.source.contiguous()) schedule_.copy(c.source, dense_in(out, 0, c.source.extents));
    Collective gather = part_of_call(c, CollectiveKind::all_gather);
    if (size_ * elements * index_t(size_of(type)) <= limits_.gathered_bytes) {
      gather.source = in;
      gather.destination = schedule_.scratch(type, size_ * elements);
      std::vector<Box> pieces;
      std::vector<ConstView> operands;
      for (index_t r = 0; r < size_; ++r) {
        pieces.push_back(interval(r * elements, (r + 1) * elements));
        operands.push_back(part_of(gather.destination, pieces.back()));
      }
      gather.pieces = schedule_.keep(std::move(pieces));
      append(gather, true);
      schedule_.reduce(c.op, std::move(operands), out);
    } else {
      const index_t share = (elements + size_ - 1) / size_;
      std::vector<Box> shares;
      for (index_t r = 0; r < size_; ++r)
        shares.push_back(
            interval(std::min(share * r, elements), std::min(share * (r + 1), elements)));
      Collective scatter = part_of_call(c, CollectiveKind::reduce_scatter);
      scatter.pieces = gather.pieces = schedule_.keep(std::move(shares));
      const View mine = part_of(out, scatter.pieces[std::size_t(rank_)]);
      scatter.source = in;
      scatter.destination = mine;
      reduce_scatter(scatter);
      gather.source = mine;
      gather.destination = out;
      append(gather, true);
    }
    if (!c.destination.contiguous())
      schedule_.copy(dense_in(out, 0, c.destination.extents), c.destination);
  }

  Schedule& schedule_;
  RankLevel level_;
  int rank_, size_;
  const ScheduleLimits& limits_;
};

}  // namespace cleave::detail
