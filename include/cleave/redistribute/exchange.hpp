// S(i) -> S(j) and every other move: each rank receives the elements that it lacks.
//
// The source boxes of a group partition the indices into chunks; a chunk may have several owners
// (replicas). Every receiver takes each index from exactly one owner, from itself if it is one: it
// receives |destination box - source box| elements, the lower bound. Receivers are spread over the
// replicas.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/redistribute/peers.hpp>
#include <cleave/redistribute/step_call.hpp>
#include <cleave/redistribute/transfer_lists.hpp>

namespace cleave::redistribution {

/// One side of an exchange: the ranks of a group that are in a mesh, and the chunks of the indices
/// that they own under a layout. Refers to its arguments.
struct ExchangeSide {
  const StepLayout& layout;
  const Shape& shape;
  const Shape& mesh;
  const Shape* self;      ///< this rank's coordinate; null: it is not in the mesh
  AxisMask chunk_axes;    ///< determine which chunk a rank owns
  AxisMask replica_axes;  ///< distinguish the owners of a chunk

  /// @param axes  the axes in which the ranks of the group differ
  constexpr ExchangeSide(const StepLayout& of, const Shape& extents, const Shape& on,
                         const Shape* coordinate, AxisMask axes)
      : layout(of),
        shape(extents),
        mesh(on),
        self(coordinate),
        chunk_axes(axes & of.layout.sharding_axes()),
        replica_axes(axes & ~chunk_axes) {}

  constexpr Box box(const Shape& at) const { return owned_box(layout, shape, mesh, at); }
  constexpr index_t chunk(const Shape& at) const { return linear_index(mesh, at, chunk_axes); }
  constexpr index_t replica(const Shape& at) const { return linear_index(mesh, at, replica_axes); }
  constexpr index_t replicas() const { return product_over(mesh, replica_axes); }
  constexpr bool is_own_chunk(const Shape& at) const {
    return self != nullptr && chunk(at) == chunk(*self);
  }

  /// Owner `number` of the same chunk.
  constexpr Shape with_replica(const Shape& at, index_t number) const {
    return member_at(mesh, at, replica_axes, number);
  }

  /// Calls f(one of its owners, shared indices) for every chunk that shares indices with `window`.
  template <class F>
  void each_chunk_within(const Box& window, const F& f) const {
    const Shape at = self != nullptr ? *self : Shape::filled(mesh.dims, 0);
    each_box_within(layout, shape, mesh, chunk_axes | replica_axes, at, window, f);
  }
};

/// The transfers of this rank; one with itself is a copy. Consecutive receivers of the same indices
/// take them from consecutive owners.
///
/// @param owner_number     (a coordinate of `before`) -> that rank's number in the group
/// @param receiver_number  (a coordinate of `after`) -> likewise
/// @param owns_chunk       (a coordinate of `after`) -> whether that rank owns this one's chunk of
///                         `before`
/// @cost O(p log p) for p peers, whatever the number of ranks
template <class OwnerNumber, class ReceiverNumber, class OwnsChunk>
Transfers plan_transfers(const ExchangeSide& before, const ExchangeSide& after,
                         const OwnerNumber& owner_number, const ReceiverNumber& receiver_number,
                         const OwnsChunk& owns_chunk) {
  Transfers transfers;
  const index_t owners = before.replicas();
  if (after.self != nullptr) {
    const Box wanted = after.box(*after.self);
    const index_t turn = after.replica(*after.self) + after.chunk(*after.self);
    before.each_chunk_within(wanted, [&](const Shape& chunk, const Box& box) {
      const Shape owner =
          before.is_own_chunk(chunk) ? *before.self : before.with_replica(chunk, turn % owners);
      transfers.receives.push_back({owner_number(owner), box.relative_to(before.box(owner).begin),
                                    box.relative_to(wanted.begin)});
    });
  }
  if (before.self != nullptr) {
    const Box had = before.box(*before.self);
    after.each_chunk_within(had, [&](const Shape& chunk, const Box& box) {
      const Box theirs = after.box(chunk);
      const auto send = [&](const Shape& receiver) {
        transfers.sends.push_back(
            {receiver_number(receiver), box.relative_to(had.begin), box.relative_to(theirs.begin)});
      };
      if (after.is_own_chunk(chunk)) send(*after.self);
      index_t turn = (before.replica(*before.self) + owners - after.chunk(chunk) % owners) % owners;
      for (; turn < after.replicas(); turn += owners)
        if (const Shape receiver = after.with_replica(chunk, turn); !owns_chunk(receiver))
          send(receiver);
    });
  }
  for (std::vector<Transfer>* list : {&transfers.sends, &transfers.receives})
    std::sort(list->begin(), list->end(),
              [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
  return transfers;
}

/// The transfers of the rank at `coordinate` with its group over `step.axes`, sorted by peer; pure
/// arithmetic. @see plan_transfers
template <std::same_as<Step> S>  // compiled where it is called, not wherever this is included
Transfers exchange_transfers(const S& step, const Shape& shape, const Shape& mesh,
                             const Shape& coordinate) {
  const ExchangeSide before(step.from, shape, mesh, &coordinate, step.axes);
  const ExchangeSide after(step.to, shape, mesh, &coordinate, step.axes);
  const auto number = [&](const Shape& at) { return int(linear_index(mesh, at, step.axes)); };
  return plan_transfers(before, after, number, number,
                        [&](const Shape& at) { return before.is_own_chunk(at); });
}

/// The transfers of exchanges, kept per mesh.
class TransferCache {
 public:
  template <std::same_as<MeshState> Mesh>  // compiled where it is called
  std::shared_ptr<const Transfers> transfers(const Step& step, const Shape& shape,
                                             const Mesh& mesh) {
    return lists_.get({step.axes, shape, step.from, step.to}, [&] {
      return exchange_transfers(step, shape, mesh.extents(), mesh.coordinate());
    });
  }

 private:
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

  TransferLists<Key> lists_;
};

/// @return     a call whose result is the elements that this rank owns under `step.to`
/// @collective the ranks that differ in `step.axes`
/// @cost       receives each element of the result that this rank lacks once; allocates the result
template <class Device>
Call exchange(const Step& step, const Block& block, const Context& context) {
  const bool all_pairs = step.kind == StepKind::all_to_all;
  Call call{all_pairs ? CollectiveKind::all_to_all : CollectiveKind::exchange,
            {},
            step.axes,
            context.shape.product(),
            block.view,
            allocate<Device>(block.view.dtype, own_box(step.to, context).extents())};
  call.even = all_pairs && shards_evenly(step.from, context.shape, context.mesh.extents()) &&
              shards_evenly(step.to, context.shape, context.mesh.extents());
  call.transfers = context.mesh.cache<TransferCache>().transfers(step, context.shape, context.mesh);
  return call;
}

}  // namespace cleave::redistribution
