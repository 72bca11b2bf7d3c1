// Graphs and programs in the language of Graphviz.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <cleave/core/json_string.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/spmd/drawing.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

inline std::string to_dot(const Drawing& drawing) {
  std::string text = "digraph program {\n  label=" + cleave::detail::json_string(drawing.summary) +
                     ";\n  node [shape=box, style=filled, fontname=monospace, fillcolor=white];\n";
  const std::vector<int> origin = drawing.origins();
  const auto edge = [&](int value, const std::string& to) {
    text += "  r" + std::to_string(origin[std::size_t(value)]) + " -> " + to + " [label=\"" +
            bytes_text(drawing.bytes[std::size_t(value)]) + "\"];\n";
  };
  for (std::size_t r = 0; r < drawing.rows.size(); ++r) {
    const DrawnRow& row = drawing.rows[r];
    const std::string name = "r" + std::to_string(r);
    text += "  " + name + " [label=" + cleave::detail::json_string(row.text);
    text += row.is_given ? ", fillcolor=gray90" : row.communicates ? ", fillcolor=orange" : "";
    text += "];\n";
    for (const int value : row.operands) edge(value, name);
  }
  text += "  return [shape=oval];\n";
  for (const Output& output : drawing.outputs) edge(output.value, "return");
  return text + "}\n";
}

}  // namespace detail

/// A graph for `dot -Tsvg`, with the bytes of whole arrays on the edges.
template <AnyGraph G>
std::string to_dot(const G& graph) {
  return detail::to_dot(detail::drawing_of(graph));
}

/// A program, with the bytes of the first rank's parts on the edges; what communicates is orange.
/// @param mesh  a dry mesh suffices
/// @collective  none
template <AnyProgram P>
std::string to_dot(const P& program, const MeshState& mesh) {
  return detail::to_dot(detail::drawing_of(program, mesh));
}
template <AnyProgram P, class Device, class... Axes>
std::string to_dot(const P& program, const DeviceMesh<Device, Axes...>& mesh) {
  return to_dot(program, mesh.state());
}

}  // namespace cleave::inline v0::spmd
