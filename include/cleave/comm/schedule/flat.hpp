// Schedules between ranks that share no memory: calls of the MPI library, messages, and reductions
// of our own, in rank order, where the library has none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/comm/schedule/select.hpp>
#include <cleave/comm/schedule/topology.hpp>

namespace cleave::inline v0::detail {

/// Slice `round` of `rounds` of a box, split along its longest dimension.
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
  FlatSchedule(Schedule& schedule, RankLevel level, int rank, int size,
               const ScheduleLimits& limits)
      : schedule_(schedule), level_(level), rank_(rank), size_(size), limits_(limits) {}

  /// @param algorithm  library, messages or in_rank_order
  void append(const Collective& c, Algorithm algorithm) {
    if (algorithm == Algorithm::library) return schedule_.call(StepAction::library, level_, c);
    if (algorithm == Algorithm::messages) return messages(c);
    if (c.kind == CollectiveKind::reduce_scatter) return reduce_scatter(c);
    all_reduce(c);
  }
  void append(const Collective& c) { append(c, select_flat(c, limits_)); }

 private:
  /// Appends an exchange of these transfers, which implements c.
  void append(StepAction action, CollectiveKind kind, const Collective& c, const View& destination,
              std::vector<Transfer> sends, std::vector<Transfer> receives) {
    schedule_.call(
        action, level_,
        Collective::exchange(kind, c.source, destination, schedule_.keep(std::move(sends)),
                             schedule_.keep(std::move(receives)))
            .within(c));
  }
  /// Any collective that only moves elements.
  void messages(const Collective& c) {
    if (is_exchange(c.kind)) return schedule_.call(StepAction::messages, level_, c);
    Transfers all(c, rank_, size_);
    append(StepAction::messages, CollectiveKind::exchange, c, c.destination, std::move(all.sends),
           std::move(all.receives));
  }

  /// Ranks exchange the addends of their pieces, slice by slice, and reduce them.
  void reduce_scatter(const Collective& c) {
    index_t longest = 0;
    for (const Box& piece : c.pieces) longest = std::max(longest, piece.volume());
    if (longest == 0) return;
    const index_t bytes = size_ * longest * index_t(size_of(c.source.dtype));
    const auto rounds = int(std::clamp<index_t>(
        (bytes + limits_.scratch_bytes - 1) / limits_.scratch_bytes, 1, longest));
    const Box& own = c.pieces[std::size_t(rank_)];
    index_t slice = 0;  // the longest of this rank's
    for (int round = 0; round < rounds; ++round)
      slice = std::max(slice, slice_of(own, round, rounds).volume());
    const View addends = schedule_.scratch(c.source.dtype, size_ * slice);
    for (int round = 0; round < rounds; ++round) {
      const Box mine = slice_of(own, round, rounds);
      const index_t count = mine.volume();
      std::vector<Transfer> sends, receives;
      std::vector<ConstView> operands;
      for (int r = 0; r < size_; ++r) {
        if (r != rank_) sends.push_back({r, slice_of(c.pieces[std::size_t(r)], round, rounds), {}});
        if (r != rank_) receives.push_back({r, {}, interval(r * count, (r + 1) * count)});
        operands.push_back(r != rank_ && count > 0
                               ? ConstView(dense_in(addends, r * count, mine.extents()))
                               : c.source[mine]);
      }
      append(StepAction::library, CollectiveKind::all_to_all, c, addends, std::move(sends),
             std::move(receives));
      if (count > 0)
        schedule_.reduce(c.op, std::move(operands), c.destination[mine.relative_to(own.begin)]);
    }
  }

  /// Every rank reduces a piece, or, of short arrays, everything.
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
    if (size_ * elements * index_t(size_of(type)) <= limits_.gathered_bytes) {
      const View all = schedule_.scratch(type, size_ * elements);
      std::vector<Box> pieces = flat_pieces(size_ * elements, size_);
      std::vector<ConstView> operands;
      for (const Box& piece : pieces) operands.push_back(piece_in(all, piece));
      append(Collective::all_gather(in, all, schedule_.keep(std::move(pieces))).within(c));
      schedule_.reduce(c.op, std::move(operands), out);
    } else {
      const std::span<const Box> pieces = schedule_.keep(flat_pieces(elements, size_));
      const View mine = piece_in(out, pieces[std::size_t(rank_)]);
      reduce_scatter(Collective::reduce_scatter(c.op, in, mine, pieces).within(c));
      append(Collective::all_gather(mine, out, pieces).within(c));
    }
    if (!c.destination.contiguous())
      schedule_.copy(dense_in(out, 0, c.destination.extents), c.destination);
  }

  Schedule& schedule_;
  RankLevel level_;
  int rank_, size_;
  const ScheduleLimits& limits_;
};

}  // namespace cleave::inline v0::detail
