// explain: what a redistribution will do, before it does it, for any mesh and shape.
//
// Works on a mesh of any backend; with the dry one, one process explains 16,384 ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave {

/// One step of a plan with its sizes.
struct ExplainedStep {
  StepKind kind{};
  ReduceOp op{};            ///< of a reduction
  std::string axes{};       ///< "dp.tp"; empty if the step is local
  index_t group_size = 1;   ///< ranks that take part together
  index_t bytes = 0;        ///< received by the rank that receives most
  double microseconds = 0;  ///< estimated
  Layout after{};           ///< the placements that it leads to
};

/// A plan with its sizes: a value to print, count or compare.
struct Explanation {
  Layout source{};
  Layout target{};
  Shape shape{};
  std::string mesh{};
  std::vector<ExplainedStep> steps{};
  index_t bytes = 0;        ///< received by the rank that receives most, over all steps
  index_t peak_memory = 0;  ///< bytes of source, destination and what lies between, per rank
  double microseconds = 0;  ///< estimated, over all steps

  /// Several lines for a person.
  std::string text() const {
    std::string lines = to_string(source) + " -> " + to_string(target) + " of " + to_string(shape) +
                        " on " + mesh + "\n";
    int number = 0;
    for (const ExplainedStep& step : steps) {
      lines += "  " + std::to_string(++number) + ". " + name_of(step.kind);
      if (step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce)
        lines += std::string("(") + name_of(step.op) + ")";
      if (!step.axes.empty())
        lines += " over " + step.axes + " (" + std::to_string(step.group_size) + " ranks), " +
                 std::to_string(step.bytes) + " bytes per rank, " + decimal(step.microseconds) +
                 " us";
      lines += " -> " + to_string(step.after) + "\n";
    }
    if (steps.empty()) lines += "  nothing to do\n";
    return lines + "  receives " + std::to_string(bytes) + " bytes per rank, peak memory " +
           std::to_string(peak_memory) + " bytes, about " + decimal(microseconds) + " us\n";
  }

 private:
  static std::string decimal(double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.1f", value);
    return buffer;
  }
};

/// The plan between two layouts of a tensor on a mesh, with its sizes; also on ranks outside of the
/// mesh. Sizes that are more than an index can count are said to be the largest one.
///
/// @collective none
/// @throws Error for a shape whose bytes are more than an index can count
inline Explanation explain(const Layout& source, const Layout& target, const Shape& shape,
                           const MeshState& mesh, DType dtype) {
  using redistribution::capped_product, redistribution::capped_sum,
      redistribution::without_unit_axes;
  static_cast<void>(detail::checked_bytes(shape.values.data(), shape.dims, size_of(dtype)));
  const Shape& extents = mesh.extents();
  const auto element = index_t(size_of(dtype));
  const CostModel model = cost_model(*mesh.world());
  const Plan plan =
      choose_plan(without_unit_axes(source, extents), without_unit_axes(target, extents), shape,
                  extents, size_of(dtype), model);
  Explanation result;
  result.source = source;
  result.target = target;
  result.shape = shape;
  result.mesh = mesh.describe();
  const Shape first = Shape::filled(extents.dims, 0);  // its shards are the longest
  const auto held = [&](const StepLayout& layout) {
    return element * redistribution::owned_box(layout, shape, extents, first).volume();
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
    result.bytes = capped_sum(result.bytes, line.bytes);
    result.microseconds += line.microseconds;
    const index_t between = &step == plan.begin() ? 0 : held(step.from);
    const index_t live = capped_sum(capped_sum(kept, between), held(step.to));
    if (live > result.peak_memory) result.peak_memory = live;
    result.steps.push_back(std::move(line));
  }
  return result;
}

/// `explain<Placements<Shard<0>, Replicate>, Placements<Replicate, Shard<0>>>(mesh, {64, 256})`
///
/// @tparam Source, Target  one placement per axis of the mesh
/// @collective none
template <class Source, class Target, std::size_t Rank, class Device, class... Axes>
Explanation explain(const DeviceMesh<Device, Axes...>& mesh, const index_t (&extents)[Rank],
                    DType dtype = DType::float32) {
  static_assert(detail::is_placements<Source> && detail::is_placements<Target>,
                "cleave: explain takes two lists Placements<..>");
  static_assert(Source::size == int(sizeof...(Axes)) && Target::size == int(sizeof...(Axes)),
                "cleave: explain takes exactly one placement per mesh axis");
  Shape shape;
  for (const index_t extent : extents) shape[shape.dims++] = extent;
  return explain(layout_of<Source, int(Rank)>, layout_of<Target, int(Rank)>, shape, mesh.state(),
                 dtype);
}

}  // namespace cleave
