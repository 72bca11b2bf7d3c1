// The estimated time of a program, of its communication and of a rank's share of the computation:
// by which schemas are compared. Pure constexpr arithmetic, the same on every rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/redistribute/cost.hpp>
#include <cleave/redistribute/step_box.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

/// What a program's steps cost.
struct ProgramCosts {
  CostModel communication{};
  /// Points of the iteration space of an operation that a rank computes, m n k for a product of
  /// matrices. The defaults are those of one core with vectors of 512 bits.
  double points_per_us = 20000;
  double memory_bytes_per_us = 10000;  ///< of operands and results
};

namespace detail {

/// The extents of the longest part that a rank owns.
constexpr Shape longest_extents(const PlacedValue& value, const Shape& mesh) {
  return redistribution::longest_extents({value.layout}, value.shape, mesh);
}
constexpr index_t longest_bytes(const PlacedValue& value, const Shape& mesh) {
  return redistribution::capped_product(longest_extents(value, mesh).product(),
                                        index_t(size_of(value.dtype)));
}

/// The part of an operation's iteration space that a rank computes: the product of its factors.
class Points {
 public:
  constexpr void add(const Rule::Operand& operand, const PlacedValue& value, const Shape& mesh) {
    const Shape local = longest_extents(value, mesh);
    for (int d = 0; d < operand.dims; ++d) {
      Factor& factor = factor_[std::size_t(operand.factor[std::size_t(d)])];
      if (value.shape[d] > factor.whole) factor = {value.shape[d], local[d]};
      else if (value.shape[d] == factor.whole) factor.own = std::min(factor.own, local[d]);
    }
  }
  constexpr double count() const {
    double n = 1;
    for (const Factor& factor : factor_) n *= double(factor.own);
    return n;
  }

 private:
  struct Factor {
    index_t whole = 1, own = 1;
  };
  std::array<Factor, Rule::max_factors> factor_{};
};

/// The time of a computation. Views cost nothing.
template <AnyProgram P>
constexpr double computation_us(const P& program, const Instruction& i, const Shape& mesh,
                                const ProgramCosts& costs) {
  if (i.operands == 0 || i.op->is_view || i.op->regrouping.result > 0) return 0;
  const Rule& rule = *i.op->rule;
  Points points;
  index_t bytes = 0;
  for (int k = 0; k < i.operands; ++k) {
    const PlacedValue& x = program.values[std::size_t(i.operand[std::size_t(k)])];
    points.add(rule.operand[std::size_t(k)], x, mesh);
    bytes = redistribution::capped_sum(bytes, longest_bytes(x, mesh));
  }
  for (int k = 0; k < i.results; ++k) {
    const PlacedValue& y = program.values[std::size_t(i.first + k)];
    points.add(rule.result[std::size_t(k)], y, mesh);
    bytes = redistribution::capped_sum(bytes, longest_bytes(y, mesh));
  }
  return points.count() / costs.points_per_us + double(bytes) / costs.memory_bytes_per_us;
}

/// The time in which an operation reads elements of other ranks: at most the operand's own part.
template <AnyProgram P>
constexpr double reading_us(const P& program, const Instruction& i, const Shape& mesh,
                            const ProgramCosts& costs) {
  const int count = reads(program, i, &mesh);
  if (count == 0) return 0;
  const PlacedValue& x = program.values[std::size_t(i.operand[0])];
  const auto axes = several_ranks(&mesh);
  return (count - 1) * estimated_us(axes, mesh, 0, costs.communication) +
         estimated_us(axes, mesh, double(longest_bytes(x, mesh)), costs.communication);
}

}  // namespace detail

/// The estimated time of one instruction, in microseconds.
/// @param mesh  extents of the axes
template <AnyProgram P>
constexpr double estimated_us(const P& program, const Instruction& instruction, const Shape& mesh,
                              const ProgramCosts& costs = {}) {
  if (is_redistribution(instruction)) {
    const PlacedValue& from = program.values[std::size_t(instruction.operand[0])];
    return cleave::estimated_us(plan_of(program, instruction, mesh, costs.communication), mesh,
                                from.shape, size_of(from.dtype), costs.communication);
  }
  if (instruction.kind != InstructionKind::compute) return 0;
  return detail::computation_us(program, instruction, mesh, costs) +
         detail::reading_us(program, instruction, mesh, costs);
}

/// The estimated time of a program: the sum over its instructions, as nothing overlaps.
template <AnyProgram P>
constexpr double estimated_us(const P& program, const Shape& mesh, const ProgramCosts& costs = {}) {
  double us = 0;
  for (const Instruction& i : program.code) us += estimated_us(program, i, mesh, costs);
  return us;
}

}  // namespace cleave::inline v0::spmd
