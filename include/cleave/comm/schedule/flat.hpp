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
#include <cleave/comm/schedule/topology.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/require_reduction.hpp>

namespace cleave::detail {

/// Whether MPI has an equivalent: it has no 16-bit floats and bools, no averages, no products of
/// complex numbers, and no floating-point maximum or minimum that propagates NaNs; and Open MPI 4.1
/// saturates sums of 8- and 16-bit integers instead of wrapping (ompi/mca/op/avx).
inline bool library_reduces(DType type, ReduceOp op) {
  if (op == ReduceOp::avg) return false;
  if (is_integer_dtype(type)) return op != ReduceOp::sum || size_of(type) > 2;
  if (is_complex_dtype(type)) return op == ReduceOp::sum;
  return (type == DType::float32 || type == DType::float64) &&
         (op == ReduceOp::sum || op == ReduceOp::product);
}

/// Whether a reduction gives the same result, or one with the usual rounding errors, in any order:
/// partial results may be rounded.
/// @param reproducible  whether sums are added in rank order, so that they do not depend on the run
inline bool reduces_in_any_order(DType type, ReduceOp op, bool reproducible) {
  if (op == ReduceOp::avg) return false;
  const bool rounds = !is_integer_dtype(type) && type != DType::boolean &&
                      (op == ReduceOp::sum || op == ReduceOp::product);
  const bool is_short = type == DType::float16 || type == DType::bfloat16;
  return !rounds || !(is_short || reproducible);
}

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

/// Equal shares of a flat array, of whole lines of that many elements.
inline std::vector<Box> shares_of(index_t elements, index_t ranks, index_t line) {
  const index_t share = ((elements + ranks - 1) / ranks + line - 1) / line * line;
  std::vector<Box> shares;
  for (index_t r = 0; r < ranks; ++r)
    shares.push_back(interval(std::min(share * r, elements), std::min(share * (r + 1), elements)));
  return shares;
}

/// Appends schedules for the ranks of one level.
class FlatSchedule {
 public:
  /// @param rank, size  of the level
  FlatSchedule(Schedule& schedule, RankLevel level, int rank, int size,
               const ScheduleLimits& limits)
      : schedule_(schedule), level_(level), rank_(rank), size_(size), limits_(limits) {}

  /// @param in_any_order  whether a reduction may be left to the library
  void append(const Collective& c, bool in_any_order) {
    const bool reduces = is_reduction(c.kind);
    index_t elements = c.global_count;
    if (reduces) elements = c.source.size();
    if (c.kind == CollectiveKind::all_gather) elements = c.destination.size();
    const bool by_library = elements > 0 && elements <= limits_.library_count &&
                            (!reduces || (in_any_order && library_reduces(c.dtype(), c.op)));
    switch (c.kind) {
      case CollectiveKind::barrier:
      case CollectiveKind::broadcast: return schedule_.call(StepAction::library, level_, c);
      case CollectiveKind::scatter:
      case CollectiveKind::gather: return messages(c);
      case CollectiveKind::exchange: return schedule_.call(StepAction::messages, level_, c);
      default: break;
    }
    if (by_library) return schedule_.call(StepAction::library, level_, c);
    switch (c.kind) {
      case CollectiveKind::all_gather: return messages(c);
      case CollectiveKind::reduce_scatter: return reduce_scatter(c);
      case CollectiveKind::all_reduce: return all_reduce(c);
      default: return schedule_.call(StepAction::messages, level_, c);
    }
  }

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
    if (size_ * elements * index_t(size_of(type)) <= limits_.gathered_bytes) {
      const View all = schedule_.scratch(type, size_ * elements);
      std::vector<Box> pieces;
      std::vector<ConstView> operands;
      for (index_t r = 0; r < size_; ++r) {
        pieces.push_back(interval(r * elements, (r + 1) * elements));
        operands.push_back(part_of(all, pieces.back()));
      }
      append(Collective::all_gather(in, all, schedule_.keep(std::move(pieces))).within(c), true);
      schedule_.reduce(c.op, std::move(operands), out);
    } else {
      const std::span<const Box> shares = schedule_.keep(shares_of(elements, size_, 1));
      const View mine = part_of(out, shares[std::size_t(rank_)]);
      reduce_scatter(Collective::reduce_scatter(c.op, in, mine, shares).within(c));
      append(Collective::all_gather(mine, out, shares).within(c), true);
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
