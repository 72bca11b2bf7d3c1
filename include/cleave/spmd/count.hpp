// Counts the communication of a program, for static_assert and for comparing programs.
#pragma once

#include <array>
#include <cstddef>

#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/cost.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/redistribute/regroup.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

template <AnyProgram P>
constexpr Plan plan_of_step(const P& program, const Instruction& step) {
  Plan plan;
  plan.append(step_of(program, step));
  return plan;
}

}  // namespace detail

/// The plan of a move as determined by the layouts alone; of a step, the step.
template <AnyProgram P>
constexpr Plan plan_of(const P& program, const Instruction& move) {
  if (move.kind == InstructionKind::step) return detail::plan_of_step(program, move);
  const PlacedValue& from = program.values[std::size_t(move.operand[0])];
  return make_plan(from.layout, program.values[std::size_t(move.first)].layout, from.shape.dims);
}

/// The plan of a move that runs on a mesh with the given extents. It differs from the plan of the
/// layouts only where sizes decide how partials are reduced, and where an axis has one rank.
template <AnyProgram P>
constexpr Plan plan_of(const P& program, const Instruction& move, const Shape& mesh,
                       const CostModel& model = {}) {
  if (move.kind == InstructionKind::step) return detail::plan_of_step(program, move);
  const PlacedValue& from = program.values[std::size_t(move.operand[0])];
  const PlacedValue& to = program.values[std::size_t(move.first)];
  return choose_plan(redistribution::without_unit_axes(from.layout, mesh),
                     redistribution::without_unit_axes(to.layout, mesh), from.shape, mesh,
                     size_of(from.dtype), model);
}

namespace detail {

inline constexpr AxisMask every_axis = ~AxisMask(0);

/// The axes of several ranks. @param mesh  null: all
constexpr AxisMask several_ranks(const Shape* mesh) {
  AxisMask axes = mesh == nullptr ? every_axis : 0;
  for (int a = 0; mesh != nullptr && a < mesh->dims; ++a) axes |= AxisMask((*mesh)[a] > 1) << a;
  return axes;
}

/// Sums f over the moves and steps of a program.
template <AnyProgram P, class F>
constexpr auto over_moves(const P& program, const F& f) {
  decltype(f(program.code[0])) total = 0;
  for (const Instruction& instruction : program.code)
    if (is_redistribution(instruction)) total += f(instruction);
  return total;
}

constexpr int count(const Plan& plan, StepKind kind, AxisMask axes) {
  int n = 0;
  for (const Step& step : plan)
    n += step.kind == kind && (axes == every_axis || (step.axes & axes) != 0);
  return n;
}

/// The number of collectives of an instruction that regroups dimensions.
/// @param mesh  null: each axis has several ranks, and shards end at the same elements if they may
template <AnyProgram P>
constexpr int regroupings(const P& program, const Instruction& instruction, const Shape* mesh) {
  const PlacedValue& from = program.values[std::size_t(instruction.operand[0])];
  const PlacedValue& to = program.values[std::size_t(instruction.first)];
  const redistribution::Regroup how{
      {from.layout}, {to.layout}, from.shape, to.shape, instruction.op->regrouping};
  const Shape several = Shape::filled(from.layout.axes, 2);
  const bool stays = mesh != nullptr ? how.stays(*mesh) : how.may_stay(several);
  return stays ? 0 : how.narrowed().pieces(mesh != nullptr ? *mesh : several);
}

/// The number of fields of a stencil of which elements of other ranks are read.
/// @param mesh  null: each axis has several ranks
template <AnyProgram P>
constexpr int exchanges(const P& program, const Instruction& instruction, const Shape* mesh) {
  std::array<Shape, std::size_t(max_operands)> shapes{};
  for (std::size_t i = 0; i < std::size_t(instruction.operands); ++i)
    shapes[i] = program.values[std::size_t(instruction.operand[i])].shape;
  const PlacedValue& y = program.values[std::size_t(instruction.first)];
  return instruction.op->stencil->exchanges(
      instruction.attributes.bytes.data(), shapes.data(), y.shape, y.layout,
      mesh != nullptr ? *mesh : Shape::filled(y.layout.axes, 2));
}

/// The number of operands of which an instruction reads elements of other shards.
/// @param mesh  the extents of the axes, or null: each has several ranks
template <AnyProgram P>
constexpr int reads(const P& program, const Instruction& instruction, const Shape* mesh) {
  if (instruction.kind != InstructionKind::compute) return 0;
  if (instruction.op->regrouping.result > 0) return regroupings(program, instruction, mesh);
  if (instruction.op->stencil != nullptr) return exchanges(program, instruction, mesh);
  const Rule& rule = *instruction.op->rule;
  int count = 0;
  for (int i = 0; i < instruction.operands; ++i) {
    const Rule::Operand& operand = rule.operand[std::size_t(i)];
    const Layout& layout = program.values[std::size_t(instruction.operand[std::size_t(i)])].layout;
    count += layout.axes_where([&](const Placement& p) {
      return p.shards() && rule.reader[std::size_t(operand.factor[std::size_t(p.dim)])] >= 0;
    }) & several_ranks(mesh)
                 ? 1
                 : 0;
  }
  return count;
}
/// The same of all instructions.
template <AnyProgram P>
constexpr int reads(const P& program, const Shape* mesh) {
  int count = 0;
  for (const Instruction& instruction : program.code) count += reads(program, instruction, mesh);
  return count;
}

}  // namespace detail

/// The number of steps of a kind in the program.
///
/// @param axes  counts steps over at least one of these: bit a is axis a of the mesh; default any
template <AnyProgram P>
constexpr int count(const P& program, StepKind kind, AxisMask axes = detail::every_axis) {
  return detail::over_moves(program, [&](const Instruction& move) {
    return detail::count(plan_of(program, move), kind, axes);
  });
}
/// The same on a mesh with the given extents.
template <AnyProgram P>
constexpr int count(const P& program, StepKind kind, AxisMask axes, const Shape& mesh,
                    const CostModel& model = {}) {
  return detail::over_moves(program, [&](const Instruction& move) {
    return detail::count(plan_of(program, move, mesh, model), kind, axes);
  });
}

/// The number of steps of a program that communicate, and of operands of which operations read
/// elements of other shards. Of merged and split dimensions, whose shards may end at the same
/// elements, only those are counted that never do.
template <AnyProgram P>
constexpr int communications(const P& program) {
  return detail::reads(program, nullptr) +
         detail::over_moves(program, [&](const Instruction& move) {
           return plan_of(program, move).communications();
         });
}

/// The same on a mesh with the given extents.
template <AnyProgram P>
constexpr int communications(const P& program, const Shape& mesh, const CostModel& model = {}) {
  return detail::reads(program, &mesh) + detail::over_moves(program, [&](const Instruction& move) {
           return plan_of(program, move, mesh, model).communications();
         });
}

/// The number of calls that run the steps of a kind: steps of a round are one.
template <AnyProgram P>
constexpr int rounds(const P& program, StepKind kind, AxisMask axes = detail::every_axis) {
  int calls = 0, last = -1;
  for (const Instruction& i : program.code) {
    if (!is_redistribution(i)) continue;
    const bool joins = i.round >= 0 && i.round == last;
    last = i.round;
    if (!joins) calls += detail::count(plan_of(program, i), kind, axes);
  }
  return calls;
}

/// The sum over all moves of the bytes that the rank with the largest volume receives; without what
/// operations read of other shards.
///
/// @param mesh  extents of the axes
template <AnyProgram P>
constexpr index_t received_bytes(const P& program, const Shape& mesh, const CostModel& model = {}) {
  return detail::over_moves(program, [&](const Instruction& move) {
    const PlacedValue& from = program.values[std::size_t(move.operand[0])];
    return cleave::received_bytes(plan_of(program, move, mesh, model), mesh, from.shape,
                                  size_of(from.dtype));
  });
}

}  // namespace cleave::inline v0::spmd
