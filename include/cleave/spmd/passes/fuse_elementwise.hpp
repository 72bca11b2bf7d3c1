// Runs of elementwise operations, and of reductions that end them, that are computed block by
// block: each operation of a run on one block of its arrays, while that is in cache, then on the
// next.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

/// Instructions [begin, end) of a program: elementwise and with results of the same placements and
/// extents; then reductions of these results, of the last dimensions.
struct FusedRun {
  /// Elements of a block: several arrays of floats fit into a first-level cache of 32 KiB.
  static constexpr index_t block = 1024;

  int begin = 0;
  int end = 0;
  int reductions = 0;  ///< the first of them, or `end`
  int rows = -1;       ///< the dimension from which on they reduce, or -1
};

namespace detail {

constexpr bool can_be_fused(const Instruction& i) {
  return i.kind == InstructionKind::compute && i.op->row != nullptr && !i.op->needs_box &&
         !i.op->draws && i.op->read_map == nullptr;
}

/// Whether the first results of two instructions have the same extents and placements.
template <AnyProgram P>
constexpr bool are_alike(const P& program, const Instruction& a, const Instruction& b) {
  const PlacedValue& x = program.values[std::size_t(a.first)];
  const PlacedValue& y = program.values[std::size_t(b.first)];
  return x.shape == y.shape && x.layout == y.layout;
}

/// Whether an elementwise operation of a run makes a value.
template <AnyProgram P>
constexpr bool is_result(const P& program, const FusedRun& run, int value) {
  for (int n = run.begin; n < run.reductions; ++n)
    if (program.code[std::size_t(n)].first == value) return true;
  return false;
}

/// The first dimension of a reduction that a run can end with, or -1: of a result of the run, of
/// all dimensions after the first, which have a block at most.
template <AnyProgram P>
constexpr int rows_reduced(const P& program, const FusedRun& run, const Instruction& i) {
  if (i.kind != InstructionKind::compute || i.op->reduces == 0 || i.operands != 1) return -1;
  const int x = i.operand[0];
  if (x < program.code[std::size_t(run.begin)].first || !is_result(program, run, x)) return -1;
  const Shape& shape = program.values[std::size_t(x)].shape;
  int first = shape.dims;
  index_t elements = 1;
  while (first > 0 && (i.op->reduces >> (first - 1) & 1u) != 0) elements *= shape[--first];
  const bool all = i.op->reduces == ((1u << shape.dims) - 1u) - ((1u << first) - 1u);
  return all && elements <= FusedRun::block ? first : -1;
}

}  // namespace detail

/// The runs of a program, in order: consecutive instructions, as many as possible, at least two.
/// Reductions add in the order of calls.
template <AnyProgram P>
constexpr std::vector<FusedRun> fuse_elementwise(const P& program) {
  std::vector<FusedRun> runs;
  const int count = int(program.code.size());
  for (int i = 0; i < count;) {
    FusedRun run{i, i + 1};
    if (const Instruction& first = program.code[std::size_t(i)]; detail::can_be_fused(first)) {
      const auto joins = [&](const Instruction& next) {
        return detail::can_be_fused(next) && detail::are_alike(program, first, next);
      };
      while (run.end < count && joins(program.code[std::size_t(run.end)])) ++run.end;
      run.reductions = run.end;
      for (; run.end < count; ++run.end) {
        const int rows = detail::rows_reduced(program, run, program.code[std::size_t(run.end)]);
        if (rows < 0 || (run.rows >= 0 && rows != run.rows)) break;
        run.rows = rows;
      }
      if (run.end - run.begin > 1) runs.push_back(run);
    }
    i = run.end;
  }
  return runs;
}

/// The number of elementwise operations of a run.
constexpr std::size_t count_of(const FusedRun& run) {
  return std::size_t(run.reductions - run.begin);
}

/// Whether a result of a run is needed in the run only: one block of it is kept.
template <AnyProgram P>
constexpr bool is_internal(const P& program, const FusedRun& run, int value) {
  return program.values[std::size_t(value)].last_use < run.end;
}

}  // namespace cleave::inline v0::spmd
