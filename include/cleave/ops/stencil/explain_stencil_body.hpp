// Exchanges of stencils with their sizes, and as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <cleave/ops/stencil/explain_stencil.hpp>
#include <cleave/redistribute/explain.hpp>
#include <cleave/redistribute/needs.hpp>
#include <cleave/redistribute/peers.hpp>

namespace cleave::inline v0 {

namespace detail {

/// What the rank at `at` receives for some fields, sorted by rank.
CLEAVE_INLINE std::vector<ReceivedFrom> received_by(const std::vector<FieldNeeds>& fields,
                                                    const std::vector<index_t>& element_bytes,
                                                    const MeshState& mesh, const Shape& at) {
  std::vector<ReceivedFrom> from;
  for (std::size_t k = 0; k < fields.size(); ++k) {
    const redistribution::Needs& needs = fields[k].needs;
    if (!fields[k].exchanges) continue;
    needs.each_window(mesh.extents(), at, [&](const Box& window, const Shape&) {
      redistribution::each_box_within(
          needs.operand, needs.operand_shape, mesh.extents(), redistribution::axes_of(needs), at,
          window, [&](const Shape& owner, const Box& shared) {
            if (owner == at) return;
            const int rank = mesh.world_ranks()[std::size_t(linear_index(mesh.extents(), owner))];
            const auto place =
                std::lower_bound(from.begin(), from.end(), rank,
                                 [](const ReceivedFrom& each, int r) { return each.rank < r; });
            const index_t bytes = shared.volume() * element_bytes[k];
            if (place != from.end() && place->rank == rank) place->bytes += bytes;
            else from.insert(place, {rank, bytes});
          });
    });
  }
  return from;
}

CLEAVE_INLINE ExplainedStencil explain_fields(const StencilFields& fields, const RepeatPlan& plan,
                                              const Layout& layout, const MeshState& mesh) {
  ExplainedStencil result;
  result.steps = plan.steps;
  result.rank = mesh.world_rank();
  std::vector<FieldNeeds> needs;
  std::vector<index_t> element_bytes;
  AxisMask axes = 0;
  for (const FieldWindow& field : fields.window) {
    needs.push_back(field_needs(field, layout, fields.domain));
    element_bytes.push_back(index_t(size_of(field.elements.dtype)));
    if (!needs.back().exchanges) continue;
    result.fields.push_back(explain(needs.back().needs, mesh, field.elements.dtype));
    axes |= redistribution::axes_of(needs.back().needs);
  }
  result.from = received_by(needs, element_bytes, mesh, mesh.coordinate());
  for (index_t i = 0; i < mesh.size(); ++i) {
    const Shape at = coordinate_of(mesh.extents(), i);
    const auto from = received_by(needs, element_bytes, mesh, at);
    index_t bytes = 0, extra = 0;
    for (const ReceivedFrom& each : from) bytes += each.bytes;
    const Box part = owned_box(layout, fields.domain.extents(), mesh.extents(), at);
    for (int step = 0; step + 1 < plan.steps; ++step)
      extra += plan.computed(part, fields.domain.extents(), step).volume() - part.volume();
    result.bytes = std::max(result.bytes, bytes);
    result.messages = std::max(result.messages, int(from.size()));
    result.extra = std::max(result.extra, extra);
  }
  if (mesh.size(axes) > 1)
    result.microseconds =
        estimated_us(axes, mesh.extents(), double(result.bytes), cost_model(*mesh.world()));
  return result;
}

}  // namespace detail

CLEAVE_INLINE std::string ExplainedStencil::text() const {
  std::string lines = "at most " + std::to_string(bytes) + " bytes in " + std::to_string(messages) +
                      " messages per rank, about " + detail::decimal(microseconds) + " us\n";
  lines += "  rank " + std::to_string(rank) + " receives ";
  if (from.empty()) lines += "nothing";
  for (std::size_t i = 0; i < from.size(); ++i)
    lines += (i == 0 ? "" : ", ") + std::to_string(from[i].bytes) + " bytes from rank " +
             std::to_string(from[i].rank);
  lines += "\n";
  for (const ExplainedNeeds& field : fields) lines += field.text();
  return lines;
}

CLEAVE_INLINE std::string ExplainedRepeat::text() const {
  const auto line = [&](const char* how, index_t exchanges, const ExplainedStencil& of) {
    return std::to_string(together.steps) + " steps with " + how + ": at most " +
           std::to_string(exchanges * of.messages) + " messages and " +
           std::to_string(exchanges * of.bytes) + " bytes per rank, about " +
           detail::decimal(double(exchanges) * of.microseconds) + " us; " +
           std::to_string(of.extra) + " elements computed besides its own\n";
  };
  return line("one exchange", 1, together) + line("an exchange for each", together.steps, single) +
         together.text();
}

}  // namespace cleave::inline v0
