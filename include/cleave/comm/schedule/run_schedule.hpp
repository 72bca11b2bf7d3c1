// Runs the steps of a schedule: the only place that does.
#pragma once

#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/kernels/host/reduce_views.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::detail {

/// Runs a copy or a reduction, steps in this rank's own memory.
template <class Device>
void run_locally(const ScheduleStep& step) {
  if (step.action == StepAction::copy) strided_copy(Device{}, step.operands[0], step.result);
  else reduce_range(Device{}, step.op, step.operands, step.result, 0, step.result.size());
}

/// @tparam Device  whose memory the views are in
/// @param group    has `communicate(step)`, which runs all other steps
template <class Device, class Group>
void run_schedule(const Schedule& schedule, Group& group) {
  for (const ScheduleStep& step : schedule.steps()) {
    if (step.calls.empty()) run_locally<Device>(step);
    else group.communicate(step);
  }
}

}  // namespace cleave::inline v0::detail
