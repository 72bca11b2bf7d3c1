// Removes the instructions whose results no output needs, and the values that they produce.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/spmd/program.hpp>

namespace cleave::spmd {

/// Keeps the inputs, the writes to them, and what writes and outputs need, in the same order.
/// Operations have no effects but their results, and every rank removes the same instructions.
/// @cost linear
constexpr void remove_unused(Program& program) {
  std::vector<char> needed(program.values.size(), 0);
  for (const int id : program.outputs) needed[std::size_t(id)] = 1;
  std::vector<char> kept(program.code.size(), 0);
  for (std::size_t i = program.code.size(); i-- > 0;) {
    const Instruction& instruction = program.code[i];
    bool is_needed = instruction.kind == InstructionKind::input ||
                     instruction.kind == InstructionKind::write ||
                     instruction.kind == InstructionKind::wait;
    for (int k = 0; k < instruction.results; ++k)
      is_needed = is_needed || needed[std::size_t(instruction.first + k)] != 0;
    kept[i] = char(is_needed);
    for (int k = 0; is_needed && k < instruction.operands; ++k)
      needed[std::size_t(instruction.operand[std::size_t(k)])] = 1;
  }
  std::vector<int> renamed(program.values.size(), -1);
  std::vector<PlacedValue> values;
  std::vector<Instruction> code;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    if (!kept[i]) continue;
    Instruction instruction = program.code[i];
    for (int k = 0; k < instruction.operands; ++k) {
      int& operand = instruction.operand[std::size_t(k)];
      operand = renamed[std::size_t(operand)];
    }
    for (int k = 0; k < instruction.results; ++k) {
      renamed[std::size_t(instruction.first + k)] = int(values.size());
      values.push_back(program.values[std::size_t(instruction.first + k)]);
    }
    if (instruction.results > 0) instruction.first = renamed[std::size_t(instruction.first)];
    code.push_back(instruction);
  }
  for (int& id : program.outputs) id = renamed[std::size_t(id)];
  program.values = static_cast<std::vector<PlacedValue>&&>(values);
  program.code = static_cast<std::vector<Instruction>&&>(code);
}

}  // namespace cleave::spmd
