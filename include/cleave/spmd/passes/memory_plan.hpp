// Where the values of a program lie in memory: offsets in one block, which a Runner allocates once.
// Values that do not live at the same time share memory, and an elementwise operation writes its
// result over an operand that nothing needs afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/redistribute/step_box.hpp>
#include <cleave/spmd/count.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/passes/write_in_place.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/tensor/host_cache.hpp>

namespace cleave::inline v0::spmd {

/// The memory of a rank's part of a program.
struct MemoryPlan {
  static constexpr index_t elsewhere = -1;

  /// Of each value, in bytes from the beginning of the block; elsewhere: inputs, constants, outputs
  /// and what they view, and the results of redistributions, factories and views.
  std::vector<index_t> offset{};
  std::vector<index_t> bytes{};   ///< of each value
  std::vector<index_t> in_use{};  ///< bytes of the values that live during each instruction,
                                  ///< without inputs: the memory over the time of a run
  /// Of the result of a redistribution that sends nothing: whether it is a copy, not its operand.
  std::vector<char> is_copied{};
  std::vector<int> input{};  ///< of each value: the input in whose memory it is computed, or -1
  index_t block = 0;         ///< bytes of the block
  index_t outside = 0;       ///< most bytes elsewhere at a time, without inputs
  /// The most bytes at a time, without inputs and what kernels and redistributions use meanwhile.
  constexpr index_t peak() const { return block + outside; }
};

namespace detail {

/// The bytes that an allocation of this many takes.
constexpr index_t taken_bytes(index_t bytes) {
  return bytes < index_t(cleave::detail::least_cached_bytes)
             ? bytes
             : index_t(cleave::detail::HostCache::block_bytes(std::size_t(bytes)));
}

/// Free parts of a block, in order.
class FreeList {
 public:
  /// @return the offset of the smallest part that is large enough; the block grows if there is none
  constexpr index_t take(index_t bytes) {
    std::size_t best = parts_.size();
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i].bytes >= bytes &&
          (best == parts_.size() || parts_[i].bytes < parts_[best].bytes))
        best = i;
    if (best == parts_.size()) {
      const bool ends = !parts_.empty() && parts_.back().begin + parts_.back().bytes == end_;
      const index_t begin = ends ? parts_.back().begin : end_;
      if (ends) parts_.pop_back();
      end_ = begin + bytes;
      return begin;
    }
    const index_t begin = parts_[best].begin;
    parts_[best].begin += bytes;
    parts_[best].bytes -= bytes;
    if (parts_[best].bytes == 0) parts_.erase(parts_.begin() + std::ptrdiff_t(best));
    return begin;
  }

  constexpr void give(index_t begin, index_t bytes) {
    std::size_t i = 0;
    while (i < parts_.size() && parts_[i].begin < begin) ++i;
    parts_.insert(parts_.begin() + std::ptrdiff_t(i), {begin, bytes});
    merge(i);
    if (i > 0) merge(i - 1);
  }

  constexpr index_t size() const { return end_; }

 private:
  struct Part {
    index_t begin, bytes;
  };

  /// Joins part i with the next one if they touch.
  constexpr void merge(std::size_t i) {
    if (i + 1 >= parts_.size() || parts_[i].begin + parts_[i].bytes != parts_[i + 1].begin) return;
    parts_[i].bytes += parts_[i + 1].bytes;
    parts_.erase(parts_.begin() + std::ptrdiff_t(i) + 1);
  }

  std::vector<Part> parts_{};
  index_t end_ = 0;
};

/// The pass over the instructions of a program.
template <AnyProgram P>
class MemoryPlanner {
 public:
  constexpr MemoryPlanner(const P& of, const Shape& mesh, const Shape& coordinate,
                          std::span<const FusedRun> runs)
      : program_(of),
        mesh_(mesh),
        runs_(runs),
        owner_(of.values.size(), 0),
        until_(of.values.size(), -1),
        room_(of.values.size(), 0) {
    for (const PlacedValue& value : of.values) {
      const index_t elements =
          redistribution::local_extents(value.step_layout(), value.shape, mesh, coordinate)
              .product();
      plan_.bytes.push_back(elements * index_t(size_of(value.dtype)));
      plan_.offset.push_back(MemoryPlan::elsewhere);
    }
    plan_.input = write_in_place(of, runs);
    find_copies();
    find_owners();
    for (const FusedRun& run : runs)
      for (int i = run.begin; i < run.reductions; ++i)
        keep_one_block(run, of.code[std::size_t(i)].first);
    for (std::size_t i = 0; i < of.code.size(); ++i) place(int(i), of.code[i]);
    plan_.block = taken_bytes(free_.size());
  }

  constexpr MemoryPlan take() { return static_cast<MemoryPlan&&>(plan_); }

 private:
  static constexpr index_t alignment = 64;

  static constexpr bool is_kernel(const Instruction& i) {
    return i.kind == InstructionKind::compute && i.operands > 0 && !i.op->is_view &&
           i.op->regrouping.result == 0;
  }

  /// Finds the redistributions that copy although they send nothing: those whose result must not
  /// share elements, and would share them with an input, a constant or another output.
  constexpr void find_copies() {
    plan_.is_copied.assign(program_.values.size(), 1);
    is_allocated_.assign(program_.code.size(), 0);
    for (std::size_t i = 0; i < program_.code.size(); ++i)
      is_allocated_[i] = char(allocates(program_.code[i]));
    find_owners();
    std::vector<int> output(program_.values.size(), -1);  // per owner: an output in its memory
    std::vector<char> shared(program_.values.size(), 0);
    for (const Output& returned : program_.outputs) {
      const int v = returned.value;
      const auto owner = std::size_t(owner_[std::size_t(v)]);
      shared[owner] = char(shared[owner] || (output[owner] >= 0 && output[owner] != v));
      output[owner] = v;
    }
    for (std::size_t i = 0; i < program_.code.size(); ++i) {
      const Instruction& move = program_.code[i];
      if (!move.unalias || is_allocated_[i]) continue;
      const auto owner = std::size_t(owner_[std::size_t(move.first)]);
      const bool copies = shared[owner] || is_given_[owner];
      plan_.is_copied[std::size_t(move.first)] = char(copies);
      is_allocated_[i] = char(copies);
    }
  }

  /// Finds whose memory a value may lie in, and until when that is needed. Views and
  /// redistributions may return the memory of their operand.
  constexpr void find_owners() {
    is_given_.assign(program_.values.size(), 0);
    until_.assign(program_.values.size(), -1);
    for (std::size_t n = 0; n < program_.code.size(); ++n) {
      const Instruction& i = program_.code[n];
      for (int k = 0; k < i.results; ++k) {
        const auto v = std::size_t(i.first + k);
        const bool shares = i.operands > 0 && !is_kernel(i) && !is_allocated_[n];
        owner_[v] = shares ? owner_[std::size_t(i.operand[0])] : int(v);
        is_given_[v] =
            char(i.kind == InstructionKind::input || i.kind == InstructionKind::constant);
        index_t& until = until_[std::size_t(owner_[v])];
        until = std::max(until, index_t(program_.values[v].last_use));
      }
    }
  }

  constexpr void keep_one_block(const FusedRun& run, int value) {
    const index_t most =
        FusedRun::block * index_t(size_of(program_.values[std::size_t(value)].dtype));
    index_t& bytes = plan_.bytes[std::size_t(value)];
    if (is_internal(program_, run, value)) bytes = std::min(bytes, most);
  }

  /// The run that an instruction belongs to; else an empty one.
  constexpr FusedRun run_of(int instruction) {
    while (!runs_.empty() && runs_[0].end <= instruction) runs_ = runs_.subspan(1);
    return !runs_.empty() && runs_[0].begin <= instruction ? runs_[0]
                                                           : FusedRun{instruction, instruction + 1};
  }

  constexpr index_t room(int value) const {
    return (plan_.bytes[std::size_t(value)] + alignment - 1) / alignment * alignment;
  }

  constexpr void place(int now, const Instruction& i) {
    const FusedRun run = run_of(now);
    if (now == run.begin) find_viewed(run);
    for (int k = 0; k < i.results; ++k) {
      const int v = i.first + k;
      if (i.kind == InstructionKind::input || i.is_number || plan_.input[std::size_t(v)] >= 0)
        continue;
      if (is_kernel(i) && until_[std::size_t(v)] != PlacedValue::kept) {
        if (plan_.bytes[std::size_t(v)] == 0) continue;
        const int under = i.results == 1 ? overwritten(now, i, run) : -1;
        room_[std::size_t(v)] = under < 0 ? room(v) : room_[std::size_t(under)];
        plan_.offset[std::size_t(v)] =
            under < 0 ? free_.take(room_[std::size_t(v)]) : plan_.offset[std::size_t(under)];
        if (under >= 0) std::erase(held_, under);
        held_.push_back(v);
        in_block_ += under < 0 ? room_[std::size_t(v)] : 0;
      } else if (is_kernel(i) || i.operands == 0 || is_allocated_[std::size_t(now)]) {
        outside_ += taken_bytes(plan_.bytes[std::size_t(v)]);
        plan_.outside = std::max(plan_.outside, outside_);
        elsewhere_.push_back(v);
      }
    }
    plan_.in_use.push_back(in_block_ + outside_);
    if (now + 1 == run.end) release(now);
  }

  /// Whether the result of a redistribution or of a regrouping of dimensions is received.
  constexpr bool allocates(const Instruction& i) const {
    if (is_redistribution(i)) return plan_of(program_, i, mesh_).communications() > 0;
    return i.kind == InstructionKind::compute && i.op->regrouping.result != 0 &&
           regroupings(program_, i, &mesh_) > 0;
  }

  /// An operand whose memory the result can take, or -1: of the same extents, in memory that
  /// nothing else reads now or later. In a run, blocks are written before later blocks are read.
  constexpr int overwritten(int now, const Instruction& i, const FusedRun& run) const {
    if (!i.op->is_elementwise) return -1;
    const PlacedValue& y = program_.values[std::size_t(i.first)];
    for (int k = 0; k < i.operands; ++k) {
      const int x = i.operand[std::size_t(k)];
      const PlacedValue& value = program_.values[std::size_t(x)];
      if (plan_.offset[std::size_t(x)] >= 0 && until_[std::size_t(x)] == now &&
          value.shape == y.shape && value.layout == y.layout &&
          size_of(value.dtype) == size_of(y.dtype) &&
          plan_.bytes[std::size_t(x)] >= plan_.bytes[std::size_t(i.first)] && !is_viewed(x) &&
          (is_internal(program_, run, i.first) || !is_made_in(run, x)))
        return x;
    }
    return -1;
  }
  /// Whether an instruction of the current run reads a view of a value.
  constexpr bool is_viewed(int x) const {
    return std::find(viewed_.begin(), viewed_.end(), x) != viewed_.end();
  }
  constexpr void find_viewed(const FusedRun& run) {
    viewed_.clear();
    for (int n = run.begin; n < run.end; ++n) {
      const Instruction& reader = program_.code[std::size_t(n)];
      for (int j = 0; j < reader.operands; ++j) {
        const int x = reader.operand[std::size_t(j)], owner = owner_[std::size_t(x)];
        if (owner != x && !is_viewed(owner)) viewed_.push_back(owner);
      }
    }
  }
  constexpr bool is_made_in(const FusedRun& run, int x) const {
    return x >= program_.code[std::size_t(run.begin)].first && is_internal(program_, run, x);
  }

  /// Frees what is not needed after an instruction.
  constexpr void release(int now) {
    for (const int v : held_) {
      if (until_[std::size_t(v)] > now) continue;
      free_.give(plan_.offset[std::size_t(v)], room_[std::size_t(v)]);
      in_block_ -= room_[std::size_t(v)];
    }
    std::erase_if(held_, [&](int v) { return until_[std::size_t(v)] <= now; });
    for (const int v : elsewhere_)
      if (until_[std::size_t(v)] <= now) outside_ -= taken_bytes(plan_.bytes[std::size_t(v)]);
    std::erase_if(elsewhere_, [&](int v) { return until_[std::size_t(v)] <= now; });
  }

  const P& program_;
  const Shape& mesh_;
  std::span<const FusedRun> runs_;  ///< from the current one on
  MemoryPlan plan_{};
  std::vector<int> owner_;            ///< per value: in whose memory it may lie
  std::vector<index_t> until_;        ///< per owner: the last instruction that needs its memory
  std::vector<index_t> room_;         ///< per value in the block: the bytes that it takes there
  std::vector<char> is_given_{};      ///< per value: whether it is an input or a constant
  std::vector<char> is_allocated_{};  ///< per instruction: whether it takes memory of its own
  std::vector<int> held_{};           ///< values in the block now
  std::vector<int> elsewhere_{};      ///< values that have memory of their own now
  std::vector<int> viewed_{};         ///< values of which the current run reads views
  FreeList free_{};
  index_t in_block_ = 0;  ///< bytes of `held_`
  index_t outside_ = 0;   ///< of `elsewhere_`
};

}  // namespace detail

/// Plans the memory of the rank at `coordinate` of a mesh with these extents.
/// @param runs  computed block by block. @see fuse_elementwise
/// @cost linear in the instructions times the values that live at a time
template <AnyProgram P>
constexpr MemoryPlan plan_memory(const P& program, const Shape& mesh, const Shape& coordinate,
                                 std::span<const FusedRun> runs = {}) {
  return detail::MemoryPlanner<P>(program, mesh, coordinate, runs).take();
}

}  // namespace cleave::inline v0::spmd
