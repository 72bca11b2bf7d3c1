// Runs the instructions of a program, one by one, on a rank's parts of the values. Not typed by
// placement and not instantiated per node. Eager calls and programs run the same `compute`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
#include <cleave/spmd/input_memory.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/passes/split_moves.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/run_checks.hpp>
#include <cleave/spmd/step_runner.hpp>
#include <cleave/spmd/value_slot.hpp>
#include <cleave/tensor/overlap.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::spmd::detail {

/// A program prepared to run repeatedly on a mesh, without types. @see Runner
template <class Device>
class Interpreter {
 public:
  /// @param on       must outlive this
  /// @param kernels  for runs of elementwise operations of the program; likewise
  /// @throws Error if the program has a fault, or was expanded for another number of axes or device
  template <AnyProgram P>
  Interpreter(const P& of, const MeshState& on, std::span<const FusedKernel> kernels = {})
      : mesh_(&on),
        program_(checked(of, on)),
        slots_(program_.values.size()),
        steps_(program_, on, slots_) {
    for (std::size_t i = 0; i < program_.values.size(); ++i)
      slots_[i].prepare(program_.values[i], mesh_);
    for (Instruction& instruction : program_.code)
      if (instruction.is_number) prepare_number(instruction);
    if constexpr (std::is_same_v<Device, Host>)
      if (on.is_member() && !cleave::detail::is_dry()) take_memory(kernels);
  }
  Interpreter(const Interpreter&) = delete;  // operands point into the slots

  const MeshState& mesh() const noexcept { return *mesh_; }
  index_t peak_bytes() const noexcept { return peak_; }
  int compiled_runs() const { return loops_.has_value() ? loops_->compiled() : 0; }
  std::size_t inputs() const noexcept { return std::size_t(program_.inputs); }
  std::size_t outputs() const noexcept { return program_.outputs.size(); }
  const PlacedValue& output(std::size_t k) const {
    return program_.values[std::size_t(program_.outputs[k].value)];
  }
  /// An output while `finish` is called. @see run_then
  const ValueSlot& output_slot(std::size_t k) const {
    return slots_[std::size_t(program_.outputs[k].value)];
  }

  /// Lets interpreters that do not run at the same time use one block of memory, the larger one.
  void share_block(Interpreter& other) {
    if (room_ < other.room_) block_ = other.block_, room_ = other.room_;
    else other.block_ = block_, other.room_ = room_;
  }

  /// Runs the program. @return the result of `finish()`, which is called while the outputs exist
  template <class Finish>
  auto run_then(std::span<const OperandRef> inputs, const Finish& finish) {
    Cleared cleared{*this};
    take(inputs);
    if (program_.draws > 0) state_ = take_state();
    std::size_t run = 0;
    for (int i = program_.inputs; i < int(program_.code.size());)
      i = run < runs_.size() && runs_[run].begin == i ? compute_run(run++) : execute(i);
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
        for (const Output& output : of.program_.outputs)
          of.slots_[std::size_t(output.value)].storage.reset();
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

  void take_memory(std::span<const FusedKernel> kernels) {
    runs_ = fuse_elementwise(program_);
    const MemoryPlan plan = plan_memory(program_, mesh_->extents(), mesh_->coordinate(), runs_);
    for (std::size_t v = 0; v < slots_.size(); ++v) {
      slots_[v].offset = plan.offset[v];
      slots_[v].bytes = std::size_t(plan.bytes[v]);
      slots_[v].is_copied = plan.is_copied[v] != 0;
      slots_[v].input = plan.input[v];
      writes_in_place_ = writes_in_place_ || plan.input[v] >= 0;
    }
    peak_ = plan.peak();
    room_ = plan.block;
    block_ = allocate_bytes(Device{}, std::size_t(room_));
    if (!runs_.empty()) loops_.emplace(program_.code, program_.values, runs_, kernels);
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
    require_count(std::size_t(program_.inputs), inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const OperandRef& x = inputs[i];
      const PlacedValue& value = program_.values[i];
      if (!accepts(value, x, *mesh_))
        throw_refused(i, program_.code[i].name, value, x, *mesh_, cleave::to_string(value.shape));
      OperandRef& operand = slots_[i].operand;
      operand.data = x.data;
      operand.extents = x.extents;
      operand.strides = x.strides;
      operand.storage = x.storage;
    }
    if (writes_in_place_) input_memory_.find(slots_, inputs.size());
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
      if (take_memory_of_input(slot, out[k].storage, out[k].data)) out[k].room = slot.bytes;
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
          call, op, fresh_extents(*instruction.op, program_.values, first), in.data(),
          results > 1 ? layouts.data() : &program_.values[first].layout, out.data());
    }
    for (std::size_t k = 0; k < results; ++k) {
      slots_[first + k].storage = std::move(out[k].storage);
      slots_[first + k].operand.data = out[k].data;
    }
  }

  /// Computes a run of elementwise operations. @return the instruction after it
  int compute_run(std::size_t r) {
    const FusedRun& run = runs_[r];
    const Slot& first = set_extents_of(program_.code[std::size_t(run.begin)]);
    for (FusedArray& array : loops_->arrays(r)) prepare_array(array, run, first);
    for (FusedReduction& reduction : loops_->reductions(r)) {
      Slot& slot = set_extents_of(*reduction.instruction);
      take_memory_of(slot, value_of(*reduction.instruction).dtype);
      reduction.out = static_cast<std::byte*>(slot.operand.data);
    }
    (*loops_)(r, first.extents);
    for (int n = run.begin; n < run.end; ++n) free_after(n, program_.code[std::size_t(n)]);
    return run.end;
  }

  /// Sets the extents of the result of an operation of a run.
  Slot& set_extents_of(const Instruction& instruction) {
    std::array<OperandRef, std::size_t(max_operands)> in;
    for (int k = 0; k < instruction.operands; ++k)
      in[std::size_t(k)] = slots_[std::size_t(instruction.operand[std::size_t(k)])].operand;
    Slot& slot = slot_of(instruction);
    const cleave::detail::CallContext call(*instruction.op, in.data());
    cleave::detail::RawResult y;
    y.shape = slot.shape.values.data();
    y.extents = slot.extents.values.data();
    y.strides = slot.strides.values.data();
    set_extents(call, in.data(), {}, &value_of(instruction).layout, 0, y);
    return slot;
  }

  /// Sets where the elements of an array of a run are.
  /// @param first  the first result of the run
  void prepare_array(FusedArray& array, const FusedRun& run, const Slot& first) {
    Slot& slot = slots_[std::size_t(array.value)];
    const PlacedValue& value = program_.values[std::size_t(array.value)];
    const bool is_made = array.value >= program_.code[std::size_t(run.begin)].first;
    array.strided = -1;
    array.step = array.size = 0;
    if (is_made && value.last_use < run.end) {  // one block is kept
      array.data =  // an array without elements has no place in the block
          slot.offset < 0 ? nullptr : static_cast<std::byte*>(block_.get()) + slot.offset;
      slot.extents = first.extents;
      // values that share memory with one that is reduced stay at the same elements
      if (run.rows >= 0) array.size = index_t(size_of(value.dtype));
      return;
    }
    if (is_made) {
      slot.extents = first.extents;
      slot.strides = first.strides;
      take_memory_of(slot, value.dtype);
    }
    array.data = static_cast<std::byte*>(slot.operand.data);
    if (slot.operand.strides == nullptr) return;  // a number
    array.step = array.size = index_t(size_of(value.dtype));
    if (is_made) return;
    const Shape strides = aligned_strides(slot, value.shape, first);
    if (!cleave::detail::is_contiguous(first.extents, strides))
      loops_->copy_blocks(array, value.dtype, strides);
  }

  /// The strides of an operand along the dimensions of a result: 0 where it repeats.
  static Shape aligned_strides(const Slot& slot, const Shape& shape, const Slot& result) {
    Shape strides = Shape::filled(result.extents.dims, 0);
    const int skip = strides.dims - shape.dims;
    for (int d = skip; d < strides.dims; ++d)
      if (shape[d - skip] == result.shape[d]) strides[d] = slot.operand.strides[d - skip];
    return strides;
  }

  void take_memory_of(Slot& slot, DType dtype) const {
    if (slot.offset >= 0) take_planned(slot, slot.storage, slot.operand.data);
    else if (!take_memory_of_input(slot, slot.storage, slot.operand.data))
      slot.template allocate<Device>(dtype);
  }

  /// Takes the memory that is planned for a value.
  void take_planned(const Slot& slot, std::shared_ptr<void>& storage, void*& data) const {
    data = static_cast<std::byte*>(block_.get()) + slot.offset;
    storage = std::shared_ptr<void>(block_, data);
  }

  /// Takes the memory of the input that a value replaces. @return whether that is possible
  bool take_memory_of_input(const Slot& slot, std::shared_ptr<void>& storage, void*& data) const {
    if (slot.input < 0) return false;
    const OperandRef& x = slots_[std::size_t(slot.input)].operand;
    if (!input_memory_.is_apart(x, std::size_t(slot.input))) return false;
    data = x.data;
    storage = *x.storage;
    return true;
  }

  /// Copies a value into the caller's tensor, unless it was computed there.
  void write(const Instruction& instruction) {
    const auto input = std::size_t(instruction.operand[0]);
    const OperandRef& target = slots_[input].operand;
    const Slot& value = slots_[std::size_t(instruction.operand[1])];
    const bool is_there = value.input == int(input) && value.operand.data == target.data;
    if (!is_there) require_distinct_elements(input);
    if (cleave::detail::is_dry() || !mesh_->is_member()) return;
    note_change(Device{}, *target.storage);
    if (!is_there && value.operand.data != target.data)
      strided_copy(Device{}, cleave::detail::block_of(value.operand).view,
                   cleave::detail::block_of(target).view);
  }

  void require_distinct_elements(std::size_t input) const {
    const View view = cleave::detail::block_of(slots_[input].operand).view;
    cleave::detail::require_distinct_elements("spmd::run", view, [&] {
      return context_of(program_.values[input].shape, program_.values[input].layout, *mesh_);
    });
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
  index_t room_ = 0;               ///< bytes of the block
  std::vector<FusedRun> runs_{};   ///< in order
  std::optional<FusedLoops> loops_{};
  index_t peak_ = 0;
  bool writes_in_place_ = false;
  InputMemory input_memory_{};
};

}  // namespace cleave::inline v0::spmd::detail
