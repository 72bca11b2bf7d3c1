// Runs the steps of a schedule: the only place that does.
#pragma once

#include <cleave/comm/mpi/library.hpp>
#include <cleave/comm/mpi/messages.hpp>
#include <cleave/comm/schedule/schedule.hpp>
#include <cleave/kernels/host/reduce_views.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::detail {

/// @tparam Group  a communicator with `ranks_of(level)`, the communicator of that level;
///                `context_for(call)`; and `read_directly(calls)`
template <class Group>
void execute(const Schedule& schedule, Group& group) {
  for (const ScheduleStep& step : schedule.steps()) {
    switch (step.action) {
      case StepAction::copy: strided_copy(step.operands[0], step.result); break;
      case StepAction::reduce:
        reduce_range(step.op, step.operands, step.result, 0, step.result.size());
        break;
      case StepAction::direct: group.ranks_of(step.level).read_directly(step.calls); break;
      case StepAction::library: {
        const MpiOpContext way = group.ranks_of(step.level).context_for(step.calls[0]);
        MpiLibrary(way).run(step.calls[0]);
        break;
      }
      case StepAction::messages: {
        const MpiOpContext way = group.ranks_of(step.level).context_for(step.calls[0]);
        exchange(step.calls[0], way);
        break;
      }
    }
  }
}

}  // namespace cleave::detail
