// Which values can be computed in the memory of the input that they replace, so that the write at
// the end of a program has nothing to copy: x += y, steps of optimizers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// The pass over a program.
template <AnyProgram P>
class WriteInPlace {
 public:
  constexpr WriteInPlace(const P& of, std::span<const FusedRun> runs)
      : of_(of),
        runs_(runs),
        input_(of.values.size(), -1),
        owner_(of.values.size(), 0),
        made_by_(of.values.size(), 0),
        last_read_(of.values.size(), -1) {
    for (std::size_t n = 0; n < of.code.size(); ++n) read(int(n), of.code[n]);
    for (std::size_t n = 0; n < of.code.size(); ++n) {
      const Instruction& write = of.code[n];
      if (write.kind == InstructionKind::write &&
          can_replace(write.operand[0], write.operand[1], int(n)))
        input_[std::size_t(write.operand[1])] = write.operand[0];
    }
  }

  constexpr std::vector<int> take() { return static_cast<std::vector<int>&&>(input_); }

 private:
  constexpr void read(int n, const Instruction& i) {
    const bool is_new = i.operands == 0 || (i.kind == InstructionKind::compute && !i.op->is_view &&
                                            i.op->regrouping.result == 0);
    for (int k = 0; k < i.results; ++k) {
      const auto v = std::size_t(i.first + k);
      owner_[v] = is_new ? int(v) : owner_[std::size_t(i.operand[0])];
      made_by_[v] = n;
    }
    // a step that runs meanwhile reads until something waits for it, before its result is used
    const int until = i.is_started ? of_.values[std::size_t(i.first)].last_use : n;
    for (int k = i.kind == InstructionKind::write ? 1 : 0; k < i.operands; ++k) {
      int& last = last_read_[std::size_t(owner_[std::size_t(i.operand[std::size_t(k)])])];
      last = std::max(last, until);
    }
  }

  /// Whether a value may be computed in the memory of an input, which is written at the end.
  constexpr bool can_replace(int x, int value, int write) const {
    const int n = made_by_[std::size_t(value)];
    const Instruction& i = of_.code[std::size_t(n)];
    const int last = last_read_[std::size_t(x)];
    if (owner_[std::size_t(value)] != value || i.kind != InstructionKind::compute ||
        i.operands == 0 || i.op->stencil != nullptr || last > n ||
        of_.values[std::size_t(value)].last_use != write)
      return false;
    const FusedRun run = run_of(n);
    if (last < run.begin) return true;
    // elements are read before the same element is written
    const int replaced = i.op->replaces[std::size_t(value - i.first)];
    const bool same = replaced >= 0 ? i.operand[std::size_t(replaced)] == x && times_read(i, x) == 1
                                    : can_be_fused(i);
    return same && !is_viewed(x, run);
  }

  static constexpr int times_read(const Instruction& i, int x) {
    return int(std::count(i.operand.begin(), i.operand.begin() + i.operands, x));
  }

  constexpr FusedRun run_of(int instruction) const {
    for (const FusedRun& run : runs_)
      if (run.begin <= instruction && instruction < run.end) return run;
    return {instruction, instruction + 1, instruction + 1};
  }

  /// Whether a run reads views of x.
  constexpr bool is_viewed(int x, const FusedRun& run) const {
    for (int n = run.begin; n < run.end; ++n) {
      const Instruction& i = of_.code[std::size_t(n)];
      for (int k = 0; k < i.operands; ++k) {
        const int v = i.operand[std::size_t(k)];
        if (v != x && owner_[std::size_t(v)] == x) return true;
      }
    }
    return false;
  }

  const P& of_;
  std::span<const FusedRun> runs_;
  std::vector<int> input_;
  std::vector<int> owner_;      ///< per value: in whose memory it may lie
  std::vector<int> made_by_;    ///< per value: an instruction
  std::vector<int> last_read_;  ///< per owner: an instruction other than the write to it
};

}  // namespace detail

/// Per value: the input in whose memory it can be computed, or -1. Nothing reads that input, or a
/// view of it, afterwards.
/// @param runs  @see fuse_elementwise
template <AnyProgram P>
constexpr std::vector<int> write_in_place(const P& program, std::span<const FusedRun> runs = {}) {
  return detail::WriteInPlace<P>(program, runs).take();
}

}  // namespace cleave::inline v0::spmd
