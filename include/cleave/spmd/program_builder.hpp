// Programs while they are made: instructions with their values, appended one by one.
#pragma once

#include <cstddef>

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd::detail {

/// The instruction of a node's operation, without operands and results.
/// @param number  of the node
constexpr Instruction compute_of(const Node& node, int number) {
  Instruction compute;
  compute.kind = InstructionKind::compute;
  compute.node = number;
  compute.op = node.op;
  compute.name = node.name;
  compute.operands = node.operands();
  compute.results = node.results();
  compute.attributes = node.attributes;
  return compute;
}

/// Appends to a program.
struct ProgramBuilder {
  Program program{};

  constexpr const PlacedValue& value(int id) const { return program.values[std::size_t(id)]; }

  /// @return the number of the new value
  constexpr int add_value(const PlacedValue& value) {
    program.values.push_back(value);
    return int(program.values.size()) - 1;
  }
  constexpr int add_value(const Value& value, const Layout& layout) {
    return add_value({value.dtype, value.shape, layout, 0});
  }

  /// An instruction whose results are the values that are added next.
  constexpr Instruction& add(InstructionKind kind, const char* name, int node) {
    program.code.push_back({});
    Instruction& instruction = program.code.back();
    instruction.kind = kind;
    instruction.name = name;
    instruction.node = node;
    instruction.first = int(program.values.size());
    return instruction;
  }

  constexpr int append_constant(const Value& value, const Attributes& number) {
    Instruction& instruction = add(InstructionKind::constant, "constant", -1);
    instruction.attributes = number;
    instruction.is_number = value.is_number;
    Layout everywhere;
    everywhere.axes = program.axes;
    return add_value(value, everywhere);
  }

  constexpr int append_move(int from, const Layout& to, int node, const char* name, bool unalias) {
    Instruction& move = add(InstructionKind::move, name, node);
    move.operand[0] = from;
    move.operands = 1;
    move.unalias = unalias;
    PlacedValue moved = value(from);
    moved.layout = to;
    return add_value(moved);
  }

  /// The same elements in memory of their own.
  constexpr int append_copy(int from) {
    return append_move(from, value(from).layout, -1, ops::Redistribute::name, true);
  }
};

}  // namespace cleave::inline v0::spmd::detail
