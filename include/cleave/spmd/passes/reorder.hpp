// Some or all instructions of a program, in another order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

/// Replaces the instructions of a program by some of them, and numbers the values that they produce
/// anew. Uses of values must be found again. @see find_last_uses
///
/// @param order  numbers of instructions; what produces a value comes before what reads it
/// @cost linear
constexpr void reorder(Program& program, std::span<const int> order) {
  std::vector<int> renamed(program.values.size(), -1);
  std::vector<PlacedValue> values;
  std::vector<Instruction> code;
  values.reserve(program.values.size());
  code.reserve(order.size());
  for (const int n : order) {
    Instruction instruction = program.code[std::size_t(n)];
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
  for (Output& output : program.outputs) output.value = renamed[std::size_t(output.value)];
  program.values = static_cast<std::vector<PlacedValue>&&>(values);
  program.code = static_cast<std::vector<Instruction>&&>(code);
}

}  // namespace cleave::inline v0::spmd
