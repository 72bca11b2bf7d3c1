// The values of a program while it runs: their memory, and those that no operation computes.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include <cleave/core/random_state.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/engine/read_operands.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/spmd/passes/memory_plan.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/tensor/overlap.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::spmd::detail {

/// A value while the program runs. Refers to itself.
struct ValueSlot {
  std::shared_ptr<void> storage{};
  index_t offset = MemoryPlan::elsewhere;  ///< of the elements in the block
  std::size_t bytes = 0;                   ///< that are planned for them
  bool is_copied = true;                   ///< @see MemoryPlan
  int input = -1;                          ///< likewise
  Shape shape{}, extents{}, strides{};
  OperandRef operand{};  ///< refers to the members above; for an input, to the caller's tensor

  void prepare(const PlacedValue& value, const MeshState* mesh) {
    shape = value.shape;
    extents.dims = strides.dims = value.shape.dims;
    operand = {{nullptr, extents.begin(), strides.begin(), value.shape.dims},
               shape.begin(),
               value.dtype,
               &value.layout,
               mesh,
               &storage};
  }

  /// Takes dense memory for elements of the extents that are set.
  template <class Device>
  void allocate(DType dtype) {
    redistribution::Block dense = redistribution::allocate<Device>(dtype, extents);
    storage = std::move(dense.storage);
    strides = dense.view.strides;
    operand.data = dense.view.data;
  }
};

/// A 0-dimensional tensor. New in each run, because an output may share it.
template <class Device>
void make_constant(ValueSlot& slot, const Instruction& instruction, const PlacedValue& value) {
  const std::size_t bytes = size_of(value.dtype);
  slot.storage = allocate_bytes(Device{}, bytes);
  slot.operand.data = slot.storage.get();
  const void* const number = instruction.attributes.bytes.data();
  if constexpr (std::is_same_v<Device, Host>) std::memcpy(slot.storage.get(), number, bytes);
  else transfer(Host{}, Device{}, number, slot.storage.get(), bytes);
}

/// This rank's part of the array of a factory.
/// @param draws  the random state of the run, or null
template <class Device>
void make_part(ValueSlot& slot, const Instruction& instruction, const PlacedValue& value,
               const MeshState* mesh, const RandomState* draws) {
  const Box box = cleave::detail::local_box(mesh, &value.layout, slot.shape);
  slot.extents = box.extents();
  slot.allocate<Device>(value.dtype);
  if (cleave::detail::is_dry()) return;
  cleave::ArrayRef out{slot.operand.data, slot.extents.begin(), slot.strides.begin(),
                       slot.shape.dims};
  Task task;
  task.name = instruction.name;
  task.in = &slot.operand;
  task.out = &out;
  task.box = &box;
  task.draws = draws;
  instruction.op->run(instruction.attributes.bytes.data(), task);
}
/// The elements of an output, copied if they repeat: the caller may change them.
template <class Device>
redistribution::Block output_of(const OperandRef& x) {
  redistribution::Block block = cleave::detail::block_of(x);
  if (cleave::detail::has_distinct_elements(block.view)) return block;
  redistribution::Block dense =
      redistribution::allocate<Device>(block.view.dtype, block.view.extents);
  strided_copy(Device{}, block.view, dense.view);
  return dense;
}

}  // namespace cleave::inline v0::spmd::detail
