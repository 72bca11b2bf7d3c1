// Runs operations that write their result to an existing tensor, which may be an operand.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <cleave/ops/engine/run_op.hpp>
#include <cleave/tensor/overlap.hpp>

namespace cleave::inline v0::detail {

inline ConstView view_of(const ArrayRef& array, DType dtype) {
  return {array.data, dtype, shape_at(array.extents, array.dims),
          shape_at(array.strides, array.dims)};
}

/// The checks of a call that writes to `target`.
struct TargetCheck {
  const CallContext& call;
  const OperandRef& target;

  [[noreturn]] void fail(const std::string& message) const {
    ErrorContext context = call.context();
    context.shapes += " into " + to_string(shape_at(target.shape, target.dims));
    if (target.layout != nullptr) context.placements += " into " + to_string(*target.layout);
    throw Error(call.info.name, message, std::move(context));
  }

  /// @param shape    global extents of the result
  /// @param extents  local extents of the result
  void require_extents(const index_t* shape, const index_t* extents) const {
    if (target.mesh != nullptr && !(*target.mesh == *call.mesh))
      fail("the target and the operands are on different meshes");
    if (target.mesh != nullptr && !target.mesh->is_member()) return;  // does not know the extents
    for (int d = 0; d < target.dims; ++d)
      if (shape[d] != target.shape[d] || extents[d] != target.extents[d])
        fail("extents differ: the result has " + to_string(shape_at(shape, target.dims)) +
             ", the target has " + to_string(shape_at(target.shape, target.dims)));
  }

  /// @param in  operands, aligned with the result if the operation is elementwise
  void require_no_overlap(const OperandRef* in) const {
    const ConstView to = view_of(target, target.dtype);
    if (!has_distinct_elements(to)) fail("the target repeats elements; clone it first");
    if (!call.info.is_elementwise && !to.contiguous())
      fail("the target must be contiguous; write to another tensor and copy it");
    for (int i = 0; i < call.info.rule->operands; ++i) {
      if (in[i].storage == nullptr) continue;
      const ConstView from = view_of(in[i], in[i].dtype);
      if (call.info.is_elementwise && same_elements(to, from)) continue;
      if (overlap(to, from))
        fail("operand " + std::to_string(i) +
             " shares elements with the target in another order; clone it first");
    }
  }
};

/// Runs the kernel with the target's elements as the result. @see compute
template <class Device>
void compute_into(const CallContext& call, const void* op, const Shape& fresh, const OperandRef* in,
                  const Layout* computed, const OperandRef& target) {
  std::array<std::array<index_t, std::size_t(max_dims)>, 3> storage;
  RawResult y{nullptr, target.data, storage[0].data(), storage[1].data(), storage[2].data()};
  set_extents(call, in, fresh, computed, 0, y);
  const TargetCheck check{call, target};
  check.require_extents(y.shape, y.extents);
  if (call.info.read_map != nullptr && call.mesh != nullptr) {
    check.require_no_overlap(in);
    const ReadOperands<Device> there(call, op, in, computed, y.shape);
    note_change(Device{}, *target.storage);
    ArrayRef out = target;
    return run_on(call, op, there.data(), computed, &y, &out, there.boxes());
  }
  const auto run = [&](const OperandRef* aligned) {
    check.require_no_overlap(aligned);
    note_change(Device{}, *target.storage);
    ArrayRef out = target;
    run_on(call, op, aligned, computed, &y, &out);
    if (call.info.scans >= 0 && call.mesh != nullptr)
      scan_across<Device>(call, op, *computed, y.shape, out);
  };
  if (are_aligned(call)) run(in);
  else run(AlignedOperands(call, in, target).data());
}

/// Runs a call on local tensors that writes to `target`.
template <class Device>
void run_local_into(const OpInfo& info, const void* op, const Shape& fresh, const OperandRef* in,
                    const OperandRef& target) {
  compute_into<Device>(CallContext(info, in), op, fresh, in, nullptr, target);
}

/// Runs a call on distributed operands that writes to a tensor with the placements of the result.
/// @collective every rank of the mesh, if an operand is redistributed
template <class Device>
void run_placed_into(const PlacedCall& placed, const void* op, const Shape& fresh,
                     const OperandRef* in, const OperandRef& target) {
  const CallContext call(*placed.info, in);
  const PlacedOperands<Device> there(call, placed, in);
  compute_into<Device>(call, op, fresh, there.data(), placed.solution->computed.data(), target);
}

#if CLEAVE_COMPILED
extern template void run_local_into<Host>(const OpInfo&, const void*, const Shape&,
                                          const OperandRef*, const OperandRef&);
extern template void run_placed_into<Host>(const PlacedCall&, const void*, const Shape&,
                                           const OperandRef*, const OperandRef&);
#endif

}  // namespace cleave::inline v0::detail
