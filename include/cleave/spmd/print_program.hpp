// Graphs and programs as human-readable text.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <cleave/core/dtype.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/print_symbols.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/remake.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// The values from `first`, as "%3, %4".
inline std::string numbered(int first, int count) {
  std::string text;
  for (int k = 0; k < count; ++k) text += (k ? ", %" : "%") + std::to_string(first + k);
  return text;
}

template <std::size_t N>
std::string numbered(const std::array<int, N>& values, int count) {
  std::string text;
  for (int k = 0; k < count; ++k)
    text += (k ? ", %" : "%") + std::to_string(values[std::size_t(k)]);
  return text;
}

inline std::string outputs_text(const auto& outputs) {
  std::string text = "return";
  const char* separator = " ";
  for (const Output& output : outputs) {
    text += separator + std::string(output.name) + (*output.name ? "=%" : "%") +
            std::to_string(output.value);
    separator = ", ";
  }
  return text + "\n";
}

/// "all_reduce(sum) over tp, all_gather over dp"
inline std::string steps_text(const Plan& plan, const MeshState& mesh) {
  std::string text;
  for (const Step& step : plan) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(step.kind));
    if (step.kind == StepKind::reduce_scatter || step.kind == StepKind::all_reduce)
      text += std::string("(") + name_of(step.op) + ")";
    if (communicates(step.kind)) text += " over " + mesh.label(step.axes);
  }
  return text.empty() ? "keep" : text;
}

}  // namespace detail

/// One line per input, constant and node: "%4 = matmul(%2, %3)  float32 [batch, 8]"; before these,
/// one per symbol: "extent batch: at least 1".
template <AnyGraph G>
std::string to_string(const G& graph) {
  if constexpr (detail::may_be_symbolic<G>)
    if (graph.remake)
      return detail::symbolic_text(graph, 1, [](const Graph& made) { return to_string(made); });
  std::string text;
  std::size_t inputs = 0;
  for (std::size_t id = 0; id < graph.values.size();) {
    const Value& first = graph.values[id];
    int results = 1;
    std::string what = "constant";
    if (first.is_input()) {
      what = std::string("input ") + graph.inputs[inputs++].name;
    } else if (first.node >= 0) {
      const Node& node = graph.nodes[std::size_t(first.node)];
      results = node.results();
      what = std::string(node.name) + "(" + detail::numbered(node.operand, node.operands()) + ")";
    }
    text += detail::numbered(int(id), results) + " = " + what + " ";
    for (int k = 0; k < results; ++k, ++id) {
      const Value& value = graph.values[id];
      text += (k ? ", " : " ") + std::string(name_of(value.dtype)) + " " +
              cleave::to_string(value.shape);
    }
    text += "\n";
  }
  for (const Input& input : graph.inputs)
    if (input.updated >= 0)
      text +=
          "write %" + std::to_string(input.updated) + " to %" + std::to_string(input.value) + "\n";
  return text + detail::outputs_text(graph.outputs);
}

/// One line per instruction, with placements; for moves also the steps over the mesh axes and the
/// largest number of bytes that a rank receives:
///
///     %5 = all_reduce(sum) over tp of %4, 1024 bytes  float32 [64, 8] (Shard(0), Replicate)
///
/// @param mesh  with as many axes as the program; a dry mesh suffices
/// @collective  none
template <AnyProgram P>
std::string to_string(const P& program, const MeshState& mesh) {
  if (program.fault) return "cannot be expanded: " + to_string(program.fault) + "\n";
  if constexpr (detail::may_be_symbolic<P>)
    if (program.remake)
      return detail::symbolic_text(program, mesh.extents().product(),
                                   [&](const Program& made) { return to_string(made, mesh); });
  const CostModel model = cost_model(*mesh.world());
  std::string text;
  index_t received = 0;
  for (const Instruction& i : program.code) {
    if (i.results > 0) text += detail::numbered(i.first, i.results) + " = ";
    switch (i.kind) {
      case InstructionKind::input: text += std::string("input ") + i.name; break;
      case InstructionKind::constant: text += "constant"; break;
      case InstructionKind::compute:
        text += std::string(i.name) + "(" + detail::numbered(i.operand, i.operands) + ")";
        break;
      case InstructionKind::write:
        text += "write " + detail::numbered(std::array{i.operand[1]}, 1) + " to " +
                detail::numbered(i.operand, 1);
        break;
      case InstructionKind::wait: text += "wait for round " + std::to_string(i.round); break;
      case InstructionKind::move:
      case InstructionKind::step: {
        const Plan plan = plan_of(program, i, mesh.extents(), model);
        const PlacedValue& value = program.values[std::size_t(i.first)];
        text += detail::steps_text(plan, mesh) + " of %" + std::to_string(i.operand[0]);
        if (plan.communications() == 0) break;
        const index_t bytes =
            cleave::received_bytes(plan, mesh.extents(), value.shape, size_of(value.dtype));
        received = redistribution::capped_sum(received, bytes);
        text += ", " + std::to_string(bytes) + " bytes";
        if (i.round >= 0)
          text += (i.is_started ? ", starts in round " : ", in round ") + std::to_string(i.round);
        break;
      }
    }
    for (int k = 0; k < i.results; ++k) {
      const PlacedValue& value = program.values[std::size_t(i.first + k)];
      text += (k ? ", " : "  ") + std::string(name_of(value.dtype)) + " " +
              cleave::to_string(value.shape) + " " + cleave::to_string(value.layout);
    }
    text += "\n";
  }
  return text + detail::outputs_text(program.outputs) + "receives " + std::to_string(received) +
         " bytes per rank on " + mesh.describe() + "\n";
}
template <AnyProgram P, class Device, class... Axes>
std::string to_string(const P& program, const DeviceMesh<Device, Axes...>& mesh) {
  return to_string(program, mesh.state());
}

}  // namespace cleave::inline v0::spmd
