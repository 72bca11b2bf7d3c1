// Graphs and programs as rows of text and the values that connect them: what Graphviz and SVG show.
#pragma once

#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/estimate.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// An input, a node or an instruction.
struct DrawnRow {
  std::string text{};
  bool is_given = false;  ///< an input or a constant
  bool communicates = false;
  int first = 0, results = 0;
  std::vector<int> operands{};
};

struct Drawing {
  std::vector<DrawnRow> rows{};
  std::vector<index_t> bytes{};  ///< of each value: of a program, those of rank 0
  std::vector<Output> outputs{};
  std::vector<index_t> in_use{};  ///< per row: bytes of values; empty: unknown
  index_t inputs = 0, peak = 0;   ///< bytes of all inputs, and of the memory plan
  std::string summary{};

  /// The row of each value.
  std::vector<int> origins() const {
    std::vector<int> origin(bytes.size(), -1);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (int k = 0; k < rows[r].results; ++k) origin[std::size_t(rows[r].first + k)] = int(r);
    return origin;
  }
};

/// "2.5 MiB"
inline std::string bytes_text(index_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = double(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(units); ++unit) amount /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
  return text;
}

inline std::string take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string line(text.substr(0, end));
  text.remove_prefix(end + 1);
  return line;
}

template <AnyGraph G>
Drawing drawing_of(const G& graph) {
  Drawing drawing;
  const std::string lines = to_string(graph);
  std::string_view left = lines;
  for (std::size_t id = 0; id < graph.values.size();) {
    const Value& value = graph.values[id];
    DrawnRow row{take_line(left), value.node < 0, false, int(id), 1, {}};
    if (value.node >= 0) {
      const Node& node = graph.nodes[std::size_t(value.node)];
      row.results = node.results();
      row.operands.assign(node.operand.begin(), node.operand.begin() + node.operands());
    }
    for (int k = 0; k < row.results; ++k, ++id)
      drawing.bytes.push_back(graph.values[id].shape.product() *
                              index_t(size_of(graph.values[id].dtype)));
    drawing.rows.push_back(row);
  }
  for (const Input& input : graph.inputs)
    if (input.updated >= 0)
      drawing.rows.push_back({take_line(left), false, false, 0, 0, {input.updated, input.value}});
  drawing.outputs.assign(graph.outputs.begin(), graph.outputs.end());
  return drawing;
}

template <AnyProgram P>
Drawing drawing_of(const P& program, const MeshState& mesh) {
  Drawing drawing;
  const std::string lines = to_string(program, mesh);
  std::string_view left = lines;
  if (program.fault) return drawing.summary = take_line(left), drawing;
  for (const Instruction& i : program.code)
    drawing.rows.push_back(
        {take_line(left),
         i.kind == InstructionKind::input || i.kind == InstructionKind::constant,
         is_redistribution(i) && plan_of(program, i, mesh.extents()).communications() > 0,
         i.first,
         i.results,
         {i.operand.begin(), i.operand.begin() + i.operands}});
  take_line(left);
  drawing.summary = take_line(left);
  MemoryPlan plan = plan_memory(program, mesh.extents(), Shape::filled(mesh.extents().dims, 0));
  drawing.peak = plan.peak();
  drawing.bytes = std::move(plan.bytes);
  drawing.in_use = std::move(plan.in_use);
  for (int i = 0; i < program.inputs; ++i) drawing.inputs += drawing.bytes[std::size_t(i)];
  drawing.outputs.assign(program.outputs.begin(), program.outputs.end());
  return drawing;
}

}  // namespace detail

}  // namespace cleave::inline v0::spmd
