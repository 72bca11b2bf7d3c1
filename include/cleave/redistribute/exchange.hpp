// S(i) -> S(j) and every other move: ranks send each other what the receiver lacks.
//
// The source boxes of a group partition the indices into chunks; a chunk may have several owners
// (replicas). Every destination takes each index from exactly one of them, and what it has itself
// from itself: it receives |destination box - source box| elements, the lower bound. Replicas
// take turns.
#pragma once

#include <concepts>

#include <cleave/redistribute/call.hpp>

namespace cleave::redistribution {

namespace detail {

/// Index of a coordinate among the axes of `mask`, row-major.
constexpr index_t index_within(AxisMask mask, const Shape& extents, const Shape& coordinate) {
  index_t index = 0;
  for (int a = 0; a < extents.dims; ++a)
    if (mask >> a & 1u) index = index * extents[a] + coordinate[a];
  return index;
}

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
    return index_within(chunk_axes, mesh, a) == index_within(chunk_axes, mesh, b);
  }

  /// Whether `owner` sends its chunk to `receiver`: consecutive receivers of the same indices ask
  /// consecutive owners.
  constexpr bool is_source(const Shape& mesh, const Shape& owner, const Shape& receiver) const {
    index_t owners = 1;
    for (int a = 0; a < mesh.dims; ++a)
      if (owner_axes >> a & 1u) owners *= mesh[a];
    const index_t turn =
        index_within(receiver_axes, mesh, receiver) + index_within(other_axes, mesh, receiver);
    return index_within(owner_axes, mesh, owner) == turn % owners;
  }
};

}  // namespace detail

/// The transfers of the rank at `coordinate`, which is member `self` of its group over
/// `step.axes`; pure arithmetic. A transfer to itself is a copy.
/// @cost O(ranks of the group)
template <std::same_as<Step> S>  // compiled where it is called, not wherever this is included
Transfers exchange_transfers(const S& step, const Shape& shape, const Shape& mesh,
                             const Shape& coordinate) {
  const detail::Replicas replicas(step);
  const Box had = owned_box(step.from, shape, mesh, coordinate);
  const Box wanted = owned_box(step.to, shape, mesh, coordinate);
  Shape peer = coordinate;
  std::size_t ranks = 1;
  for (int a = 0; a < mesh.dims; ++a)
    if (step.axes >> a & 1u) peer[a] = 0, ranks *= std::size_t(mesh[a]);
  Transfers transfers;
  transfers.sends.reserve(ranks);
  transfers.receives.reserve(ranks);
  for (int index = 0;; ++index) {
    const bool self = peer == coordinate;
    const bool same_chunk = replicas.same_chunk(mesh, peer, coordinate);
    const Box theirs = owned_box(step.from, shape, mesh, peer);
    const Box theirs_wanted = owned_box(step.to, shape, mesh, peer);
    if (self || (!same_chunk && replicas.is_source(mesh, peer, coordinate)))
      if (const Box box = intersect(theirs, wanted); !box.empty())
        transfers.receives.push_back(
            {index, box.relative_to(theirs.begin), box.relative_to(wanted.begin)});
    if (self || (!same_chunk && replicas.is_source(mesh, coordinate, peer)))
      if (const Box box = intersect(had, theirs_wanted); !box.empty())
        transfers.sends.push_back(
            {index, box.relative_to(had.begin), box.relative_to(theirs_wanted.begin)});
    int a = mesh.dims - 1;  // the next member of the group: its last axis varies fastest
    for (; a >= 0; --a) {
      if (!(step.axes >> a & 1u)) continue;
      if (++peer[a] < mesh[a]) break;
      peer[a] = 0;
    }
    if (a < 0) return transfers;
  }
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
