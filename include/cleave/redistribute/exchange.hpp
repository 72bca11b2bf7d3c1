// S(i) -> S(j) and every other move: ranks send each other what the receiver lacks.
//
// The source boxes of a group partition the indices into chunks; a chunk may have several owners
// (replicas). Every destination takes each index from exactly one of them, and what it has itself
// from itself: it receives |destination box - source box| elements, the lower bound. Replicas
// take turns.
#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include <cleave/redistribute/call.hpp>

namespace cleave::redistribution {

/// What one rank owns under a layout.
struct Ownership {
  Box box{};
  index_t chunk = -1;   ///< its number; -1: the rank is not in the mesh
  index_t replica = 0;  ///< which of the chunk's owners the rank is
};
struct Ownerships {
  Ownership before{}, after{};
};

/// Who owns which chunk under a layout, among ranks that differ in the axes of the mask. Refers to
/// what it is made of.
class OwnerMap {
 public:
  OwnerMap(const StepLayout& layout, const Shape& shape, const Shape& mesh, AxisMask axes)
      : layout_(layout), shape_(shape), mesh_(mesh), sharded_(axes), unsharded_(axes) {
    for (int a = 0; a < mesh.dims; ++a)
      (layout.layout[a].is_shard() ? unsharded_ : sharded_) &= ~(1u << a);
  }

  Ownership at(const Shape& coordinate) const {
    return {owned_box(layout_, shape_, mesh_, coordinate),
            linear_index(mesh_, coordinate, sharded_), linear_index(mesh_, coordinate, unsharded_)};
  }
  /// How many owners each chunk has.
  index_t replicas() const { return product_over(mesh_, unsharded_); }

 private:
  const StepLayout& layout_;
  const Shape& shape_;
  const Shape& mesh_;
  AxisMask sharded_;
  AxisMask unsharded_;
};

/// What the member `self` of a group sends and receives; a transfer to itself is a copy.
/// Consecutive receivers of the same indices ask consecutive owners.
///
/// @param here        what `self` owns
/// @param replicas    how many owners each chunk has before
/// @param ownerships  of a member; called once for each, in order
/// @cost O(members)
template <class OwnershipsOf>
Transfers plan_transfers(int members, int self, const Ownerships& here, index_t replicas,
                         OwnershipsOf ownerships) {
  Transfers transfers;
  transfers.sends.reserve(std::size_t(members));
  transfers.receives.reserve(std::size_t(members));
  for (int peer = 0; peer < members; ++peer) {
    const Ownerships there = ownerships(peer);
    const auto add = [&](std::vector<Transfer>& to, const Ownerships& owner,
                         const Ownerships& receiver) {
      const Ownership &source = owner.before, &target = receiver.after;
      if (source.chunk < 0 || target.chunk < 0) return;
      if (peer != self && (source.chunk == receiver.before.chunk ||
                           source.replica != (target.replica + target.chunk) % replicas))
        return;
      if (const Box box = intersect(source.box, target.box); !box.empty())
        to.push_back({peer, box.relative_to(source.box.begin), box.relative_to(target.box.begin)});
    };
    add(transfers.receives, there, here);
    add(transfers.sends, here, there);
  }
  return transfers;
}

/// The transfers of the rank at `coordinate` to and from its group over `step.axes`; pure
/// arithmetic.
template <std::same_as<Step> S>  // compiled where it is called, not wherever this is included
Transfers exchange_transfers(const S& step, const Shape& shape, const Shape& mesh,
                             const Shape& coordinate) {
  const OwnerMap before(step.from, shape, mesh, step.axes), after(step.to, shape, mesh, step.axes);
  Shape at = member_at(mesh, coordinate, step.axes, 0);
  return plan_transfers(int(product_over(mesh, step.axes)),
                        int(linear_index(mesh, coordinate, step.axes)),
                        {before.at(coordinate), after.at(coordinate)}, before.replicas(), [&](int) {
                          const Ownerships member{before.at(at), after.at(at)};
                          next_index(mesh, at, step.axes);
                          return member;
                        });
}

/// @return     a call whose result is what this rank owns under `step.to`
/// @collective the ranks that differ in `step.axes`
/// @cost       receives what this rank lacks of the result, each element once; allocates the
///             result
template <class Device>
Call exchange(const Step& step, const Block& block, const Context& context) {
  const bool all_pairs = step.kind == StepKind::all_to_all;
  Call call{all_pairs ? CollectiveKind::all_to_all : CollectiveKind::exchange,
            {},
            step.axes,
            context.shape.product(),
            block,
            allocate<Device>(block.view.dtype, own_box(step.to, context).extents())};
  call.even = all_pairs && shards_evenly(step.from, context.shape, context.mesh.extents()) &&
              shards_evenly(step.to, context.shape, context.mesh.extents());
  call.transfers =
      exchange_transfers(step, context.shape, context.mesh.extents(), context.mesh.coordinate());
  return call;
}

}  // namespace cleave::redistribution
