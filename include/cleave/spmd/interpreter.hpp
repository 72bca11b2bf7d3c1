// Runs the instructions of a program, one by one, on a rank's parts of the values. Not typed by
// placement and not instantiated per node. Eager calls and programs run the same `compute`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/manual_seed.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/run_op.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/spmd/erased_tensor.hpp>
#include <cleave/spmd/fused_loop.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/run_checks.hpp>
#include <cleave/spmd/value_slot.hpp>
#include <cleave/tensor/overlap.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::spmd::detail {

/// A program prepared to run repeatedly on a mesh, without types. @see Runner
template <class Device>
class Interpreter {
 public:
  /// @param on  must outlive this
  /// @throws Error if the program has a fault, or was expanded for another number of axes or device
  template <AnyProgram P>
  Interpreter(const P& of, const MeshState& on)
      : mesh_(&on),
        code_(of.code.begin(), of.code.end()),
        values_(of.values.begin(), of.values.end()),
        outputs_(of.outputs.begin(), of.outputs.end()),
        inputs_(std::size_t(of.inputs)),
        draws_(of.draws),
        slots_(values_.size()) {
    require_fit(of, Device::name, *mesh_);
    for (std::size_t i = 0; i < values_.size(); ++i) slots_[i].prepare(values_[i], mesh_);
    for (Instruction& instruction : code_)
      if (instruction.is_number) prepare_number(instruction);
      else if (instruction.kind == InstructionKind::move)
        plans_.push_back(plan_of_move(instruction));
    if constexpr (std::is_same_v<Device, Host>)
      if (on.is_member() && !cleave::detail::is_dry()) take_memory(of);
  }
  Interpreter(const Interpreter&) = delete;  // operands point into the slots

  const MeshState& mesh() const noexcept { return *mesh_; }
  index_t peak_bytes() const noexcept { return peak_; }
  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t outputs() const noexcept { return outputs_.size(); }
  const PlacedValue& output(std::size_t k) const { return values_[std::size_t(outputs_[k])]; }
  /// An output while `finish` is called. @see run_then
  const ValueSlot& output_slot(std::size_t k) const { return slots_[std::size_t(outputs_[k])]; }

  /// Runs the program. @return the result of `finish()`, which is called while the outputs exist
  template <class Finish>
  auto run_then(std::span<const OperandRef> inputs, const Finish& finish) {
    Cleared cleared{*this};
    take(inputs);
    if (draws_ > 0) state_ = take_state();
    const Plan* plan = plans_.data();
    const FusedRun* next = runs_.data();
    for (std::size_t i = inputs_; i < code_.size(); ++i) {
      const Instruction& instruction = code_[i];
      if (next != runs_.data() + runs_.size() && next->begin == int(i)) {
        i = std::size_t(compute_run(*next++)) - 1;
        continue;
      }
      if (instruction.kind == InstructionKind::compute && instruction.operands == 0)
        make(instruction);
      else if (instruction.kind == InstructionKind::compute) compute(instruction);
      else if (instruction.kind == InstructionKind::move) move(instruction, *plan++);
      else if (instruction.kind == InstructionKind::write) write(instruction);
      else if (instruction.is_number) continue;
      else make_constant<Device>(slot_of(instruction), instruction, value_of(instruction));
      free_after(int(i), instruction);
    }
    cleared.finished = true;
    return finish();
  }

 private:
  using Slot = ValueSlot;

  /// Frees the values that a run leaves behind: the outputs, or all values after an exception.
  struct Cleared {
    Interpreter& of;
    bool finished = false;

    ~Cleared() {
      if (finished)
        for (const int value : of.outputs_) of.slots_[std::size_t(value)].storage.reset();
      else
        for (Slot& slot : of.slots_) slot.storage.reset();
    }
  };

  template <AnyProgram P>
  void take_memory(const P& of) {
    runs_ = fuse_elementwise(of);
    const MemoryPlan plan = plan_memory(of, mesh_->extents(), mesh_->coordinate(), runs_);
    for (std::size_t v = 0; v < slots_.size(); ++v) {
      slots_[v].offset = plan.offset[v];
      slots_[v].bytes = std::size_t(plan.bytes[v]);
    }
    peak_ = plan.peak();
    block_ = allocate_bytes(Device{}, std::size_t(plan.block));
  }

  void prepare_number(Instruction& instruction) {
    const auto value = std::size_t(instruction.first);
    void* const number = instruction.attributes.bytes.data();
    slots_[value].operand = {
        {number, nullptr, nullptr, 0}, nullptr, values_[value].dtype, nullptr, nullptr, nullptr};
  }

  /// The same plan as in an eager call.
  Plan plan_of_move(const Instruction& move) const {
    if (!mesh_->is_member()) return {};
    const PlacedValue& from = values_[std::size_t(move.operand[0])];
    const PlacedValue& to = values_[std::size_t(move.first)];
    const Plan plain = make_plan(from.layout, to.layout, from.shape.dims);
    const bool decided = !sizes_decide(from.layout, to.layout, from.shape.dims);
    return redistribution::choose_for<Device>(decided ? &plain : nullptr, from.layout, to.layout,
                                              from.dtype, {*mesh_, from.shape, move.name});
  }

  void make(const Instruction& instruction) {
    const RandomState state = state_of(instruction);
    make_part<Device>(slot_of(instruction), instruction, value_of(instruction), mesh_,
                      draws_ > 0 ? &state : nullptr);
  }
  Slot& slot_of(const Instruction& instruction) { return slots_[std::size_t(instruction.first)]; }
  const PlacedValue& value_of(const Instruction& instruction) const {
    return values_[std::size_t(instruction.first)];
  }

  /// The random state of a run. Inside a region every drawn array is checked, as in eager calls.
  RandomState take_state() const {
    for (const Instruction& instruction : code_)
      if (instruction.kind == InstructionKind::compute && instruction.op->draws)
        cleave::detail::require_equal_replicas(
            *mesh_,
            values_[std::size_t(instruction.operands > 0 ? instruction.operand[0]
                                                         : instruction.first)]
                .layout,
            instruction.name);
    return cleave::detail::take_draws(*mesh_, "spmd::run", draws_);
  }

  RandomState state_of(const Instruction& instruction) const {
    return {state_.seed, state_.offset + instruction.draws};
  }

  void take(std::span<const OperandRef> inputs) {
    if (inputs.size() != inputs_)
      throw Error("spmd::run", "the program takes " + std::to_string(inputs_) + " inputs, not " +
                                   std::to_string(inputs.size()));
    for (std::size_t i = 0; i < inputs_; ++i) {
      const OperandRef& x = inputs[i];
      const PlacedValue& value = values_[i];
      if (!accepts(value, x, *mesh_)) throw_refused(i, code_[i].name, value, x, *mesh_);
      OperandRef& operand = slots_[i].operand;
      operand.data = x.data;
      operand.extents = x.extents;
      operand.strides = x.strides;
      operand.storage = x.storage;
    }
  }

  void compute(const Instruction& instruction) {
    std::array<OperandRef, std::size_t(max_operands)> in;
    for (int k = 0; k < instruction.operands; ++k)
      in[std::size_t(k)] = slots_[std::size_t(instruction.operand[std::size_t(k)])].operand;
    std::array<cleave::detail::RawResult, std::size_t(max_results)> out;
    std::array<Layout, std::size_t(max_results)> layouts;
    const auto first = std::size_t(instruction.first);
    const auto results = std::size_t(instruction.results);
    for (std::size_t k = 0; k < results; ++k) {
      Slot& slot = slots_[first + k];
      out[k].shape = slot.shape.values.data();
      out[k].extents = slot.extents.values.data();
      out[k].strides = slot.strides.values.data();
      if (results > 1) layouts[k] = values_[first + k].layout;
      if (slot.offset < 0) continue;
      take_planned(slot, out[k].storage, out[k].data);
      out[k].room = slot.bytes;
    }
    const void* const op = instruction.attributes.bytes.data();
    if (instruction.op->stencil != nullptr) {
      instruction.op->stencil->run(op, in.data(), values_[first].layout, out.data());
    } else {
      cleave::detail::CallContext call(*instruction.op, in.data());
      const RandomState state = state_of(instruction);
      if (draws_ > 0) call.draws = &state;
      cleave::detail::compute<Device>(
          call, op, fresh_extents(*instruction.op, values_[first].shape), in.data(),
          results > 1 ? layouts.data() : &values_[first].layout, out.data());
    }
    for (std::size_t k = 0; k < results; ++k) {
      slots_[first + k].storage = std::move(out[k].storage);
      slots_[first + k].operand.data = out[k].data;
    }
  }

  /// Computes a run of elementwise operations. @return the instruction after it
  int compute_run(const FusedRun& run) {
    const int made = code_[std::size_t(run.begin)].first;
    const auto keeps_one_block = [&](int value) {
      return value >= made && values_[std::size_t(value)].last_use < run.end;
    };
    for (int n = run.begin; n < run.end; ++n) {
      const Instruction& instruction = code_[std::size_t(n)];
      std::array<OperandRef, std::size_t(max_operands)> in;
      unsigned one_block = unsigned(keeps_one_block(instruction.first)) << max_operands;
      for (int k = 0; k < instruction.operands; ++k) {
        const int x = instruction.operand[std::size_t(k)];
        in[std::size_t(k)] = slots_[std::size_t(x)].operand;
        one_block |= unsigned(keeps_one_block(x)) << k;
      }
      const PlacedValue& value = values_[std::size_t(instruction.first)];
      Slot& slot = slots_[std::size_t(instruction.first)];
      const cleave::detail::CallContext call(*instruction.op, in.data());
      cleave::detail::RawResult y;
      y.shape = slot.shape.values.data();
      y.extents = slot.extents.values.data();
      y.strides = slot.strides.values.data();
      set_extents(call, in.data(), {}, &value.layout, 0, y);
      if (slot.offset >= 0) take_planned(slot, slot.storage, slot.operand.data);
      else slot.template allocate<Device>(value.dtype);
      if (n == run.begin) loop_.begin(slot.extents, run.end - run.begin);
      loop_.add(call, instruction.attributes.bytes.data(), in.data(), one_block, slot.operand.data,
                value.dtype);
    }
    loop_.run();
    for (int n = run.begin; n < run.end; ++n) free_after(n, code_[std::size_t(n)]);
    return run.end;
  }

  /// Takes the memory that is planned for a value.
  void take_planned(const Slot& slot, std::shared_ptr<void>& storage, void*& data) const {
    data = static_cast<std::byte*>(block_.get()) + slot.offset;
    storage = std::shared_ptr<void>(block_, data);
  }

  void move(const Instruction& instruction, const Plan& plan) {
    const OperandRef& from = slots_[std::size_t(instruction.operand[0])].operand;
    Slot& to = slots_[std::size_t(instruction.first)];
    redistribution::Block block = cleave::detail::block_of(from);
    if (mesh_->is_member())
      block = redistribution::run_plan<Device>(plan, std::move(block),
                                               {*mesh_, to.shape, instruction.name});
    if (instruction.unalias && block.view.data == from.data && block.view.size() != 0) {
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

  /// Copies a value into the caller's tensor.
  void write(const Instruction& instruction) {
    const auto input = std::size_t(instruction.operand[0]);
    const OperandRef& target = slots_[input].operand;
    const View to = cleave::detail::block_of(target).view;
    cleave::detail::require_distinct_elements("spmd::run", to, [&] {
      return context_of(values_[input].shape, values_[input].layout, *mesh_);
    });
    if (cleave::detail::is_dry() || !mesh_->is_member()) return;
    note_change(Device{}, *target.storage);
    strided_copy(Device{},
                 cleave::detail::block_of(slots_[std::size_t(instruction.operand[1])].operand).view,
                 to);
  }

  void free_after(int i, const Instruction& instruction) {
    for (int k = 0; k < instruction.operands; ++k)
      free_if_last(i, instruction.operand[std::size_t(k)]);
    for (int k = 0; k < instruction.results; ++k) free_if_last(i, instruction.first + k);
  }
  void free_if_last(int i, int value) {
    if (values_[std::size_t(value)].last_use == i) slots_[std::size_t(value)].storage.reset();
  }

  const MeshState* mesh_;
  std::vector<Instruction> code_;
  std::vector<PlacedValue> values_;
  std::vector<int> outputs_;
  std::size_t inputs_;
  std::uint64_t draws_;            ///< the number of random draws per run
  RandomState state_{};            ///< the random state of the current run
  std::vector<Slot> slots_;        ///< one per value
  std::shared_ptr<void> block_{};  ///< memory of values. @see MemoryPlan
  std::vector<FusedRun> runs_{};   ///< in order
  FusedLoop loop_{};
  index_t peak_ = 0;
  std::vector<Plan> plans_{};  ///< of the moves, in order
};

}  // namespace cleave::spmd::detail
