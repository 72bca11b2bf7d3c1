// Plans with their sizes, and as text.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/schedule/flat_call.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/explain.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

namespace detail {

CLEAVE_INLINE std::string decimal(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", value);
  return buffer;
}

/// How the first group of a step that communicates carries it out: where its ranks are is known of
/// threads, of processes, and from a model.
inline std::string schedule_text(const Step& step, index_t elements, DType dtype,
                                 const MeshState& mesh, const CostModel& model) {
  Communicator& world = *mesh.world();
  if (&world.host() != &world) return {};  // a device has a library of its own
  const std::vector<int> nodes = world.nodes();
  const Shape& extents = mesh.extents();
  const int size = int(mesh.size(step.axes));
  std::vector<int> node_of;
  for (int i = 0; i < size; ++i) {
    Shape at = Shape::filled(extents.dims, 0);
    index_t rest = i;
    for (int a = extents.dims - 1; a >= 0; --a)
      if (step.axes >> a & 1u) at[a] = rest % extents[a], rest /= extents[a];
    const int rank = mesh.world_ranks()[std::size_t(linear_index(extents, at))];
    if (!nodes.empty()) node_of.push_back(nodes[std::size_t(rank)]);
    else if (model.ranks_per_node > 0) node_of.push_back(rank / int(model.ranks_per_node));
    else if (world.ranks_are_threads()) node_of.push_back(0);
  }
  if (node_of.empty() && world.is_dry()) return {};
  Topology topology = Topology::of(node_of, 0, size);
  topology.reproducible = world.state().reproducible;
  const index_t each = (elements + size - 1) / size;
  return to_string(
      FlatCall(collective_of(step.kind), dtype, step.op, each, 0, size).schedule(topology));
}

}  // namespace detail

CLEAVE_INLINE std::string Explanation::text() const {
  std::string lines = to_string(source) + " -> " + to_string(target) + " of " + to_string(shape) +
                      " on " + mesh + "\n";
  int number = 0;
  for (const ExplainedStep& step : steps) {
    lines += "  " + std::to_string(++number) + ". " + name_of(step.kind);
    if (step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce)
      lines += std::string("(") + name_of(step.op) + ")";
    if (!step.axes.empty())
      lines += " over " + step.axes + " (" + std::to_string(step.group_size) + " ranks), " +
               std::to_string(step.bytes) + " bytes per rank, " +
               detail::decimal(step.microseconds) + " us";
    lines += " -> " + to_string(step.after) + "\n";
    if (!step.schedule.empty()) lines += "     " + step.schedule + "\n";
  }
  if (steps.empty()) lines += "  nothing to do\n";
  return lines + "  receives " + std::to_string(bytes) + " bytes per rank, peak memory " +
         std::to_string(peak_memory) + " bytes, about " + detail::decimal(microseconds) + " us\n";
}

CLEAVE_INLINE Explanation explain(const Layout& source, const Layout& target, const Shape& shape,
                                  const MeshState& mesh, DType dtype, const CostModel& model) {
  using redistribution::capped_product, redistribution::capped_sum,
      redistribution::without_unit_axes;
  static_cast<void>(detail::checked_bytes(shape.values.data(), shape.dims, size_of(dtype)));
  const Shape& extents = mesh.extents();
  const auto element = index_t(size_of(dtype));
  const Plan plan =
      choose_plan(without_unit_axes(source, extents), without_unit_axes(target, extents), shape,
                  extents, size_of(dtype), model);
  Explanation result;
  result.source = source;
  result.target = target;
  result.shape = shape;
  result.mesh = mesh.describe();
  const auto held = [&](const StepLayout& layout) {
    return element * redistribution::longest_extents(layout, shape, extents).product();
  };
  const index_t kept = held(StepLayout{source});  // the caller's tensor stays
  result.peak_memory = kept;
  for (const Step& step : plan) {
    ExplainedStep line;
    line.kind = step.kind;
    line.op = step.op;
    line.axes = communicates(step.kind) ? mesh.label(step.axes) : std::string();
    line.group_size = mesh.size(step.axes);
    line.bytes = capped_product(element, redistribution::received_elements(step, shape, extents));
    line.microseconds = estimated_us(step, extents, shape, size_of(dtype), model);
    line.after = step.to.layout;
    const bool gathers = step.kind == StepKind::all_gather;
    if (communicates(step.kind))
      line.schedule = detail::schedule_text(step, held(gathers ? step.to : step.from) / element,
                                            dtype, mesh, model);
    result.bytes = capped_sum(result.bytes, line.bytes);
    result.microseconds += line.microseconds;
    const index_t between = &step == plan.begin() ? 0 : held(step.from);
    index_t live = capped_sum(capped_sum(kept, between), held(step.to));
    if (communicates(step.kind) && step.needs_runs())  // packed copies of both sides
      live = capped_sum(live, capped_sum(held(step.from), held(step.to)));
    if (live > result.peak_memory) result.peak_memory = live;
    result.steps.push_back(std::move(line));
  }
  return result;
}

}  // namespace cleave::inline v0
