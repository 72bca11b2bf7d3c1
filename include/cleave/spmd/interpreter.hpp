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
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/spmd/erased_tensor.hpp>
#include <cleave/spmd/fused_loop.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/passes/split_moves.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/run_checks.hpp>
#include <cleave/spmd/step_runner.hpp>
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
        program_(checked(of, on)),
        slots_(program_.values.size()),
        steps_(program_, on, slots_) {
    for (std::size_t i = 0; i < program_.values.size(); ++i)
      slots_[i].prepare(program_.values[i], mesh_);
    for (Instruction& instruction : program_.code)
      if (instruction.is_number) prepare_number(instruction);
    if constexpr (std::is_same_v<Device, Host>)
      if (on.is_member() && !cleave::detail::is_dry()) take_memory();
  }
  Interpreter(const Interpreter&) = delete;  // operands point into the slots

  const MeshState& mesh() const noexcept { return *mesh_; }
  index_t peak_bytes() const noexcept { return peak_; }
  std::size_t inputs() const noexcept { return std::size_t(program_.inputs); }
  std::size_t outputs() const noexcept { return program_.outputs.size(); }
  const PlacedValue& output(std::size_t k) const {
    return program_.values[std::size_t(program_.outputs[k])];
  }
  /// An output while `finish` is called. @see run_then
  const ValueSlot& output_slot(std::size_t k) const {
    return slots_[std::size_t(program_.outputs[k])];
  }

  /// Runs the program. @return the result of `finish()`, which is called while the outputs exist
  template <class Finish>
  auto run_then(std::span<const OperandRef> inputs, const Finish& finish) {
    Cleared cleared{*this};
    take(inputs);
    if (program_.draws > 0) state_ = take_state();
    const FusedRun *next = runs_.data(), *const end = next + runs_.size();
    for (int i = program_.inputs; i < int(program_.code.size());)
      i = next != end && next->begin == i ? compute_run(*next++) : execute(i);
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
      if (finished) {
        for (const int value : of.program_.outputs) of.slots_[std::size_t(value)].storage.reset();
        return;
      }
      of.steps_.abandon();
      for (Slot& slot : of.slots_) slot.storage.reset();
    }
  };

  /// The program with the steps that eager calls on the mesh take.
  template <AnyProgram P>
  static Program checked(const P& of, const MeshState& on) {
    require_fit(of, Device::name, on);
    return split_moves(of, on.extents(), on.is_member() ? cost_model(on.group()) : CostModel{});
  }

  void take_memory() {
    runs_ = fuse_elementwise(program_);
    const MemoryPlan plan = plan_memory(program_, mesh_->extents(), mesh_->coordinate(), runs_);
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
    slots_[value].operand = {{number, nullptr, nullptr, 0},
                             nullptr,
                             program_.values[value].dtype,
                             nullptr,
                             nullptr,
                             nullptr};
  }

  /// Executes an instruction, or the steps of a round. @return the instruction after it
  int execute(int i) {
    const Instruction& instruction = program_.code[std::size_t(i)];
    int end = i + 1;
    switch (instruction.kind) {
      case InstructionKind::input:
      case InstructionKind::move: return end;
      case InstructionKind::constant:
        if (instruction.is_number) return end;
        make_constant<Device>(slot_of(instruction), instruction, value_of(instruction));
        break;
      case InstructionKind::step: steps_.run(i, end = steps_.end_of_round(i)); break;
      case InstructionKind::wait: {
        const auto [first, last] = steps_.wait(instruction.round);
        for (int k = first; k < last; ++k) free_after(i, program_.code[std::size_t(k)]);
        break;
      }
      case InstructionKind::compute:
        if (instruction.operands == 0) make(instruction);
        else compute(instruction);
        break;
      case InstructionKind::write: write(instruction); break;
    }
    for (int k = i; k < end; ++k) free_after(k, program_.code[std::size_t(k)]);
    return end;
  }

  void make(const Instruction& instruction) {
    const RandomState state = state_of(instruction);
    make_part<Device>(slot_of(instruction), instruction, value_of(instruction), mesh_,
                      program_.draws > 0 ? &state : nullptr);
  }
  Slot& slot_of(const Instruction& instruction) { return slots_[std::size_t(instruction.first)]; }
  const PlacedValue& value_of(const Instruction& instruction) const {
    return program_.values[std::size_t(instruction.first)];
  }

  /// The random state of a run. Inside a region every drawn array is checked, as in eager calls.
  RandomState take_state() const {
    for (const Instruction& instruction : program_.code)
      if (instruction.kind == InstructionKind::compute && instruction.op->draws)
        cleave::detail::require_equal_replicas(
            *mesh_,
            program_
                .values[std::size_t(instruction.operands > 0 ? instruction.operand[0]
                                                             : instruction.first)]
                .layout,
            instruction.name);
    return cleave::detail::take_draws(*mesh_, "spmd::run", program_.draws);
  }

  RandomState state_of(const Instruction& instruction) const {
    return {state_.seed, state_.offset + instruction.draws};
  }

  void take(std::span<const OperandRef> inputs) {
    if (inputs.size() != std::size_t(program_.inputs))
      throw Error("spmd::run", "the program takes " + std::to_string(std::size_t(program_.inputs)) +
                                   " inputs, not " + std::to_string(inputs.size()));
    for (std::size_t i = 0; i < std::size_t(program_.inputs); ++i) {
      const OperandRef& x = inputs[i];
      const PlacedValue& value = program_.values[i];
      if (!accepts(value, x, *mesh_)) throw_refused(i, program_.code[i].name, value, x, *mesh_);
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
      if (results > 1) layouts[k] = program_.values[first + k].layout;
      if (slot.offset < 0) continue;
      take_planned(slot, out[k].storage, out[k].data);
      out[k].room = slot.bytes;
    }
    const void* const op = instruction.attributes.bytes.data();
    if (instruction.op->stencil != nullptr) {
      instruction.op->stencil->run(op, in.data(), program_.values[first].layout, out.data());
    } else {
      cleave::detail::CallContext call(*instruction.op, in.data());
      const RandomState state = state_of(instruction);
      if (program_.draws > 0) call.draws = &state;
      cleave::detail::compute<Device>(
          call, op, fresh_extents(*instruction.op, program_.values[first].shape), in.data(),
          results > 1 ? layouts.data() : &program_.values[first].layout, out.data());
    }
    for (std::size_t k = 0; k < results; ++k) {
      slots_[first + k].storage = std::move(out[k].storage);
      slots_[first + k].operand.data = out[k].data;
    }
  }

  /// Computes a run of elementwise operations. @return the instruction after it
  int compute_run(const FusedRun& run) {
    const int made = program_.code[std::size_t(run.begin)].first;
    const auto keeps_one_block = [&](int value) {
      return value >= made && program_.values[std::size_t(value)].last_use < run.end;
    };
    for (int n = run.begin; n < run.end; ++n) {
      const Instruction& instruction = program_.code[std::size_t(n)];
      std::array<OperandRef, std::size_t(max_operands)> in;
      unsigned one_block = unsigned(keeps_one_block(instruction.first)) << max_operands;
      for (int k = 0; k < instruction.operands; ++k) {
        const int x = instruction.operand[std::size_t(k)];
        in[std::size_t(k)] = slots_[std::size_t(x)].operand;
        one_block |= unsigned(keeps_one_block(x)) << k;
      }
      const PlacedValue& value = program_.values[std::size_t(instruction.first)];
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
    for (int n = run.begin; n < run.end; ++n) free_after(n, program_.code[std::size_t(n)]);
    return run.end;
  }

  /// Takes the memory that is planned for a value.
  void take_planned(const Slot& slot, std::shared_ptr<void>& storage, void*& data) const {
    data = static_cast<std::byte*>(block_.get()) + slot.offset;
    storage = std::shared_ptr<void>(block_, data);
  }

  /// Copies a value into the caller's tensor.
  void write(const Instruction& instruction) {
    const auto input = std::size_t(instruction.operand[0]);
    const OperandRef& target = slots_[input].operand;
    const View to = cleave::detail::block_of(target).view;
    cleave::detail::require_distinct_elements("spmd::run", to, [&] {
      return context_of(program_.values[input].shape, program_.values[input].layout, *mesh_);
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
    if (program_.values[std::size_t(value)].last_use == i)
      slots_[std::size_t(value)].storage.reset();
  }

  const MeshState* mesh_;
  Program program_;
  RandomState state_{};      ///< the random state of the current run
  std::vector<Slot> slots_;  ///< one per value
  StepRunner<Device> steps_;
  std::shared_ptr<void> block_{};  ///< memory of values. @see MemoryPlan
  std::vector<FusedRun> runs_{};   ///< in order
  FusedLoop loop_{};
  index_t peak_ = 0;
};

}  // namespace cleave::spmd::detail
