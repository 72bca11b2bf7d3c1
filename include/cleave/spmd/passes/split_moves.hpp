// Makes communication visible: every move of a program becomes the steps of its plan, each an
// instruction of its own, which other passes can merge, start early and move.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <cleave/redistribute/cost.hpp>
#include <cleave/redistribute/plan.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/program_builder.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// The pass over the instructions.
class MoveSplitter {
 public:
  template <AnyProgram P>
  constexpr MoveSplitter(const P& of, const Shape& mesh, const CostModel& model)
      : renamed_(of.values.size(), -1) {
    Program& program = builder_.program;
    static_cast<ProgramFacts&>(program) = of;
    program.mesh = mesh;
    for (const Instruction& i : of.code) {
      if (i.kind == InstructionKind::move) split(of, i, plan_of(of, i, mesh, model));
      else append(of, i);
    }
    for (const Output& output : of.outputs)
      program.outputs.push_back({renamed_[std::size_t(output.value)], output.name});
    find_last_uses(program);
  }

  constexpr Program take() { return static_cast<Program&&>(builder_.program); }

 private:
  template <AnyProgram P>
  constexpr void append(const P& of, const Instruction& i) {
    Instruction& made = builder_.program.code.emplace_back(i);
    for (int k = 0; k < i.operands; ++k)
      made.operand[std::size_t(k)] = renamed_[std::size_t(i.operand[std::size_t(k)])];
    made.first = int(builder_.program.values.size());
    for (int k = 0; k < i.results; ++k)
      renamed_[std::size_t(i.first + k)] = builder_.add_value(of.values[std::size_t(i.first + k)]);
  }

  /// A plan without steps becomes a slice of everything: the result has a value of its own.
  template <AnyProgram P>
  constexpr void split(const P& of, const Instruction& move, const Plan& plan) {
    const PlacedValue& target = of.values[std::size_t(move.first)];
    int from = renamed_[std::size_t(move.operand[0])];
    for (int s = 0; s < plan.count || s == 0; ++s) {
      const bool ends = s + 1 >= plan.count;
      Instruction& made = builder_.add(InstructionKind::step, move.name, move.node);
      made.operand[0] = from;
      made.operands = 1;
      made.unalias = move.unalias && ends;
      PlacedValue value = target;
      if (s < plan.count) {
        made.step = plan[s].kind;
        made.reduction = plan[s].op;
        made.axes = plan[s].axes;
        if (!ends) value.layout = plan[s].to.layout, value.order = plan[s].to.order;
      }
      from = builder_.add_value(value);
    }
    renamed_[std::size_t(move.first)] = from;
  }

  ProgramBuilder builder_{};
  std::vector<int> renamed_;
};

}  // namespace detail

/// The program for a mesh with the given extents, with steps in place of moves. A Runner runs a
/// program as this, with the costs of its mesh; results are bitwise the same.
///
/// @param mesh   extents of the axes
/// @param model  of the machine, the same on all ranks. @see cost_model
/// @cost         linear in the instructions; where sizes decide, that of choose_plan
template <AnyProgram P>
constexpr Program split_moves(const P& program, const Shape& mesh, const CostModel& model = {}) {
  return detail::MoveSplitter(program, mesh, model).take();
}

}  // namespace cleave::inline v0::spmd
