// Runs of elementwise operations that are computed block by block: each operation of a run on one
// block of its arrays, while that is in cache, then on the next.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/spmd/program.hpp>

namespace cleave::spmd {

/// Instructions [begin, end) of a program, elementwise and with results of the same placements and
/// extents.
struct FusedRun {
  /// Elements of a block: several arrays of floats fit into a second-level cache of 256 KiB.
  static constexpr index_t block = 4096;

  int begin = 0;
  int end = 0;
};

namespace detail {

constexpr bool can_be_fused(const Instruction& i) {
  return i.kind == InstructionKind::compute && i.op->is_elementwise && i.results == 1 &&
         !i.op->needs_box && !i.op->draws && i.op->read_map == nullptr;
}

}  // namespace detail

/// The runs of a program, in order: consecutive instructions, as many as possible, at least two.
template <AnyProgram P>
constexpr std::vector<FusedRun> fuse_elementwise(const P& program) {
  std::vector<FusedRun> runs;
  const int count = int(program.code.size());
  for (int i = 0; i < count;) {
    FusedRun run{i, i + 1};
    if (detail::can_be_fused(program.code[std::size_t(i)])) {
      const PlacedValue& first = program.values[std::size_t(program.code[std::size_t(i)].first)];
      const auto joins = [&](const Instruction& next) {
        if (!detail::can_be_fused(next)) return false;
        const PlacedValue& value = program.values[std::size_t(next.first)];
        return value.shape == first.shape && value.layout == first.layout;
      };
      while (run.end < count && joins(program.code[std::size_t(run.end)])) ++run.end;
      if (run.end - run.begin > 1) runs.push_back(run);
    }
    i = run.end;
  }
  return runs;
}

/// Whether a result of a run is needed in the run only: one block of it is kept.
template <AnyProgram P>
constexpr bool is_internal(const P& program, const FusedRun& run, int value) {
  return program.values[std::size_t(value)].last_use < run.end;
}

}  // namespace cleave::spmd
