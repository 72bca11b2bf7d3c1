// Makes the schedule of calls that run together, by the algorithms that select.hpp chooses.
#pragma once

#include <span>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/flat.hpp>
#include <cleave/comm/schedule/packed.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/comm/schedule/select.hpp>
#include <cleave/comm/schedule/topology.hpp>
#include <cleave/comm/schedule/two_level.hpp>

namespace cleave::inline v0::detail {

/// Appends the steps of one call.
inline void append_call(Schedule& schedule, const Collective& c, const Topology& topology) {
  const Algorithm algorithm = select(c, topology);
  switch (algorithm) {
    case Algorithm::columns:
    case Algorithm::leaders:
    case Algorithm::forwarded: return TwoLevelSchedule(schedule, topology).append(c, algorithm);
    default:
      FlatSchedule(schedule, RankLevel::group, topology.rank, topology.size, topology.limits)
          .append(c, algorithm);
  }
}

/// The schedule of calls that run together. Where ranks share memory, it is one step.
/// @param calls      must outlive a schedule that runs
/// @param allocates  false: for a schedule that is only printed
inline Schedule schedule_for(std::span<const Collective> calls, const Topology& topology,
                             bool allocates = true) {
  Schedule schedule(allocates);
  if (topology.shares_memory) {
    if (allocates) schedule.calls(StepAction::direct, RankLevel::group, calls);
    else schedule.direct(RankLevel::group, {calls.begin(), calls.end()});
    return schedule;
  }
  std::vector<Collective> packed, alone;
  for (const Collective& c : calls)
    (calls.size() > 1 && is_packed(c, topology) ? packed : alone).push_back(c);
  if (packed.size() == 1) alone.push_back(packed[0]);
  else if (!packed.empty()) PackedSchedule(schedule, topology).append(packed);
  for (const Collective& c : alone) append_call(schedule, c, topology);
  return schedule;
}

}  // namespace cleave::inline v0::detail
