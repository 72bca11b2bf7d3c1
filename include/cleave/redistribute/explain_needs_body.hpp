// Exchanges of boxes with their sizes, and as text.
#pragma once

#include <algorithm>
#include <string>

#include <cleave/redistribute/explain.hpp>
#include <cleave/redistribute/explain_needs.hpp>

namespace cleave::inline v0 {

CLEAVE_INLINE ExplainedNeeds explain(const redistribution::Needs& needs, const MeshState& mesh,
                                     DType dtype, const CostModel& machine) {
  const auto element = index_t(size_of(dtype));
  const AxisMask axes = redistribution::axes_of(needs);
  ExplainedNeeds result;
  result.needs = needs;
  result.mesh = mesh.describe();
  result.group_size = mesh.size(axes);
  if (result.group_size > 1) result.axes = mesh.label(axes);
  for (index_t i = 0; i < mesh.size(); ++i) {
    const auto counts =
        redistribution::need_counts(needs, mesh.extents(), coordinate_of(mesh.extents(), i));
    result.bytes = std::max(result.bytes, counts.elements * element);
    result.own_bytes = std::max(result.own_bytes, counts.own * element);
    result.messages = std::max(result.messages, counts.messages);
  }
  if (result.group_size > 1)
    result.microseconds = estimated_us(axes, mesh.extents(), double(result.bytes), machine);
  return result;
}

namespace detail {

/// "3 i - 1", "2 - i", "i", "4"
CLEAVE_INLINE std::string linear_text(index_t factor, index_t offset) {
  if (factor == 0) return std::to_string(offset);
  std::string text = factor == 1 ? "i" : factor == -1 ? "-i" : std::to_string(factor) + " i";
  if (offset != 0)
    text += (offset < 0 ? " - " : " + ") + std::to_string(offset < 0 ? -offset : offset);
  return text;
}

/// "(i + 1) / 2": rounded down.
CLEAVE_INLINE std::string end_text(const DimMap& map, index_t offset) {
  std::string text = linear_text(map.num, offset);
  if (map.den == 1) return text;
  return (text.find(' ') == text.npos ? text : "(" + text + ")") + " / " + std::to_string(map.den);
}

}  // namespace detail

CLEAVE_INLINE std::string ExplainedNeeds::text() const {
  std::string lines = to_string(needs.result.layout) + " of " + to_string(needs.result_shape) +
                      " reads " + to_string(needs.operand.layout) + " of " +
                      to_string(needs.operand_shape) + " on " + mesh + "\n";
  for (int d = 0; d < needs.operand_shape.dims; ++d) {
    const DimMap& map = needs.maps[std::size_t(d)];
    lines +=
        "  dimension " + std::to_string(d) + ": index i reads " + detail::end_text(map, map.lo);
    if (map.lo != map.hi) lines += " .. " + detail::end_text(map, map.hi);
    lines += map.beyond == Beyond::clip      ? "\n"
             : is_periodic(map.beyond)       ? ", periodic\n"
             : map.beyond == Beyond::reflect ? ", mirrored at the edges\n"
                                             : ", the nearest one at the edges\n";
  }
  if (needs.star) lines += "  one dimension at a time\n";
  lines += axes.empty() ? "  receives nothing"
                        : "  exchange over " + axes + " (" + std::to_string(group_size) +
                              " ranks): receives " + std::to_string(bytes) + " bytes in " +
                              std::to_string(messages) + " messages per rank, about " +
                              detail::decimal(microseconds) + " us";
  return lines + "; copies " + std::to_string(own_bytes) + " bytes of its own part\n";
}

}  // namespace cleave::inline v0
