// S(i) -> S(j) and every other move: ranks send each other what the receiver lacks.
//
// The source boxes of a group partition the indices into chunks; a chunk may have several owners
// (replicas). Every destination takes each index from exactly one of them, and what it has itself
// from itself: it receives |destination box - source box| elements, the lower bound. Replicas
// take turns.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/redistribute/call.hpp>
#include <cleave/redistribute/keyed_cache.hpp>
#include <cleave/redistribute/peers.hpp>

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

namespace detail {

/// The axes of the mask that shard nothing.
constexpr AxisMask unsharded(const StepLayout& of, AxisMask mask) {
  for (int a = 0; a < of.layout.axes; ++a)
    if (of.layout[a].is_shard()) mask &= ~(1u << a);
  return mask;
}

/// Which of the owners of a chunk sends it to which receiver.
struct Replicas {
  AxisMask chunk_axes;  ///< sharded before: they tell which chunk a rank owns
  AxisMask owner_axes;  ///< not sharded before: they tell the owners of a chunk apart
  AxisMask receiver_axes;  ///< not sharded after: they tell those apart that want the same
  AxisMask other_axes;

  constexpr Replicas(const Step& step)
      : chunk_axes(step.axes & ~unsharded(step.from, step.axes)),
        owner_axes(unsharded(step.from, step.axes)),
        receiver_axes(unsharded(step.to, step.axes)),
        other_axes(step.axes & ~unsharded(step.to, step.axes)) {}

  /// Whether both own the same chunk.
  constexpr bool same_chunk(const Shape& mesh, const Shape& a, const Shape& b) const {
    return linear_index(mesh, a, chunk_axes) == linear_index(mesh, b, chunk_axes);
  }

  /// Sets those coordinates of `owner` that tell the owners of its chunk apart to the one that
  /// sends to `receiver`: consecutive receivers of the same indices ask consecutive owners.
  constexpr void set_source(const Shape& mesh, const Shape& receiver, Shape& owner) const {
    const index_t turn =
        linear_index(mesh, receiver, receiver_axes) + linear_index(mesh, receiver, other_axes);
    set_coordinate(owner_axes, mesh, turn % product_over(mesh, owner_axes), owner);
  }

  /// Calls f(coordinate) for those that `owner` sends to among the ranks that want the same as
  /// `receiver` and do not own it.
  template <class F>
  void each_receiver(const Shape& mesh, const Shape& owner, Shape receiver, const F& f) const {
    const index_t owners = product_over(mesh, owner_axes);
    const index_t receivers = product_over(mesh, receiver_axes);
    const index_t other = linear_index(mesh, receiver, other_axes) % owners;
    index_t turn = (linear_index(mesh, owner, owner_axes) - other + owners) % owners;
    for (; turn < receivers; turn += owners) {
      set_coordinate(receiver_axes, mesh, turn, receiver);
      if (!same_chunk(mesh, receiver, owner)) f(receiver);
    }
  }
};

}  // namespace detail

/// The transfers of the rank at `coordinate` with its group over `step.axes`, by the numbers of
/// their peers; pure arithmetic. A transfer to itself is a copy.
/// @cost O(p log p) for p peers, whatever the number of ranks
template <std::same_as<Step> S>  // compiled where it is called, not wherever this is included
Transfers exchange_transfers(const S& step, const Shape& shape, const Shape& mesh,
                             const Shape& coordinate) {
  const detail::Replicas replicas(step);
  const Box had = owned_box(step.from, shape, mesh, coordinate);
  const Box wanted = owned_box(step.to, shape, mesh, coordinate);
  Transfers transfers;
  const auto number = [&](const Shape& of) {
    return int(linear_index(mesh, of, step.axes));
  };
  if (const Box kept = intersect(had, wanted); !kept.empty()) {
    const Transfer copy{number(coordinate), kept.relative_to(had.begin),
                        kept.relative_to(wanted.begin)};
    transfers.sends.push_back(copy);
    transfers.receives.push_back(copy);
  }
  each_box_within(
      step.from, shape, mesh, step.axes, coordinate, wanted, [&](Shape owner, const Box& box) {
        if (replicas.same_chunk(mesh, owner, coordinate)) return;
        replicas.set_source(mesh, coordinate, owner);
        const Box theirs = owned_box(step.from, shape, mesh, owner);
        transfers.receives.push_back(
            {number(owner), box.relative_to(theirs.begin), box.relative_to(wanted.begin)});
      });
  each_box_within(
      step.to, shape, mesh, step.axes, coordinate, had, [&](Shape receiver, const Box& box) {
        const Box theirs = owned_box(step.to, shape, mesh, receiver);
        replicas.each_receiver(mesh, coordinate, receiver, [&](const Shape& peer) {
          transfers.sends.push_back(
              {number(peer), box.relative_to(had.begin), box.relative_to(theirs.begin)});
        });
      });
  for (std::vector<Transfer>* list : {&transfers.sends, &transfers.receives})
    std::sort(list->begin(), list->end(),
              [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
  return transfers;
}

/// The transfers of exchanges, kept per mesh: they are found once per step and shape.
class TransferCache {
 public:
  template <std::same_as<MeshState> Mesh>  // compiled where it is called
  std::shared_ptr<const Transfers> transfers(const Step& step, const Shape& shape,
                                             const Mesh& mesh) {
    const Key key{step.axes, shape, step.from, step.to};
    if (const auto* known = lists_.find(key)) return *known;
    auto made = std::make_shared<const Transfers>(
        exchange_transfers(step, shape, mesh.extents(), mesh.coordinate()));
    const std::size_t count = made->sends.size() + made->receives.size();
    return count > max_transfers ? made : lists_.add(key, made, std::max(count, min_weight));
  }

 private:
  static constexpr std::size_t max_transfers = 65536;  ///< of all lists: 20 MB
  static constexpr std::size_t min_weight = 128;       ///< 512 lists

  struct Key {
    AxisMask axes;
    Shape shape;
    StepLayout from, to;

    friend bool operator==(const Key&, const Key&) = default;
    std::uint64_t checksum() const {
      const std::array<std::uint64_t, 3> others{axes, from.layout.packed(), to.layout.packed()};
      return cleave::detail::checksum(shape) ^ 3 * cleave::detail::checksum(others);
    }
  };

  KeyedCache<Key, std::shared_ptr<const Transfers>, max_transfers> lists_;
};

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
  call.transfers = context.mesh.cache<TransferCache>().transfers(step, context.shape, context.mesh);
  return call;
}

}  // namespace cleave::redistribution
