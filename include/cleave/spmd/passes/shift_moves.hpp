// Moves redistributions past operations that compute or view element by element: slices up, so that
// less is computed and what was gathered for them may not be; gathers down, where the result has
// no more bytes than the operands.
//
//   slice(relu(gather(x)))        becomes  relu(slice(gather(x))), which share_moves makes relu(x)
//   half(gather(x))               becomes  gather(half(x))
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/redistribute/cost.hpp>
#include <cleave/spmd/expand_updates.hpp>
#include <cleave/spmd/passes/relocate.hpp>
#include <cleave/spmd/passes/reorder.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// What both passes do.
class MoveShifting {
 protected:
  constexpr MoveShifting(Program& of, const Shape& mesh, const CostModel& model)
      : program_(of), mesh_(mesh), model_(model), uses_(uses_of(of)), writes_(writes_of(of)) {}

  constexpr const PlacedValue& value(int v) const { return program_.values[std::size_t(v)]; }
  constexpr Traffic traffic(int v, const Layout& to) const {
    return traffic_of(value(v), value(v).layout, to, mesh_, model_);
  }

  constexpr int add_value(PlacedValue like, const Layout& layout) {
    like.layout = layout;
    program_.values.push_back(like);
    uses_.push_back(1);
    return int(program_.values.size()) - 1;
  }
  constexpr Instruction move_to(int from, int to, const Instruction& user) const {
    Instruction move;
    move.kind = InstructionKind::move;
    move.name = user.name;
    move.node = user.node;
    move.operand[0] = from;
    move.operands = 1;
    move.first = to;
    return move;
  }

  /// Replaces the code of the program, in order.
  constexpr void replace(std::vector<Instruction>&& code) {
    program_.code = static_cast<std::vector<Instruction>&&>(code);
    std::vector<int> order;
    for (std::size_t i = 0; i < program_.code.size(); ++i) order.push_back(int(i));
    reorder(program_, order);
    find_last_uses(program_);
  }

  Program& program_;
  const Shape& mesh_;
  const CostModel& model_;
  std::vector<int> uses_;
  std::vector<int> writes_;
};

/// The pass that moves slices up, from the last instruction to the first.
class SliceHoisting : MoveShifting {
 public:
  constexpr SliceHoisting(Program& of, const Shape& mesh, const CostModel& model)
      : MoveShifting(of, mesh, model), slice_(of.values.size(), -1) {
    std::vector<Instruction> code;  // the last one first; names of values do not change
    for (std::size_t n = of.code.size(); n-- > 0;) {
      const Instruction i = of.code[n];
      if (is_slice(i)) slice_[std::size_t(i.operand[0])] = int(code.size());
      if (!hoist(i, code)) code.push_back(i);
    }
    std::erase_if(code, [](const Instruction& i) { return i.results < 0; });
    std::reverse(code.begin(), code.end());
    replace(static_cast<std::vector<Instruction>&&>(code));
  }

 private:
  /// Whether the move only keeps a part of what the rank has.
  constexpr bool is_slice(const Instruction& i) const {
    return i.kind == InstructionKind::move && !value(i.operand[0]).layout.has_partial() &&
           !value(i.first).layout.has_partial() &&
           !(value(i.operand[0]).layout == value(i.first).layout) &&
           traffic(i.operand[0], value(i.first).layout).communications == 0;
  }

  /// Computes the part that a slice keeps, if nothing else reads the result.
  constexpr bool hoist(const Instruction& i, std::vector<Instruction>& code) {
    if (!is_relocatable(i) || uses_[std::size_t(i.first)] != 1) return false;
    const int slice = slice_[std::size_t(i.first)];
    if (slice < 0) return false;
    const int part = code[std::size_t(slice)].first;
    const Layout target = value(part).layout;
    OperandLayouts from{};
    for (int k = 0; k < i.operands; ++k) {
      const int x = i.operand[std::size_t(k)];
      from[std::size_t(k)] =
          is_single(value(x)) ? value(x).layout : layout_before(*i.op->rule, k, target);
      if (value(x).layout.has_partial() || shares_written(program_, x, writes_) ||
          traffic(x, from[std::size_t(k)]).communications > 0)
        return false;
    }
    const Relocation to = relocated(program_, i, from);
    if (!to.is_possible || !(to.result == target)) return false;
    code[std::size_t(slice)].results = -1;  // to be removed
    const bool unalias = code[std::size_t(slice)].unalias;
    Instruction made = i;
    made.first = part;
    const std::size_t at = code.size();
    code.push_back(made);
    for (int k = 0; k < i.operands; ++k) {
      const int x = i.operand[std::size_t(k)];
      if (value(x).layout == from[std::size_t(k)]) continue;
      int same = 0;
      while (i.operand[std::size_t(same)] != x ||
             !(from[std::size_t(same)] == from[std::size_t(k)]))
        ++same;
      if (same < k) {  // an operand given twice
        code[at].operand[std::size_t(k)] = code[at].operand[std::size_t(same)];
        --uses_[std::size_t(x)];
        continue;
      }
      const int y = add_value(value(x), from[std::size_t(k)]);
      slice_.push_back(-1);
      slice_[std::size_t(x)] = int(code.size());
      code[at].operand[std::size_t(k)] = y;
      code.push_back(move_to(x, y, i));
      code.back().unalias = unalias && i.op->is_view;
    }
    return true;
  }

  std::vector<int> slice_;  ///< per value: the place of its last slice in the new code, or -1
};

/// The pass that moves gathers down, from the first instruction to the last.
class GatherSinking : MoveShifting {
 public:
  constexpr GatherSinking(Program& of, const Shape& mesh, const CostModel& model)
      : MoveShifting(of, mesh, model), source_(of.values.size(), -1) {
    std::vector<Instruction> code;
    for (std::size_t n = 0; n < of.code.size(); ++n) {
      const Instruction i = of.code[n];
      if (!sink(i, code)) append(i, code);
    }
    replace(static_cast<std::vector<Instruction>&&>(code));
  }

 private:
  constexpr void append(const Instruction& i, std::vector<Instruction>& code) {
    if (i.kind == InstructionKind::move && !value(i.operand[0]).layout.has_partial() &&
        !value(i.first).layout.has_partial())
      source_[std::size_t(i.first)] = i.operand[0];
    code.push_back(i);
  }

  /// The traffic of a move whose result nothing else reads.
  constexpr Traffic saved(int x) const {
    const int from = source_[std::size_t(x)];
    return from >= 0 && uses_[std::size_t(x)] == 1 ? traffic(from, value(x).layout) : Traffic{};
  }

  constexpr bool sink(const Instruction& i, std::vector<Instruction>& code) {
    if (!is_relocatable(i)) return false;
    Traffic before;
    int gathered = -1;
    for (int k = 0; k < i.operands; ++k) {
      const Traffic one = saved(i.operand[std::size_t(k)]);
      if (one.communications > 0 && gathered < 0) gathered = k;
      before += one;
    }
    if (gathered < 0) return false;
    const Layout all = value(source_[std::size_t(i.operand[std::size_t(gathered)])]).layout;
    OperandLayouts from{};
    std::array<int, std::size_t(max_operands)> operand = i.operand;
    for (int k = 0; k < i.operands; ++k) {
      const int x = i.operand[std::size_t(k)];
      from[std::size_t(k)] = is_single(value(x)) ? value(x).layout : all;
      if (is_single(value(x))) continue;
      const int origin = source_[std::size_t(x)];
      operand[std::size_t(k)] = origin >= 0 && value(origin).layout == all ? origin : x;
      if (traffic(operand[std::size_t(k)], all).communications > 0) return false;
      if (shares_written(program_, operand[std::size_t(k)], writes_)) return false;
    }
    const Relocation to = relocated(program_, i, from);
    if (!to.is_possible) return false;
    const PlacedValue result = value(i.first);
    if (before < traffic_of(result, to.result, result.layout, mesh_, model_)) return false;
    for (int k = 0; k < i.operands; ++k) {
      int& x = operand[std::size_t(k)];
      if (value(x).layout == from[std::size_t(k)]) continue;
      const int y = add_value(value(x), from[std::size_t(k)]);
      source_.push_back(-1);
      code.push_back(move_to(x, y, i));
      x = y;
    }
    Instruction made = i;
    made.operand = operand;
    made.first = add_value(result, to.result);
    source_.push_back(-1);
    code.push_back(made);
    append(move_to(made.first, i.first, i), code);
    return true;
  }

  std::vector<int> source_;  ///< per value: what it is moved from, or -1
};

}  // namespace detail

/// Moves slices up past operations that compute or view element by element. Bits stay the same; the
/// bytes that are received, too.
///
/// @param mesh  extents of the axes
/// @cost        linear in the operands
constexpr void hoist_slices(Program& program, const Shape& mesh, const CostModel& model = {}) {
  const detail::SliceHoisting pass(program, mesh, model);
}

/// Moves gathers down past such operations, where no more bytes are received then: ranks compute
/// their own parts. What had been gathered becomes unused. @see remove_unused
/// @cost linear in the operands
constexpr void sink_gathers(Program& program, const Shape& mesh, const CostModel& model = {}) {
  const detail::GatherSinking pass(program, mesh, model);
}

}  // namespace cleave::inline v0::spmd
