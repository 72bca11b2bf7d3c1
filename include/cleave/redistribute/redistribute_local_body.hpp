// Redistribution of local elements: the choice of plans and their execution.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/redistribute/cross_mesh.hpp>
#include <cleave/redistribute/packed_list.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/redistribute/run_plan.hpp>

namespace cleave::inline v0::redistribution {

template <class Device>
Block run(const Plan* fixed, const Layout& source, const Layout& target, Block block,
          const Context& context) {
  if (!context.mesh.is_member()) return block;
  const Shape& mesh = context.mesh.extents();
  if (without_unit_axes(source, mesh) == without_unit_axes(target, mesh)) return block;
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
void run_all(std::span<ListEntry> entries) {
  if (entries.empty()) return;
  std::optional<PackedEntries<Device>> packed;  // of host memory
  if constexpr (std::is_same_v<Device, Host>) packed.emplace(entries);
  const auto is_packed = [&](std::size_t i) { return packed.has_value() && packed->takes(i); };
  std::vector<Plan> chosen;  // by value: the cache may evict a plan meanwhile
  std::vector<Execution<Device>> executions;
  const std::size_t alone = packed.has_value() ? packed->untaken() : entries.size();
  chosen.reserve(alone);
  executions.reserve(alone);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (is_packed(i)) continue;
    ListEntry& entry = entries[i];
    const Plan* plan = &plan_for(entry);
    if (plan != entry.fixed) plan = &chosen.emplace_back(*plan);
    executions.emplace_back(*plan, std::move(entry.block), entry.context);
  }
  execute_all<Device>(executions, packed.has_value() ? packed->calls() : std::span<const Call>(),
                      entries[0].context);
  if (packed.has_value()) packed->unpack();
  auto done = executions.begin();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!is_packed(i)) entries[i].block = done++->take_block();
}

}  // namespace cleave::inline v0::redistribution
