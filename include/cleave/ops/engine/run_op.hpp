// Runs type-erased calls of operations: redistributes operands to the placements that the solution
// requires, allocates the results and calls the kernel.
//
// Calls on local tensors, on distributed tensors and programs all use the same `compute`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/dtensor/redistribution_spec.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/ops/engine/op_info.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/engine/read_operands.hpp>
#include <cleave/ops/engine/scan_across.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/redistribute/regroup.hpp>
#include <cleave/rules/solver.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::detail {

/// Calls the kernel with the global indices of the first result, and of the first operand or of
/// what was read of all.
[[gnu::noinline]] inline void run_in_box(const CallContext& call, const void* op,
                                         cleave::Task& task, const Layout* computed,
                                         const index_t* shape, const Box* read) {
  const OperandRef& in = task.in[0];
  const Box box = local_box(call.mesh, computed, shape_at(shape, task.out[0].dims));
  const Box in_box = local_box(call.mesh, in.layout, shape_at(in.shape, in.dims));
  task.box = &box;
  task.in_box = read != nullptr ? read : &in_box;
  call.info.run(op, task);
}

/// The same with the extents of all local operands, of a kernel that may read boxes of them.
[[gnu::noinline]] inline void run_in_boxes(const CallContext& call, const void* op,
                                           cleave::Task& task, const index_t* shape) {
  std::array<Box, std::size_t(max_operands)> whole;
  for (int i = 0; i < task.operands; ++i)
    whole[std::size_t(i)] = Box::of(shape_at(task.in[i].shape, task.in[i].dims));
  run_in_box(call, op, task, nullptr, shape, whole.data());
}

/// Runs the kernel on operands that have the required placements and alignment.
/// @param read  the boxes of operands that were read, or null
inline void run_on(const CallContext& call, const void* op, const OperandRef* in,
                   const Layout* computed, RawResult* results, ArrayRef* out,
                   const Box* read = nullptr) {
  const OpInfo& info = call.info;
  if (is_dry() && !info.is_view) [[unlikely]]
    return;
  cleave::Task task;
  task.name = info.name;
  task.in = in;
  task.operands = info.rule->operands;
  task.out = out;
  task.strides = results[0].strides;
  task.draws = call.draws;
  if (info.needs_box && read == nullptr && info.read_map != nullptr && task.operands > 1)
    return run_in_boxes(call, op, task, results[0].shape);
  if (info.needs_box) [[unlikely]]
    return run_in_box(call, op, task, computed, results[0].shape, read);
  info.run(op, task);
}

/// Makes a view of a contiguous copy of the only operand, whose strides do not allow a view.
template <class Device>
void view_copy(const CallContext& call, const void* op, const OperandRef& in,
               const Layout* computed, RawResult* results, ArrayRef* out, const Box* read) {
  redistribution::Block copy =
      redistribution::allocate<Device>(in.dtype, shape_at(in.extents, in.dims));
  strided_copy(Device{}, block_of(in).view, copy.view);
  OperandRef dense = in;
  dense.data = copy.view.data;
  dense.strides = copy.view.strides.begin();
  dense.storage = &copy.storage;
  run_on(call, op, &dense, computed, results, out, read);
  results[0].data = out[0].data;
  results[0].storage = std::move(copy.storage);
}

/// @throws Error if a view has elements outside of the operand, of which it is
[[gnu::noinline]] inline void require_within(const CallContext& call, const OperandRef& x,
                                             const RawResult& y) {
  const auto range = [](const void* data, const index_t* extents, const index_t* strides, int dims,
                        index_t size) {
    auto least = reinterpret_cast<std::uintptr_t>(data), most = least;
    for (int d = 0; d < dims; ++d) {
      const index_t way = (extents[d] - 1) * strides[d] * size;
      (way < 0 ? least : most) += std::uintptr_t(way);
    }
    return std::pair{least, most};
  };
  const int dims = call.info.rule->result[0].dims;
  if (y.data == nullptr || shape_at(y.extents, dims).product() == 0) return;
  const auto size = index_t(size_of(x.dtype));
  const auto [first, last] = range(x.data, x.extents, x.strides, x.dims, size);
  const auto [least, most] = range(y.data, y.extents, y.strides, dims, size);
  if (shape_at(x.extents, x.dims).product() == 0 || least < first || most > last)
    throw Error(call.info.name,
                "the view has elements beyond those that the rank has read: the read_map of the "
                "operation is too short",
                call.context());
}

/// Makes the result of a view operation: a view of the operand where its strides allow that.
template <class Device>
[[gnu::noinline]] void compute_view(const CallContext& call, const void* op, const OperandRef* in,
                                    const Layout* computed, RawResult& y, const Box* read) {
  ArrayRef out{nullptr, y.extents, y.strides, call.info.rule->result[0].dims};
  y.storage = *in[0].storage;
  run_on(call, op, in, computed, &y, &out, read);
  y.data = out.data;
  if (read != nullptr) require_within(call, in[0], y);
  if (out.data == nullptr && block_of(in[0]).view.size() > 0)
    view_copy<Device>(call, op, in[0], computed, &y, &out, read);
}

/// How ranks exchange the elements of an operation that regroups dimensions; nothing if shards
/// stay.
inline std::optional<redistribution::Regroup> regroup_of(const CallContext& call,
                                                         const OperandRef* in,
                                                         const Layout* computed,
                                                         const index_t* shape) {
  if (call.info.regrouping.result == 0 || call.mesh == nullptr || !call.mesh->is_member())
    return {};
  const redistribution::Regroup how{{*in[0].layout},
                                    {*computed},
                                    shape_at(in[0].shape, in[0].dims),
                                    shape_at(shape, call.info.rule->result[0].dims),
                                    call.info.regrouping};
  if (how.stays(call.mesh->extents())) return {};
  return how.narrowed();
}

/// @param result  dense
template <class Device>
void regroup_into(const CallContext& call, const redistribution::Regroup& how,
                  const OperandRef& operand, const View& result) {
  redistribution::Block source = block_of(operand);
  if (!source.view.contiguous()) {
    redistribution::Block copy =
        redistribution::allocate<Device>(operand.dtype, source.view.extents);
    strided_copy(Device{}, source.view, copy.view);
    source = std::move(copy);
  }
  redistribution::regroup(call.info.name, how, source.view, result, *call.mesh);
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
  for (int k = 0; k < rule.results; ++k) set_extents(call, in, fresh, computed, k, results[k]);
  if (const auto how = regroup_of(call, in, computed, results[0].shape)) [[unlikely]] {
    redistribution::Block block = redistribution::allocate<Device>(
        info.dtype[0], shape_at(results[0].extents, rule.result[0].dims));
    regroup_into<Device>(call, *how, in[0], block.view);
    results[0].data = block.view.data;
    results[0].storage = std::move(block.storage);
    return;
  }
  std::optional<ReadOperands<Device>> there;
  if (info.read_map != nullptr && (call.mesh != nullptr || extends_operand(call, op))) [[unlikely]]
    in = there.emplace(call, op, in, computed, results[0].shape).data();
  const Box* const read = there.has_value() ? there->boxes() : nullptr;
  if (info.is_view) [[unlikely]]
    return compute_view<Device>(call, op, in, computed, results[0], read);
  std::array<ArrayRef, std::size_t(max_results)> out;
  for (int k = 0; k < rule.results; ++k) {
    RawResult& y = results[k];
    const int dims = rule.result[std::size_t(k)].dims;
    const std::size_t bytes = checked_bytes(y.extents, dims, size_of(info.dtype[std::size_t(k)]));
    if (y.room == 0 || y.room < bytes) {
      y.storage = allocate_bytes(Device{}, bytes);
      y.data = y.storage.get();
    }
    out[std::size_t(k)] = {y.data, y.extents, y.strides, dims};
  }
  if (are_aligned(call)) [[likely]]
    run_on(call, op, in, computed, results, out.data(), read);
  else run_on(call, op, AlignedOperands(call, in, out[0]).data(), computed, results, out.data());
  if (info.scans >= 0 && call.mesh != nullptr) [[unlikely]]
    scan_across<Device>(call, op, *computed, results[0].shape, out[0]);
}

/// Runs a call on operands with the required placements, if it is plain and their extents agree,
/// the only condition that is not known at compile time.
///
/// @return whether the call was run; otherwise nothing has changed
template <class Info, class Device>
bool run_plain(const void* op, const OperandRef* in, RawResult* results) {
  if constexpr (Info::is_plain) {
    constexpr const Rule& rule = *Info::value.rule;
    constexpr const ExtentsTable& table = *Info::value.table;
    constexpr auto count = std::size_t(rule.results);
    if (is_dry() || !all_agree(table, in)) [[unlikely]]
      return false;
    // separate from `results`, which is aliased, so that these stay in registers for the kernel
    std::array<index_t, std::size_t(max_dims)> extents[count], strides[count];
    const auto allocate = [&](std::size_t k) {
      const int dims = rule.result[k].dims;
      RawResult& y = results[k];
      index_t step = 1;
      for (int d = dims - 1; d >= 0; --d) {
        const auto [operand, dim] = table.source[k][std::size_t(d)];
        const index_t extent = in[operand].extents[dim];
        y.shape[d] = in[operand].shape[dim];
        y.extents[d] = extents[k][std::size_t(d)] = extent;
        y.strides[d] = strides[k][std::size_t(d)] = step;
        step *= extent;
      }
      return allocate_bytes(Device{},
                            checked_bytes(extents[k].data(), dims, size_of(Info::value.dtype[k])));
    };
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      std::shared_ptr<void> storage[] = {allocate(K)...};  // moved after the kernel has started
      ArrayRef out[] = {
          {storage[K].get(), extents[K].data(), strides[K].data(), rule.result[K].dims}...};
      cleave::Task task;
      task.name = Info::value.name;
      task.in = in;
      task.operands = rule.operands;
      task.out = out;
      Info::run(op, task);
      ((results[K].data = out[K].data, results[K].storage = std::move(storage[K])), ...);
    }(std::make_index_sequence<count>{});
    return true;
  }
  return false;
}

/// The compile-time constants of a call on distributed operands.
struct PlacedCall {
  const OpInfo* info = nullptr;
  const Solution* solution = nullptr;
  unsigned moves = 0;  ///< bit i: operand i has to be redistributed
  bool result_moves = false;
  std::array<const RedistributionSpec*, std::size_t(max_operands)>
      spec{};  ///< of the operands to redistribute
  const RedistributionSpec* result_spec = nullptr;
};

/// The operands of a call with the placements that the kernel needs. Operands that already have
/// them, by their types, cost nothing.
template <class Device>
class PlacedOperands {
 public:
  /// @collective every rank of the mesh, if an operand is redistributed
  /// @throws Error if an operand broadcasts a dimension that it shards
  PlacedOperands(const CallContext& call, const PlacedCall& placed, const OperandRef* in)
      : operands_(in) {
    if (placed.moves != 0) move(call, placed);
    else if (call.any_repeats) [[unlikely]]
      call.require_repeatable(placed.solution->required.data());
  }

  const OperandRef* data() const { return operands_; }

 private:
  struct Moved {
    std::array<OperandRef, std::size_t(max_operands)> operands;
    std::array<redistribution::Block, std::size_t(max_operands)> blocks;
  };

  void move(const CallContext& call, const PlacedCall& placed) {
    Moved& there = moved_.emplace();
    for (std::size_t i = 0; i < std::size_t(call.info.rule->operands); ++i) {
      there.operands[i] = operands_[i];
      if (operands_[i].mesh == nullptr) continue;
      const Layout& required = placed.solution->required[i];
      const Layout target = call.needed(int(i), required);
      if (target == *operands_[i].layout) continue;
      move_one(call, placed.spec[i], target, there.operands[i], there.blocks[i]);
      there.operands[i].layout = &required;
    }
    operands_ = there.operands.data();
  }

  static void move_one(const CallContext& call, const RedistributionSpec* spec,
                       const Layout& target, OperandRef& operand, redistribution::Block& block) {
    const Plan* plan = spec != nullptr && target == spec->target ? spec->plan : nullptr;
    block = redistribution::run<Device>(
        plan, *operand.layout, target, block_of(operand),
        {*call.mesh, shape_at(operand.shape, operand.dims), call.info.name});
    operand.data = block.view.data;
    operand.extents = block.view.extents.begin();
    operand.strides = block.view.strides.begin();
    operand.storage = &block.storage;
  }

  const OperandRef* operands_;
  std::optional<Moved> moved_;
};

/// Redistributes the first result to its placements.
/// @collective every rank of the mesh
template <class Device>
void move_result(const CallContext& call, const PlacedCall& placed, RawResult& y) {
  const int dims = call.info.rule->result[0].dims;
  const RedistributionSpec& spec = *placed.result_spec;
  redistribution::Block block = redistribution::run<Device>(
      spec.plan, spec.source, spec.target,
      {std::move(y.storage),
       View{y.data, call.info.dtype[0], shape_at(y.extents, dims), shape_at(y.strides, dims)}},
      {*call.mesh, shape_at(y.shape, dims), call.info.name});
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
/// @collective     every rank of the mesh, if an operand or a result is redistributed
template <class Device>
void run_placed(const PlacedCall& placed, const void* op, const Shape& fresh, const OperandRef* in,
                RawResult* results) {
  const CallContext call(*placed.info, in);
  const PlacedOperands<Device> there(call, placed, in);
  compute<Device>(call, op, fresh, there.data(), placed.solution->computed.data(), results);
  if (placed.result_moves) [[unlikely]]
    move_result<Device>(call, placed, results[0]);
}

#if CLEAVE_COMPILED
extern template void compute<Host>(const CallContext&, const void*, const Shape&, const OperandRef*,
                                   const Layout*, RawResult*);
extern template void run_placed<Host>(const PlacedCall&, const void*, const Shape&,
                                      const OperandRef*, RawResult*);
#endif

}  // namespace cleave::inline v0::detail
