// Runs plans: each step is one call of its primitive. Nothing here depends on placement types or
// makes a choice: all ranks run the steps of the same plan.
#pragma once

#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include <cleave/redistribute/all_gather.hpp>
#include <cleave/redistribute/all_reduce.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/redistribute/reduce_scatter.hpp>
#include <cleave/redistribute/round.hpp>
#include <cleave/redistribute/run_transfers.hpp>
#include <cleave/redistribute/step_call.hpp>
#include <cleave/redistribute/to_partial.hpp>
#include <cleave/redistribute/to_shard.hpp>

namespace cleave::inline v0::redistribution {

/// The call of a step that communicates.
template <class Device>
Call prepare(const Step& step, const Block& block, const Context& context) {
  if (step.kind != StepKind::all_reduce && step.needs_runs())
    return exchange_runs<Device>(step, block, context);
  Call call = [&] {
    switch (step.kind) {
      case StepKind::all_gather: return all_gather<Device>(step, block, context);
      case StepKind::reduce_scatter: return reduce_scatter<Device>(step, block, context);
      case StepKind::all_reduce: return all_reduce<Device>(step, block, context);
      default: return exchange<Device>(step, block, context);
    }
  }();
  if ((step.from.layout.axes_with_points() | step.to.layout.axes_with_points()) != 0)
    call.detail = checksum_detail(key_of(step, context).checksum());  // ranks' points must agree
  return call;
}

/// A plan being run on the local elements of one tensor.
template <class Device>
class Execution {
 public:
  /// @param plan  must outlive the execution
  Execution(const Plan& plan, Block&& block, const Context& context)
      : plan_(&plan), block_(std::move(block)), context_(context), source_(block_.view.data) {
    run_local_steps();
  }

  bool done() const { return next_ == plan_->count; }
  Block take_block() { return std::move(block_); }
  const Context& context() const { return context_; }

  /// The call of the next step, which refers to its operands. @pre !done()
  Call call() {
    // intermediate results may be overwritten
    context_.reuse = context_.reuse || block_.view.data != source_;
    return prepare<Device>((*plan_)[next_], block_, context_);
  }

  /// Continues with the result of that call, which has run.
  void take(Call&& call) {
    block_ = finish<Device>(std::move(call));
    ++next_;
    run_local_steps();
  }

 private:
  void run_local_steps() {
    for (; !done() && !communicates((*plan_)[next_].kind); ++next_) {
      const Step& step = (*plan_)[next_];
      if (step.kind != StepKind::slice) block_ = to_partial<Device>(step, block_, context_);
      else if (step.needs_runs()) block_ = slice_runs<Device>(step, block_, context_);
      else block_ = slice<Device>(step, block_, context_);
    }
  }

  const Plan* plan_;
  int next_ = 0;
  Block block_;
  Context context_;
  const void* source_;
};

/// Runs the steps of a plan on the local elements of this rank.
///
/// @return     the local elements under the plan's last layout; `block` itself where no step
///             changes them
/// @collective every rank of the mesh
/// @throws Error if a collective fails
template <class Device>
Block execute(const Plan& plan, Block&& block, const Context& context) {
  Execution<Device> execution(plan, std::move(block), context);
  while (!execution.done()) {
    Call call = execution.call();
    context.mesh.group(call.axes)->run(call.collective(context));
    execution.take(std::move(call));
  }
  return execution.take_block();
}

/// Runs several plans on one mesh step by step: steps over the same axes are one round,
/// synchronised once; small all-reduces of the same type and operation are merged.
///
/// @param packed   further calls, which join the first round
/// @param context  of all of them
/// @collective every rank of the mesh
template <class Device>
void execute_all(std::span<Execution<Device>> executions, std::span<const Call> packed,
                 const Context& context) {
  std::vector<Execution<Device>*> open;
  std::vector<Call> calls;
  std::vector<const Call*> waiting, others;
  for (const Call& call : packed) waiting.push_back(&call);
  for (;;) {
    open.clear();
    calls.clear();
    open.reserve(executions.size());
    calls.reserve(executions.size());
    for (Execution<Device>& execution : executions) {
      if (execution.done()) continue;
      open.push_back(&execution);
      calls.push_back(execution.call());
    }
    for (const Call& call : calls) waiting.push_back(&call);
    if (waiting.empty()) return;
    for (; !waiting.empty(); waiting.swap(others), others.clear()) {
      const AxisMask axes = waiting[0]->axes;
      Round<Device> round(waiting.size());
      for (const Call* call : waiting)
        if (call->axes == axes) round.add(*call, context);
        else others.push_back(call);
      round.run(*context.mesh.group(axes));
    }
    for (std::size_t i = 0; i < calls.size(); ++i) open[i]->take(std::move(calls[i]));
  }
}

/// The plan for a tensor on a mesh.
///
/// @param fixed  the plan, if the layouts alone decide it (see `sizes_decide`); null otherwise
/// @return       a reference that is valid until the next call for this mesh
template <std::same_as<Layout> L>  // compiled where it is called, not wherever this is included
const Plan& plan_for(const Plan* fixed, const L& source, const L& target, DType dtype,
                     const Context& context) {
  if (fixed != nullptr && !context.mesh.has_unit_axis()) return *fixed;
  return context.mesh.cache<PlanCache>().plan(source, target, context.shape, context.mesh,
                                              size_of(dtype));
}
template <std::same_as<ListEntry> E>
const Plan& plan_for(const E& entry) {
  if (entry.is_exact) return *entry.fixed;
  return plan_for(entry.fixed, entry.source, entry.target, entry.block.view.dtype, entry.context);
}

}  // namespace cleave::inline v0::redistribution
