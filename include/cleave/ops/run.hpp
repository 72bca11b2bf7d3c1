// Runs calls of operations without knowing their types: operands are brought to the placements that
// the solution requires, results allocated, the kernel called.
//
// Calls on local tensors, on distributed tensors and programs all run the same `compute`.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/dtensor/redistribution_spec.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/call_context.hpp>
#include <cleave/ops/op_info.hpp>
#include <cleave/ops/operation.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/run.hpp>
#include <cleave/rules/solver.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::detail {

/// The local elements of an operand.
inline redistribution::Block block_of(const OperandRef& operand) {
  return {operand.storage != nullptr ? *operand.storage : nullptr,
          View{operand.data, operand.dtype, shape_at(operand.extents, operand.dims),
               shape_at(operand.strides, operand.dims)}};
}

/// Runs the kernel on operands that lie where it needs them and as it needs them.
inline void run_on(const CallContext& call, const void* op, const OperandRef* in,
                   const Layout* computed, RawResult* results, ArrayRef* out) {
  const OpInfo& info = call.info;
  if (is_dry() && !info.is_view) [[unlikely]]
    return;
  cleave::Task task;
  task.name = info.name;
  task.in = in;
  task.out = out;
  task.strides = results[0].strides;
  task.context = [](const void* of) { return static_cast<const CallContext*>(of)->context(); };
  task.context_of = &call;
  task.draws = call.draws;
  if (!info.needs_box) [[likely]] {
    info.run(op, task);
  } else {
    const Box box = local_box(call.mesh, computed, shape_at(results[0].shape, out[0].dims));
    const Box in_box = local_box(call.mesh, in[0].layout, shape_at(in[0].shape, in[0].dims));
    task.box = &box;
    task.in_box = &in_box;
    info.run(op, task);
  }
}

/// Runs the kernel of an elementwise operation whose operands repeat along some dimension.
inline void run_aligned(const CallContext& call, const void* op, const OperandRef* in,
                        const Layout* computed, RawResult* results, ArrayRef* out) {
  run_on(call, op, AlignedOperands(call, in, out[0]).data(), computed, results, out);
}

/// Makes a view of a dense copy of the only operand, whose own strides do not allow it.
template <class Device>
void view_copy(const CallContext& call, const void* op, const OperandRef& in,
               const Layout* computed, RawResult* results, ArrayRef* out) {
  redistribution::Block copy = redistribution::allocate<Device>(in.dtype, shape_at(in.extents, in.dims));
  strided_copy(Device{}, block_of(in).view, copy.view);
  OperandRef dense = in;
  dense.data = copy.view.data;
  dense.strides = copy.view.strides.begin();
  dense.storage = &copy.storage;
  run_on(call, op, &dense, computed, results, out);
  results[0].data = out[0].data;
  results[0].storage = std::move(copy.storage);
}

/// Makes the result of a view: the operand's elements, where its strides allow that.
template <class Device>
void compute_view(const CallContext& call, const void* op, const OperandRef* in,
                  const Layout* computed, RawResult& y) {
  ArrayRef out{nullptr, y.extents, y.strides, call.info.rule->result[0].dims};
  y.storage = *in[0].storage;
  run_on(call, op, in, computed, &y, &out);
  y.data = out.data;
  if (out.data == nullptr && block_of(in[0]).view.size() > 0)
    view_copy<Device>(call, op, in[0], computed, &y, &out);
}

/// Allocates the results and runs the kernel.
///
/// @param op        the operation, with its attributes
/// @param fresh     extents of the factors that only results have, in the order of the result's
///                  dimensions
/// @param in        the operands, after redistribution
/// @param computed  the results' layouts, or null for local tensors
/// @param results   as many as the rule has; written
template <class Device>
void compute(const CallContext& call, const void* op, const Shape& fresh, const OperandRef* in,
             const Layout* computed, RawResult* results) {
  const OpInfo& info = call.info;
  const Rule& rule = *info.rule;
  if (rule.kept != 0 && call.mesh != nullptr && call.mesh->is_member())
    call.require_whole_groups(fresh, in, computed);
  if (info.is_view) [[unlikely]] {
    set_extents(call, in, fresh, computed, 0, results[0]);
    return compute_view<Device>(call, op, in, computed, results[0]);
  }
  std::array<ArrayRef, std::size_t(max_results)> out;
  for (int k = 0; k < rule.results; ++k) {
    RawResult& y = results[k];
    const int dims = rule.result[std::size_t(k)].dims;
    set_extents(call, in, fresh, computed, k, y);
    y.storage = allocate_bytes(
        Device{}, checked_bytes(y.extents, dims, size_of(info.dtype[std::size_t(k)])));
    y.data = y.storage.get();
    out[std::size_t(k)] = {y.data, y.extents, y.strides, dims};
  }
  if (are_aligned(call)) [[likely]] run_on(call, op, in, computed, results, out.data());
  else run_aligned(call, op, in, computed, results, out.data());
}

/// A call on distributed operands as constants of its types.
struct PlacedCall {
  const OpInfo* info = nullptr;
  const Solution* solution = nullptr;
  unsigned moves = 0;  ///< bit i: operand i lies elsewhere than the kernel needs it
  bool result_moves = false;
  std::array<const RedistributionSpec*, std::size_t(max_operands)>
      spec{};  ///< of the operands that move
  const RedistributionSpec* result_spec = nullptr;
};

/// Local elements brought from one layout to another.
/// @collective every rank of the mesh
template <class Device>
redistribution::Block moved(const Plan* plan, const Layout& from, const Layout& to,
                            redistribution::Block block, const MeshState& mesh, const Shape& shape,
                            const char* name) {
  return redistribution::run<Device>(plan, from, to, std::move(block), {mesh, shape, name});
}

/// OperandRef i, at the end of its redistribution.
template <class Device>
void move_operand(const CallContext& call, const PlacedCall& placed, int i, const Layout& target,
                  OperandRef& operand, redistribution::Block& block) {
  const RedistributionSpec* spec = placed.spec[std::size_t(i)];
  const Plan* plan = spec != nullptr && target == spec->target ? spec->plan : nullptr;
  block = moved<Device>(plan, *operand.layout, target, block_of(operand), *call.mesh,
                        shape_at(operand.shape, operand.dims), call.info.name);
  operand.data = block.view.data;
  operand.extents = block.view.extents.begin();
  operand.strides = block.view.strides.begin();
  operand.storage = &block.storage;
  operand.layout = &placed.solution->required[std::size_t(i)];
}

/// Calls f with the operands where the kernel needs them.
/// @collective every rank of the mesh, if an operand moves
/// @throws Error if one repeats a dimension that it shards
template <class Device, class F>
void with_moved_operands(const CallContext& call, const PlacedCall& placed,
                         const OperandRef* in, const F& f) {
  std::array<OperandRef, std::size_t(max_operands)> there;
  std::array<redistribution::Block, std::size_t(max_operands)> blocks;
  for (int i = 0; i < call.info.rule->operands; ++i) {
    there[std::size_t(i)] = in[i];
    if (in[i].mesh == nullptr) continue;
    const Layout target = call.needed(i, placed.solution->required[std::size_t(i)]);
    if (!(target == *in[i].layout))
      move_operand<Device>(call, placed, i, target, there[std::size_t(i)], blocks[std::size_t(i)]);
  }
  f(static_cast<const OperandRef*>(there.data()));
}

/// The same; operands that the types leave where they are cost nothing.
template <class Device, class F>
void with_operands(const CallContext& call, const PlacedCall& placed, const OperandRef* in,
                   const F& f) {
  if (placed.moves != 0) return with_moved_operands<Device>(call, placed, in, f);
  if (call.any_repeats) [[unlikely]] call.require_repeatable(placed.solution->required.data());
  f(in);
}

/// Brings the first result to its placements.
/// @collective every rank of the mesh
template <class Device>
void move_result(const CallContext& call, const PlacedCall& placed, RawResult& y) {
  const int dims = call.info.rule->result[0].dims;
  const RedistributionSpec& spec = *placed.result_spec;
  redistribution::Block block = moved<Device>(
      spec.plan, spec.source, spec.target,
      {std::move(y.storage),
       View{y.data, call.info.dtype[0], shape_at(y.extents, dims), shape_at(y.strides, dims)}},
      *call.mesh, shape_at(y.shape, dims), call.info.name);
  y.storage = std::move(block.storage);
  y.data = block.view.data;
  for (int d = 0; d < dims; ++d) {
    y.extents[d] = block.view.extents[d];
    y.strides[d] = block.view.strides[d];
  }
}

/// Runs a call on distributed operands.
///
/// @param fresh    extents of the factors that only results have
/// @param results  as many as the rule has; written
/// @collective     every rank of the mesh, if an operand or a result moves
template <class Device>
void run_placed(const PlacedCall& placed, const void* op, const Shape& fresh, const OperandRef* in,
                RawResult* results) {
  const CallContext call(*placed.info, in);
  with_operands<Device>(call, placed, in, [&](const OperandRef* there) {
    compute<Device>(call, op, fresh, there, placed.solution->computed.data(), results);
  });
  if (placed.result_moves) [[unlikely]] move_result<Device>(call, placed, results[0]);
}

/// Runs a call on local tensors. @see run_placed
template <class Device>
void run_local(const OpInfo& info, const void* op, const Shape& fresh, const OperandRef* in,
               RawResult* results) {
  compute<Device>(CallContext(info, in), op, fresh, in, nullptr, results);
}

}  // namespace cleave::detail
