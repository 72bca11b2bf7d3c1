// One side of an exchange: which rank of a group owns which elements before it, or after it.
#pragma once

#include <cleave/redistribute/peers.hpp>
#include <cleave/redistribute/step_box.hpp>

namespace cleave::inline v0::redistribution {

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

  /// @pre the layout is one of boxes
  constexpr Box box(const Shape& at) const { return owned_box(layout, shape, mesh, at); }
  constexpr DimOwnership ownership(int d) const {
    return redistribution::ownership(layout, d, shape, mesh);
  }
  /// The coordinate whose axes that shard nothing are those of this rank.
  constexpr Shape origin() const { return self != nullptr ? *self : Shape::filled(mesh.dims, 0); }
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
  /// @pre the layout is one of boxes
  template <class F>
  void each_chunk_within(const Box& window, const F& f) const {
    each_box_within(layout, shape, mesh, chunk_axes | replica_axes, origin(), window, f);
  }
};

/// The rank from which this one takes elements of a chunk of `before`: itself if it has them.
/// Consecutive receivers of the same elements take them from consecutive owners.
/// @param chunk  one of the owners
constexpr Shape owner_of(const ExchangeSide& before, const ExchangeSide& after,
                         const Shape& chunk) {
  if (before.is_own_chunk(chunk)) return *before.self;
  const index_t turn = after.replica(*after.self) + after.chunk(*after.self);
  return before.with_replica(chunk, turn % before.replicas());
}

/// Calls f(coordinate) for the ranks that take elements of a chunk of `after` from this one.
/// @param chunk    one of its owners
/// @param numbers  has owns_chunk(a coordinate of `after`): whether that rank owns this one's chunk
///                 of `before`
template <class Numbers, class F>
constexpr void each_reader(const ExchangeSide& before, const ExchangeSide& after,
                           const Shape& chunk, const Numbers& numbers, const F& f) {
  if (after.is_own_chunk(chunk)) f(*after.self);
  const index_t owners = before.replicas();
  index_t turn = (before.replica(*before.self) + owners - after.chunk(chunk) % owners) % owners;
  for (; turn < after.replicas(); turn += owners)
    if (const Shape receiver = after.with_replica(chunk, turn); !numbers.owns_chunk(receiver))
      f(receiver);
}

}  // namespace cleave::inline v0::redistribution
