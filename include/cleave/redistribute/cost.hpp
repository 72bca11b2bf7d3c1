// What a plan costs: elements received, and an estimate of the time. Pure constexpr arithmetic with
// the same result on every rank, so that all ranks make the same choice by cost.
#pragma once

#include <limits>

#include <cleave/core/shape.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/redistribute/step_box.hpp>

namespace cleave::inline v0 {

/// Time of a collective step = latency + the most bytes that a rank receives / bandwidth.
///
/// The defaults are those of threads and processes on one node; with `bytes_only` the planner
/// minimises the received bytes, whatever the number of steps.
struct CostModel {
  double latency_us = 5;            ///< of one collective
  double bytes_per_us = 10000;      ///< received by one rank (10 GB/s)
  index_t ranks_per_node = 0;       ///< of a mesh, numbered node by node; 0: one node
  double network_latency_us = 0;    ///< of a collective that crosses nodes
  double network_bytes_per_us = 1;  ///< likewise

  static constexpr CostModel bytes_only() { return {0, 1}; }
};

namespace redistribution {

/// a * b and a + b, or the largest index_t on overflow: estimates for tensors of any size.
/// @pre neither is negative
constexpr index_t capped_product(index_t a, index_t b) {
  constexpr index_t most = std::numeric_limits<index_t>::max();
  return b != 0 && a > most / b ? most : a * b;
}
constexpr index_t capped_sum(index_t a, index_t b) {
  constexpr index_t most = std::numeric_limits<index_t>::max();
  return a > most - b ? most : a + b;
}

/// The most elements that a rank receives in an exchange between two layouts: where both cut into
/// chunks, among the ranks at the `SampledParts` of each axis.
constexpr index_t max_received(const StepLayout& from, const StepLayout& to, const Shape& shape,
                               const Shape& mesh) {
  const auto other_cut = [](const Placement& p) { return p.is_other_cut(); };
  const bool all = from.layout.axes_where(other_cut) != 0 || to.layout.axes_where(other_cut) != 0;
  Shape samples = mesh;
  for (int a = 0; a < mesh.dims && !all; ++a) samples[a] = SampledParts{mesh[a]}.count();
  index_t most = 0;
  Shape sample = Shape::filled(mesh.dims, 0);
  do {
    Shape at = sample;
    for (int a = 0; a < mesh.dims && !all; ++a) at[a] = SampledParts{mesh[a]}[sample[a]];
    const index_t lacking = lacking_elements(from, to, shape, mesh, at);
    if (lacking > most) most = lacking;
  } while (next_index(samples, sample));
  return most;
}

/// The most elements that a rank receives in one step.
constexpr index_t received_elements(const Step& step, const Shape& shape, const Shape& mesh) {
  const index_t n = product_over(mesh, step.axes);
  switch (step.kind) {
    case StepKind::slice:
    case StepKind::to_partial: return 0;
    case StepKind::reduce_scatter:
      return capped_product(n - 1, longest_extents(step.to, shape, mesh).product());
    case StepKind::all_reduce: {  // 2 (n - 1) / n of the rank's elements, rounded down
      const index_t elements = longest_extents(step.from, shape, mesh).product();
      return capped_sum(capped_product(2 * (n - 1), elements / n),
                        2 * (n - 1) * (elements % n) / n);
    }
    case StepKind::all_gather:
    case StepKind::all_to_all:
    case StepKind::exchange: return max_received(step.from, step.to, shape, mesh);
  }
  return 0;
}

}  // namespace redistribution

/// The most bytes that a rank receives per step, summed over the steps of a plan.
constexpr index_t received_bytes(const Plan& plan, const Shape& mesh, const Shape& shape,
                                 std::size_t element_size) {
  using namespace redistribution;
  index_t elements = 0;
  for (const Step& step : plan)
    elements = capped_sum(elements, redistribution::received_elements(step, shape, mesh));
  return capped_product(elements, index_t(element_size));
}

namespace redistribution {

/// Whether the group over some axes that has the mesh's first rank spans several nodes.
constexpr bool crosses_nodes(unsigned axes, const Shape& mesh, index_t ranks_per_node) {
  if (ranks_per_node == 0) return false;
  index_t last = 0, stride = 1;
  for (int a = mesh.dims - 1; a >= 0; --a) {
    if (axes >> a & 1u) last += (mesh[a] - 1) * stride;
    stride *= mesh[a];
  }
  return last >= ranks_per_node;
}

}  // namespace redistribution

/// The estimated time of a collective over some axes, in microseconds.
/// @param bytes  the most that a rank receives
constexpr double estimated_us(unsigned axes, const Shape& mesh, double bytes,
                              const CostModel& model) {
  if (redistribution::crosses_nodes(axes, mesh, model.ranks_per_node))
    return model.network_latency_us + bytes / model.network_bytes_per_us;
  return model.latency_us + bytes / model.bytes_per_us;
}

/// The same of a step, and of a plan.
constexpr double estimated_us(const Step& step, const Shape& mesh, const Shape& shape,
                              std::size_t element_size, const CostModel& model) {
  if (!communicates(step.kind)) return 0;
  const index_t elements = redistribution::received_elements(step, shape, mesh);
  return estimated_us(step.axes, mesh, double(elements) * double(element_size), model);
}
constexpr double estimated_us(const Plan& plan, const Shape& mesh, const Shape& shape,
                              std::size_t element_size, const CostModel& model) {
  double us = 0;
  for (const Step& step : plan) us += estimated_us(step, mesh, shape, element_size, model);
  return us;
}

}  // namespace cleave::inline v0
