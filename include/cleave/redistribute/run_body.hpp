// Redistribution of local elements: the choice of plans and their execution.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <cleave/redistribute/cross_mesh.hpp>
#include <cleave/redistribute/execute.hpp>
#include <cleave/redistribute/run.hpp>

namespace cleave::redistribution {

template <class Device>
Block run(const Plan* fixed, const Layout& source, const Layout& target, Block block,
          const Context& context) {
  if (!context.mesh.is_member()) return block;
  const Plan& plan = plan_for(fixed, source, target, block.view.dtype, context);
  return execute<Device>(plan, std::move(block), context);
}

template <class Device>
Plan choose_for(const Plan* fixed, const Layout& source, const Layout& target, DType dtype,
                const Context& context) {
  return plan_for(fixed, source, target, dtype, context);
}

template <class Device>
Block run_plan(const Plan& plan, Block block, const Context& context) {
  return execute<Device>(plan, std::move(block), context);
}

template <class Device>
void run_all(std::span<Part> parts) {
  std::vector<Plan> chosen;  // by value: the cache may evict a plan meanwhile
  chosen.reserve(parts.size());
  std::vector<Execution<Device>> executions;
  executions.reserve(parts.size());
  for (Part& part : parts) {
    const Plan* plan =
        &plan_for(part.fixed, part.source, part.target, part.block.view.dtype, part.context);
    if (plan != part.fixed) plan = &chosen.emplace_back(*plan);
    executions.emplace_back(*plan, std::move(part.block), part.context);
  }
  execute_all<Device>(executions);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].block = executions[i].take_block();
}

}  // namespace cleave::redistribution
