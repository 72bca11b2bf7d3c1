// Chooses how a collective is carried out where ranks share memory or use MPI: the only place that
// does. The choice depends on values that all ranks of the group share.
//
// - Ranks that share the memory of a node: direct reads.
// - Ranks on several nodes, equally many on each: two levels, direct reads on a node and the MPI
//   library in columns (two_level.hpp).
// - Other groups, and reductions in rank order: the MPI library, messages and our own reductions
//   (flat.hpp).
//
// Of several calls that run together, short ones between nodes go as one message for each pair of
// ranks (packed.hpp).
#pragma once

#include <span>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/flat.hpp>
#include <cleave/comm/schedule/packed.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/comm/schedule/topology.hpp>
#include <cleave/comm/schedule/two_level.hpp>

namespace cleave::detail {

/// Appends the steps of one call.
inline void append_call(Schedule& schedule, const Collective& c, const Topology& topology) {
  const bool in_any_order =
      !is_reduction(c.kind) || reduces_in_any_order(c.dtype(), c.op, topology.reproducible);
  if (topology.shares_memory) schedule.direct(RankLevel::group, {c});
  else if (topology.grid.nodes > 0 && in_any_order && TwoLevelSchedule::has(c.kind))
    TwoLevelSchedule(schedule, topology).append(c);
  else
    FlatSchedule(schedule, RankLevel::group, topology.rank, topology.size, topology.limits)
        .append(c, in_any_order);
}

/// The schedule of calls that run together; its views are those of the calls.
/// @param allocates  false: for a schedule that is only printed
inline Schedule schedule_for(std::span<const Collective> calls, const Topology& topology,
                             bool allocates = true) {
  Schedule schedule(allocates);
  std::vector<Collective> packed, alone;
  for (const Collective& c : calls) {
    const bool packs =
        calls.size() > 1 && !topology.shares_memory && PackedSchedule::has(c, topology);
    (packs ? packed : alone).push_back(c);
  }
  if (packed.size() == 1) alone.push_back(packed[0]);
  else if (!packed.empty()) PackedSchedule(schedule, topology).append(packed);
  for (const Collective& c : alone) append_call(schedule, c, topology);
  return schedule;
}

}  // namespace cleave::detail
