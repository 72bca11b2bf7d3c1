// Updates in place: the last instructions of a program, which write to its inputs.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <cleave/spmd/program.hpp>
#include <cleave/spmd/program_builder.hpp>

namespace cleave::inline v0::spmd::detail {

/// Whether a value may share elements with an input that is written.
/// @param source  per input: the value that is written to it, or -1
constexpr bool shares_written(const Program& program, int value, std::span<const int> source) {
  for (std::size_t i = program.code.size(); i-- > 0;) {
    const Instruction& made = program.code[i];
    if (value < made.first || value >= made.first + made.results) continue;
    if (made.kind == InstructionKind::input) return source[i] >= 0;
    const bool is_view = made.kind == InstructionKind::compute &&
                         (made.op->is_view || made.op->regrouping.result != 0);
    const bool is_move = is_redistribution(made) && !made.unalias;
    if (!is_view && !is_move) return false;
    value = made.operand[0];
  }
  return false;
}

/// Appends the writes, after everything else has read the inputs. Outputs stay as they are while
/// inputs are written: an output is the input itself if it is what is written there, a copy if it
/// shares elements with an input that is written.
///
/// @param source  per input: the value that is written to it, under the same placements; or -1
constexpr void append_writes(ProgramBuilder& builder, std::vector<int> source) {
  Program& program = builder.program;
  for (Output& made : program.outputs) {
    int& output = made.value;
    std::size_t i = 0;
    while (i < source.size() && source[i] != output) ++i;
    if (i < source.size()) output = int(i);
    else if (shares_written(program, output, source)) output = builder.append_copy(output);
  }
  for (int& value : source)
    if (value >= 0 && shares_written(program, value, source)) value = builder.append_copy(value);
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] < 0) continue;
    Instruction& write = builder.add(InstructionKind::write, program.code[i].name, -1);
    write.operand = {int(i), source[i]};
    write.operands = 2;
    write.results = 0;
  }
}

}  // namespace cleave::inline v0::spmd::detail
