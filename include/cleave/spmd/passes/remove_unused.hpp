// Removes the instructions whose results no output needs, and the values that they produce.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <cleave/spmd/passes/reorder.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

/// Keeps the inputs, the writes to them, and what writes and outputs need, in the same order.
/// Operations have no effects but their results, and every rank removes the same instructions.
/// @cost linear
constexpr void remove_unused(Program& program) {
  std::vector<char> needed(program.values.size(), 0);
  for (const Output& output : program.outputs) needed[std::size_t(output.value)] = 1;
  std::vector<int> kept;
  for (std::size_t i = program.code.size(); i-- > 0;) {
    const Instruction& instruction = program.code[i];
    bool is_needed = instruction.kind == InstructionKind::input ||
                     instruction.kind == InstructionKind::write ||
                     instruction.kind == InstructionKind::wait;
    for (int k = 0; k < instruction.results; ++k)
      is_needed = is_needed || needed[std::size_t(instruction.first + k)] != 0;
    if (is_needed) kept.push_back(int(i));
    for (int k = 0; is_needed && k < instruction.operands; ++k)
      needed[std::size_t(instruction.operand[std::size_t(k)])] = 1;
  }
  std::reverse(kept.begin(), kept.end());
  reorder(program, kept);
}

}  // namespace cleave::inline v0::spmd
