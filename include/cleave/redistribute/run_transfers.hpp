// The transfers of steps; steps between layouts of which one, at least, is no layout of boxes, but
// a block-cyclic one.
//
// In such a step every rank packs its part by receiver, the packed ranges are exchanged, and what
// arrives is unpacked. Receives each element that the rank lacks once; one message per pair of
// ranks. Parts that are in the right order already are neither packed nor unpacked.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/redistribute/exchange_transfers.hpp>
#include <cleave/redistribute/part_split.hpp>
#include <cleave/redistribute/step_call.hpp>
#include <cleave/redistribute/transfer_lists.hpp>

namespace cleave::inline v0::redistribution {

/// What a rank sends and receives: transfers are of packed elements.
struct RunTransfers : Transfers {
  PartSplit pack{}, unpack{};
  std::vector<Box> pieces{};  ///< of the members, for reductions
  Shape extents{};            ///< of the rank's result

  std::size_t weight() const {
    return sends.size() + receives.size() + pieces.size() + pack.weight() + unpack.weight();
  }
};

/// The transfers of this rank. @see plan_transfers
/// @cost O(p r) for p peers and r runs of indices per dimension
template <std::same_as<ExchangeSide> Side>  // compiled where it is called
RunTransfers plan_runs(const Side& before, const Side& after, const GroupNumbers& numbers) {
  using Share = PartSplit::Share;
  RunTransfers all;
  all.extents = Shape::filled(after.shape.dims, 0);
  if (before.self != nullptr) all.pack = PartSplit(before, *before.self, after);
  if (after.self != nullptr) {
    all.unpack = PartSplit(after, *after.self, before);
    all.extents = local_extents(after.layout, after.shape, after.mesh, *after.self);
    for (const Share& share : all.unpack.shares(before.origin())) {
      const Shape owner = owner_of(before, after, share.coordinate);
      const Box there = PartSplit(before, owner, after).place(*after.self);
      all.receives.push_back({numbers.owner(owner), there, share.place});
    }
  }
  if (before.self != nullptr)
    for (const Share& share : all.pack.shares(after.origin())) {
      const Box there = PartSplit(after, share.coordinate, before).place(*before.self);
      each_reader(before, after, share.coordinate, numbers, [&](const Shape& reader) {
        all.sends.push_back({numbers.receiver(reader), share.place, there});
      });
    }
  all.sort();
  return all;
}

/// The transfers of a step of this rank with its group, or the pieces of its reduction.
template <std::same_as<Step> S>  // compiled where it is called, not wherever this is included
RunTransfers plan_runs(const S& step, const Shape& shape, const Shape& mesh, const Shape& at) {
  const ExchangeSide before(step.from, shape, mesh, &at, step.axes);
  const ExchangeSide after(step.to, shape, mesh, &at, step.axes);
  if (step.kind != StepKind::reduce_scatter)
    return plan_runs(before, after, StepNumbers(before, step.axes));
  RunTransfers all;
  all.pack = PartSplit(before, at, after);
  all.extents = local_extents(step.to, shape, mesh, at);
  for (index_t r = 0; r < product_over(mesh, step.axes); ++r)
    all.pieces.push_back(all.pack.place(member_at(mesh, at, step.axes, r)));
  return all;
}

/// The transfers of steps, kept per mesh.
class TransferCache {
 public:
  struct Key {
    StepKind kind;
    AxisMask axes;
    Shape shape;
    StepLayout from, to;

    friend bool operator==(const Key&, const Key&) = default;
    std::uint64_t checksum() const {
      const std::array<std::uint64_t, 4> others{std::uint64_t(kind), axes, from.layout.checksum(),
                                                to.layout.checksum()};
      return cleave::detail::checksum(shape) ^ 3 * cleave::detail::checksum(others);
    }
  };

  template <std::same_as<MeshState> Mesh>  // compiled where it is called
  std::shared_ptr<const RunTransfers> transfers(const Step& step, const Shape& shape,
                                                const Mesh& mesh) {
    const Shape &extents = mesh.extents(), &at = mesh.coordinate();
    return lists_.get({step.kind, step.axes, shape, step.from, step.to}, [&] {
      if (step.needs_runs()) return plan_runs(step, shape, extents, at);
      return RunTransfers{exchange_transfers(step, shape, extents, at)};
    });
  }

 private:
  TransferLists<Key, RunTransfers> lists_;
};

inline TransferCache::Key key_of(const Step& step, const Context& context) {
  return {step.kind, step.axes, context.shape, step.from, step.to};
}

/// Elements in packed memory, or in that of a part whose order is the same.
template <class Device>
Block packed_by(const PartSplit& split, const Block& block) {
  const Shape size = Shape::filled(1, block.view.size());
  if (split.is_identity() && block.view.contiguous())
    return {block.storage, View::dense(block.view.data, block.view.dtype, size)};
  Block packed = allocate<Device>(block.view.dtype, size);
  split.template pack<Device>(block.view, packed.view);
  return packed;
}

/// @return     a call for an exchange or a reduce-scatter. @see finish
/// @collective the ranks that differ in `step.axes`
/// @cost       receives each element of the result that this rank lacks once, or (n - 1) pieces;
///             allocates the result, and packed copies where the order of elements changes
template <class Device>
Call exchange_runs(const Step& step, const Block& block, const Context& context) {
  const bool reduces = step.kind == StepKind::reduce_scatter;
  Call call{reduces ? CollectiveKind::reduce_scatter : CollectiveKind::exchange, step.op, step.axes,
            reduces ? block.view.size() : context.shape.product()};
  call.runs = context.mesh.cache<TransferCache>().transfers(step, context.shape, context.mesh);
  const Block source = packed_by<Device>(call.runs->pack, block);
  call.source = source.view;
  call.packed = source.storage;
  call.result = allocate<Device>(block.view.dtype, Shape::filled(1, call.runs->extents.product()));
  call.pieces = call.runs->pieces;
  call.transfers = call.runs;
  call.detail = checksum_detail(key_of(step, context).checksum());
  return call;
}

/// The result of a call that has run.
template <class Device>
Block finish(Call&& call) {
  if (call.runs == nullptr) return std::move(call.result);
  const DType dtype = call.result.view.dtype;
  if (call.runs->unpack.is_identity())
    return {call.result.storage, View::dense(call.result.view.data, dtype, call.runs->extents)};
  Block result = allocate<Device>(dtype, call.runs->extents);
  call.runs->unpack.template unpack<Device>(call.result.view, result.view);
  return result;
}

/// R -> S(d) and the like: the elements that this rank keeps. @cost a copy of them
template <class Device>
Block slice_runs(const Step& step, const Block& block, const Context& context) {
  const Shape &mesh = context.mesh.extents(), &at = context.mesh.coordinate();
  const ExchangeSide before(step.from, context.shape, mesh, &at, step.axes);
  const ExchangeSide after(step.to, context.shape, mesh, &at, step.axes);
  Block result = allocate<Device>(block.view.dtype, own_extents(step.to, context));
  PartSplit(before, at, after).template pack_share<Device>(at, block.view, result.view);
  return result;
}

}  // namespace cleave::inline v0::redistribution
