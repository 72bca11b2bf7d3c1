// A collective of equal pieces of a flat array, without memory: for schedules that are only
// printed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/comm/schedule/schedule_for.hpp>
#include <cleave/comm/schedule/topology.hpp>

namespace cleave::inline v0::detail {

class FlatCall {
 public:
  /// @param each  elements of a piece: of a rank, or of what a rank sends to another
  FlatCall(CollectiveKind kind, DType type, ReduceOp op, index_t each, int rank, int size)
      : pieces_(flat_pieces(size * each, size)) {
    const index_t all = size * each;
    const bool gathers = kind == CollectiveKind::all_gather || kind == CollectiveKind::gather;
    const bool scatters = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scatter;
    for (int r = 0; r < size; ++r) {
      const Box &mine = pieces_[std::size_t(rank)], &theirs = pieces_[std::size_t(r)];
      sends_.push_back({r, theirs, mine});
      receives_.push_back({r, mine, theirs});
    }
    call_.kind = kind;
    call_.op = op;
    call_.source = ConstView::dense(nullptr, type, Shape::filled(1, gathers ? each : all));
    call_.destination = View::dense(nullptr, type, Shape::filled(1, scatters ? each : all));
    call_.pieces = pieces_;
    call_.sends = sends_;
    call_.receives = receives_;
    call_.global_count = kind == CollectiveKind::all_to_all ? all * size : all;
    call_.even = true;
  }
  FlatCall(const FlatCall&) = delete;  // the call refers to the lists
  FlatCall& operator=(const FlatCall&) = delete;

  /// What a rank of that topology does. @cost local
  Schedule schedule(const Topology& topology) const {
    return schedule_for({&call_, 1}, topology, false);
  }

 private:
  std::vector<Box> pieces_;
  std::vector<Transfer> sends_{}, receives_{};
  Collective call_{};
};

}  // namespace cleave::inline v0::detail
