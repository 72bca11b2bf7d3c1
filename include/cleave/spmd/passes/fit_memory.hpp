// Fits a program into a limit of memory: frees values earlier, then computes values again where
// they are needed, instead of keeping them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/spmd/passes/free_early.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/passes/reorder.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/with_extents.hpp>

namespace cleave::inline v0::spmd {

/// The most bytes at a time that a rank's values take, without inputs. The first rank has the
/// longest shards.
constexpr index_t value_bytes(const Program& program, const Shape& mesh) {
  const std::vector<FusedRun> runs = fuse_elementwise(program);
  return plan_memory(program, mesh, Shape::filled(mesh.dims, 0), runs).peak();
}

namespace detail {

/// Computes values of a program again. The choice depends on the program and the mesh alone: it is
/// the same on all ranks.
class Recomputation {
 public:
  constexpr Recomputation(Program& of, const Shape& mesh) : of_(of), mesh_(mesh) {}

  /// Computes the value again that saves most where most memory is in use; also one that saves
  /// nothing, if what it is computed from then serves others, too. @return whether there is one
  constexpr bool next() {
    find_uses();
    const int peak = position_of_peak();
    int best = -1;
    index_t most = -1;
    for (int v = of_.inputs; v < int(of_.values.size()); ++v) {
      if (!is_kept_over(v, peak)) continue;
      chain_.clear();
      index_t saved = bytes(v);
      add_chain(v, next_use(v, peak), saved);
      if (saved > most) {
        best = v;
        most = saved;
      }
    }
    if (best < 0) return false;
    compute_again(best, next_use(best, peak));
    return true;
  }

 private:
  constexpr const Instruction& code(int i) const { return of_.code[std::size_t(i)]; }
  constexpr int last_use(int v) const { return of_.values[std::size_t(v)].last_use; }

  constexpr index_t bytes(int v) const {
    const PlacedValue& value = of_.values[std::size_t(v)];
    return local_shape(value.layout, value.shape, mesh_, Shape::filled(mesh_.dims, 0)).product() *
           index_t(size_of(value.dtype));
  }

  constexpr void find_uses() {
    made_.assign(of_.values.size(), 0);
    is_viewed_.assign(of_.values.size(), 0);
    for (std::size_t n = 0; n < of_.code.size(); ++n) {
      const Instruction& i = of_.code[n];
      const bool shares =
          is_redistribution(i) || (i.kind == InstructionKind::compute && i.operands > 0 &&
                                   (i.op->is_view || i.op->regrouping.result != 0));
      for (int k = 0; k < i.results; ++k) made_[std::size_t(i.first + k)] = int(n);
      for (int k = 0; shares && k < i.operands; ++k)
        is_viewed_[std::size_t(i.operand[std::size_t(k)])] = 1;
    }
  }

  /// The instruction during which the values take most bytes.
  constexpr int position_of_peak() const {
    std::vector<index_t> change(of_.code.size() + 1, 0);
    for (int v = of_.inputs; v < int(of_.values.size()); ++v) {
      if (code(made_[std::size_t(v)]).kind == InstructionKind::constant) continue;
      change[std::size_t(made_[std::size_t(v)])] += bytes(v);
      if (last_use(v) != PlacedValue::kept) change[std::size_t(last_use(v)) + 1] -= bytes(v);
    }
    index_t live = 0, most = -1;
    int at = 0;
    for (std::size_t n = 0; n < of_.code.size(); ++n)
      if ((live += change[n]) > most) {
        most = live;
        at = int(n);
      }
    return at;
  }

  /// The first instruction after `peak` that reads a value.
  constexpr int next_use(int v, int peak) const {
    for (int n = peak + 1; n < int(of_.code.size()); ++n)
      for (int k = 0; k < code(n).operands; ++k)
        if (code(n).operand[std::size_t(k)] == v) return n;
    return -1;
  }

  /// Whether a value is cheap to compute, and kept over `peak`.
  constexpr bool is_kept_over(int v, int peak) const {
    const int n = made_[std::size_t(v)];
    return n < peak && last_use(v) > peak && last_use(v) != PlacedValue::kept &&
           !is_viewed_[std::size_t(v)] && can_be_fused(code(n)) && next_use(v, peak) >= 0;
  }

  constexpr bool is_there(int x, int at) const {
    return x < of_.inputs || code(made_[std::size_t(x)]).kind == InstructionKind::constant ||
           last_use(x) >= at;
  }

  /// Appends to `chain_` the instructions that compute a value at `at`, in order.
  /// @param saved  reduced by the bytes of what has to be kept for them
  constexpr void add_chain(int v, int at, index_t& saved) {
    const int n = made_[std::size_t(v)];
    if (std::find(chain_.begin(), chain_.end(), n) != chain_.end()) return;
    for (int k = 0; k < code(n).operands; ++k) {
      const int x = code(n).operand[std::size_t(k)];
      if (is_there(x, at)) continue;
      if (can_be_fused(code(made_[std::size_t(x)])) && chain_.size() < longest) {
        add_chain(x, at, saved);
      } else {
        saved -= bytes(x);
      }
    }
    chain_.push_back(n);
  }

  constexpr void compute_again(int v, int at) {
    chain_.clear();
    index_t saved = 0;
    add_chain(v, at, saved);
    const int count = int(of_.code.size());
    std::vector<int> order(std::size_t(count), 0);
    std::iota(order.begin(), order.end(), 0);
    std::vector<int> again(of_.values.size(), -1);  // per value: its copy
    for (const int n : chain_) {
      Instruction copy = code(n);
      for (int k = 0; k < copy.operands; ++k)
        if (const int x = again[std::size_t(copy.operand[std::size_t(k)])]; x >= 0)
          copy.operand[std::size_t(k)] = x;
      again[std::size_t(copy.first)] = int(of_.values.size());
      of_.values.push_back(PlacedValue(of_.values[std::size_t(copy.first)]));
      copy.first = int(of_.values.size()) - 1;
      order.insert(order.begin() + at + int(of_.code.size()) - count, int(of_.code.size()));
      of_.code.push_back(copy);
    }
    for (int n = at; n < count; ++n)
      for (int k = 0; k < code(n).operands; ++k)
        if (int& x = of_.code[std::size_t(n)].operand[std::size_t(k)]; x == v)
          x = again[std::size_t(v)];
    reorder(of_, order);
    find_last_uses(of_);
  }

  static constexpr std::size_t longest = 16;  ///< instructions for one value

  Program& of_;
  const Shape& mesh_;
  std::vector<int> made_{};        ///< per value: an instruction
  std::vector<int> chain_{};       ///< the instructions that compute a value again
  std::vector<char> is_viewed_{};  ///< per value: whether others may lie in its memory
};

/// For extents that are known.
constexpr Program fit_memory_once(const Program& program, const Shape& mesh, index_t limit) {
  if (program.fault || value_bytes(program, mesh) <= limit) return program;
  if (round_count(program) > 0)
    throw Error("spmd::fit_memory",
                "the collectives of the program are in rounds already; call it before coalesce");
  Program best = program;
  free_early(best);
  find_last_uses(best);
  if (value_bytes(best, mesh) > value_bytes(program, mesh)) best = program;
  Program now = best;
  index_t least = value_bytes(best, mesh);
  const std::size_t most = 2 * now.code.size();
  while (least > limit && now.code.size() < most && Recomputation(now, mesh).next()) {
    const index_t peak = value_bytes(now, mesh);
    if (peak >= least) continue;
    least = peak;
    best = now;
  }
  if (least > limit)
    throw Error("spmd::fit_memory", "the program takes at least " + std::to_string(least) +
                                        " bytes on a rank besides its inputs, the limit is " +
                                        std::to_string(limit));
  return best;
}

}  // namespace detail

/// The program with a peak of at most `limit` bytes on each rank of a mesh. If it has a higher one,
/// what frees memory comes earlier, and results of elementwise operations are computed again where
/// they are needed next, those first that take most memory. Every value keeps its bits.
/// If extents contain symbols, the program is made to fit for a sample of extents, which meets the
/// conditions on symbols, and by a Runner for the extents of a run.
///
/// @param mesh   extents of its axes
/// @param limit  of the values besides inputs. @see MemoryPlan::peak
/// @cost         each value that is computed again costs a pass over the program
/// @throws Error if the program cannot be made to fit, or has rounds (@see coalesce); a compile
///               error in constant expressions
constexpr Program fit_memory(const Program& program, const Shape& mesh, index_t limit) {
  return with_passes(program, [mesh, limit](const Program& now) {
    return detail::fit_memory_once(now, mesh, limit);
  });
}

}  // namespace cleave::inline v0::spmd
