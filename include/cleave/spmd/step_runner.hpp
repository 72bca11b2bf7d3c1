// Runs the steps of a program: alone, several as one round, or a round that runs while the rank
// computes something else.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/value_slot.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::spmd::detail {

/// What a step yields.
struct Arrived {
  redistribution::Block block{};

  const std::shared_ptr<void>& storage() const { return block.storage; }
};

template <class Device>
class StepRunner {
 public:
  /// @param of    a program without moves, which must outlive this
  /// @param slot  of its values, likewise
  StepRunner(const Program& of, const MeshState& on, std::vector<ValueSlot>& slots)
      : program_(&of),
        mesh_(&on),
        slots_(&slots),
        begin_(std::size_t(round_count(of))),
        started_(begin_.size()) {
    plans_.resize(of.code.size());
    for (std::size_t i = of.code.size(); i-- > 0;) {
      const Instruction& step = of.code[i];
      if (step.kind != InstructionKind::step) continue;
      plans_[i] = std::make_unique<Plan>();
      plans_[i]->append(step_of(of, step));
      if (step.round >= 0) begin_[std::size_t(step.round)] = int(i);
    }
  }

  /// The instruction after the round of a step.
  int end_of_round(int begin) const {
    const int round = code(begin).round;
    int end = begin + 1;
    while (round >= 0 && end < int(program_->code.size()) &&
           code(end).kind == InstructionKind::step && code(end).round == round)
      ++end;
    return end;
  }

  /// Runs, or starts, the steps [begin, end).
  /// @collective every rank of the mesh
  void run(int begin, int end) {
    if (!mesh_->is_member()) return pass(begin, end);
    if (code(begin).is_started) return start(begin, end);
    if (end == begin + 1) {
      const Instruction& step = code(begin);
      redistribution::Context context{*mesh_, slot_of(step).shape, step.name};
      context.reuse = is_unused_after(step, begin);
      return take(step, redistribution::run_plan<Device>(
                            *plans_[std::size_t(begin)],
                            cleave::detail::block_of(source_of(step).operand), context));
    }
    std::vector<redistribution::ListEntry> entries = entries_of(begin, end, *mesh_);
    redistribution::run_all<Device>(entries);
    for (int i = begin; i < end; ++i)
      take(code(i), std::move(entries[std::size_t(i - begin)].block));
  }

  /// Waits for the steps of a round. @return the first of them, and the instruction after the last
  std::pair<int, int> wait(int round) {
    const int begin = begin_[std::size_t(round)], end = end_of_round(begin);
    std::optional<Async<Results>>& started = started_[std::size_t(round)];
    if (started) {
      Results arrived = std::move(*started).wait();
      started.reset();
      for (int i = begin; i < end; ++i)
        take(code(i), std::move(arrived[std::size_t(i - begin)].block));
    }
    return {begin, end};
  }

  /// Drops what has been started, after an exception.
  void abandon() noexcept {
    for (std::optional<Async<Results>>& started : started_) started.reset();
  }

 private:
  using Results = std::vector<Arrived>;

  const Instruction& code(int i) const { return program_->code[std::size_t(i)]; }
  ValueSlot& slot_of(const Instruction& i) const { return (*slots_)[std::size_t(i.first)]; }
  ValueSlot& source_of(const Instruction& i) const { return (*slots_)[std::size_t(i.operand[0])]; }

  /// On a rank outside of the mesh.
  void pass(int begin, int end) {
    for (int i = begin; i < end; ++i)
      take(code(i), cleave::detail::block_of(source_of(code(i)).operand));
  }

  /// Whether the step may overwrite its operand: memory of a step before it, which nothing else
  /// reads now or later.
  bool is_unused_after(const Instruction& step, int at) const {
    const auto value = std::size_t(step.operand[0]);
    const ValueSlot& source = source_of(step);
    return source.storage != nullptr && source.offset < 0 && source.storage.use_count() == 1 &&
           program_->values[value].last_use == at;
  }

  std::vector<redistribution::ListEntry> entries_of(int begin, int end,
                                                    const MeshState& mesh) const {
    std::vector<redistribution::ListEntry> entries;
    entries.reserve(std::size_t(end - begin));
    for (int i = begin; i < end; ++i) {
      const Instruction& step = code(i);
      entries.push_back({plans_[std::size_t(i)].get(),
                         program_->values[std::size_t(step.operand[0])].layout,
                         program_->values[std::size_t(step.first)].layout,
                         cleave::detail::block_of(source_of(step).operand),
                         {mesh, slot_of(step).shape, step.name},
                         true});
    }
    return entries;
  }

  void start(int begin, int end) {
    const std::shared_ptr<const MeshState>& apart = mesh_->duplicate();
    started_[std::size_t(code(begin).round)].emplace(start_async(
        Device{}, mesh_->group(), [apart, entries = entries_of(begin, end, *apart)]() mutable {
          redistribution::run_all<Device>(entries);
          Results arrived;
          for (redistribution::ListEntry& entry : entries)
            arrived.push_back({std::move(entry.block)});
          return arrived;
        }));
  }

  /// Makes a block the result of a step.
  void take(const Instruction& step, redistribution::Block block) {
    ValueSlot& to = slot_of(step);
    if (step.unalias && to.is_copied && block.view.data == source_of(step).operand.data &&
        block.view.size() != 0) {
      redistribution::Block copy =
          redistribution::allocate<Device>(block.view.dtype, block.view.extents);
      strided_copy(Device{}, block.view, copy.view);
      block = std::move(copy);
    }
    to.storage = std::move(block.storage);
    to.extents = block.view.extents;
    to.strides = block.view.strides;
    to.operand.data = block.view.data;
  }

  const Program* program_;
  const MeshState* mesh_;
  std::vector<ValueSlot>* slots_;
  std::vector<std::unique_ptr<Plan>> plans_{};          ///< of the steps
  std::vector<int> begin_;                              ///< by round: its first step
  std::vector<std::optional<Async<Results>>> started_;  ///< by round
};

}  // namespace cleave::inline v0::spmd::detail
