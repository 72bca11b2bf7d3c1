// Computing an operation under other placements: for passes that move redistributions past it.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/cost.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/rules/solver.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd::detail {

/// The traffic of a move.
struct Traffic {
  index_t bytes = 0;
  int communications = 0;

  constexpr Traffic& operator+=(const Traffic& other) {
    bytes = redistribution::capped_sum(bytes, other.bytes);
    communications += other.communications;
    return *this;
  }
  friend constexpr bool operator==(const Traffic&, const Traffic&) = default;
  constexpr bool operator<(const Traffic& other) const {
    return bytes != other.bytes ? bytes < other.bytes : communications < other.communications;
  }
};

/// The traffic of a value that moves from one layout to another.
constexpr Traffic traffic_of(const PlacedValue& value, const Layout& from, const Layout& to,
                             const Shape& mesh, const CostModel& model) {
  const Plan plan = choose_plan(redistribution::without_unit_axes(from, mesh),
                                redistribution::without_unit_axes(to, mesh), value.shape, mesh,
                                size_of(value.dtype), model);
  return {received_bytes(plan, mesh, value.shape, size_of(value.dtype)), plan.communications()};
}

/// Whether an instruction computes or views element by element, so that the elements do not depend
/// on how they are placed.
constexpr bool is_relocatable(const Instruction& i) {
  return i.kind == InstructionKind::compute && i.results == 1 && i.operands > 0 &&
         !i.op->needs_box && !i.op->draws && i.op->read_map == nullptr &&
         i.op->stencil == nullptr && i.op->regrouping.result == 0 &&
         (i.op->is_elementwise || i.op->is_view);
}

/// The placements of one operand that the result's would follow from, if any: the same axes shard
/// the same factors.
constexpr Layout layout_before(const Rule& rule, int operand, const Layout& result) {
  Layout layout = Layout::replicated(result.axes);
  for (int a = 0; a < result.axes; ++a) {
    if (!result[a].shards()) continue;
    const int factor = rule.result[0].factor[std::size_t(result[a].dim)];
    const int dim = rule.operand[std::size_t(operand)].dim_of(factor);
    if (dim >= 0) layout[a] = result[a].along(dim);
  }
  return layout;
}

/// An operation under other placements.
struct Relocation {
  bool is_possible = false;
  Layout result{};
  std::array<Layout, std::size_t(max_operands)> operand{};
};

/// Numbers, and single elements, which every shard needs.
constexpr bool is_single(const PlacedValue& value) { return value.shape.dims == 0; }

/// Whether an operation takes operands under these layouts, and gives whole results.
constexpr Relocation relocated(const Program& program, const Instruction& i,
                               const OperandLayouts& from) {
  const Rule& rule = *i.op->rule;
  const Shape& shape = program.values[std::size_t(i.first)].shape;
  Relocation to;
  for (int k = 0; k < i.operands; ++k) {
    const PlacedValue& x = program.values[std::size_t(i.operand[std::size_t(k)])];
    if (i.op->is_elementwise && !is_single(x) && !(x.shape == shape)) return to;  // it repeats
    if (from[std::size_t(k)].has_partial()) return to;
    to.operand[std::size_t(k)] = from[std::size_t(k)];
  }
  const Solution solution = solve(rule, from, nullptr);
  for (int k = 0; k < i.operands; ++k)
    if (!(solution.required[std::size_t(k)] == from[std::size_t(k)])) return to;
  to.result = solution.computed[0];
  to.is_possible = !to.result.has_partial();
  return to;
}

/// How often each value is read, outputs included.
constexpr std::vector<int> uses_of(const Program& program) {
  std::vector<int> uses(program.values.size(), 0);
  for (const Instruction& i : program.code)
    for (int k = 0; k < i.operands; ++k) ++uses[std::size_t(i.operand[std::size_t(k)])];
  for (const Output& output : program.outputs) ++uses[std::size_t(output.value)];
  return uses;
}

/// Per input: the value that is written to it, or -1.
constexpr std::vector<int> writes_of(const Program& program) {
  std::vector<int> source(std::size_t(program.inputs), -1);
  for (const Instruction& i : program.code)
    if (i.kind == InstructionKind::write) source[std::size_t(i.operand[0])] = i.operand[1];
  return source;
}

}  // namespace cleave::inline v0::spmd::detail
