// Between two meshes of one world: any placements there, any placements here.
//
// Addends are first reduced on the source mesh, by reduce-scatter; then one exchange over the
// ranks of both meshes brings every rank exactly what it must own and does not. The chunks that
// the source partitions the indices into may have several owners; those who want the same take
// turns asking them. The meshes may have different axes, extents and orders of ranks, and share
// all, some or none of them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/execute.hpp>
#include <cleave/redistribute/run.hpp>

namespace cleave::redistribution {

// Templates of one type: compiled where they are called, not wherever this file is included.

/// The ranks of two meshes together.
struct UnionGroup {
  std::vector<int> ranks{};  ///< of the world, ascending
  std::shared_ptr<Communicator> group{};

  int place_of(int world_rank) const {
    return int(std::lower_bound(ranks.begin(), ranks.end(), world_rank) - ranks.begin());
  }
};

/// The groups that one mesh has made with others.
struct UnionGroups {
  std::vector<std::pair<std::vector<int>, std::shared_ptr<Communicator>>> known{};
};

/// @collective the first time for two lists of ranks: every rank of both meshes
template <std::same_as<MeshState> Mesh>
UnionGroup union_group(const Mesh& a, const Mesh& b) {
  UnionGroup result;
  result.ranks = a.world_ranks();
  result.ranks.insert(result.ranks.end(), b.world_ranks().begin(), b.world_ranks().end());
  std::sort(result.ranks.begin(), result.ranks.end());
  result.ranks.erase(std::unique(result.ranks.begin(), result.ranks.end()), result.ranks.end());
  if (int(result.ranks.size()) == a.world()->size()) {
    result.group = a.world();
    return result;
  }
  auto& known = a.template cache<UnionGroups>().known;
  for (const auto& [ranks, group] : known)
    if (ranks == result.ranks) result.group = group;
  if (result.group == nullptr) {
    result.group = a.world()->subgroup(result.ranks, "meshes");
    known.emplace_back(result.ranks, result.group);
  }
  return result;
}

/// Where a tensor lies: on which ranks, and what each of them has.
class OwnerMap {
 public:
  template <std::same_as<UnionGroup> Union>
  OwnerMap(const MeshState& mesh, const StepLayout& layout, const Union& ranks)
      : mesh_(mesh),
        layout_(layout),
        all_((AxisMask(1) << mesh.extents().dims) - 1),
        free_(detail::unsharded(layout, all_)),
        places_(ranks.ranks.size(), -1) {
    for (std::size_t i = 0; i < mesh.world_ranks().size(); ++i)
      places_[std::size_t(ranks.place_of(mesh.world_ranks()[i]))] = index_t(i);
  }

  /// The place in the mesh of a member of the union, or -1.
  index_t place(int member) const { return places_[std::size_t(member)]; }
  Box box(index_t place, const Shape& shape) const {
    return owned_box(layout_, shape, mesh_.extents(), at(place));
  }
  /// Which chunk a place owns, and which of its owners it is.
  index_t chunk(index_t place) const {
    return detail::index_within(all_ & ~free_, mesh_.extents(), at(place));
  }
  index_t replica(index_t place) const {
    return detail::index_within(free_, mesh_.extents(), at(place));
  }
  index_t replicas() const { return mesh_.size(free_); }

 private:
  Shape at(index_t place) const { return coordinate_of(mesh_.extents(), place); }

  const MeshState& mesh_;
  StepLayout layout_;
  AxisMask all_;
  AxisMask free_;
  std::vector<index_t> places_;
};

/// Whether `owner` sends its chunk to `receiver`, both members of the union that have a place: what
/// a receiver owns it takes from itself.
inline bool is_source(const OwnerMap& from, const OwnerMap& to, int owner, int receiver) {
  if (owner == receiver) return true;
  const index_t source = from.place(owner), target = to.place(receiver), own = from.place(receiver);
  if (own >= 0 && from.chunk(own) == from.chunk(source)) return false;
  return from.replica(source) == (to.replica(target) + to.chunk(target)) % from.replicas();
}

/// What the member `self` of the union sends and receives.
/// @cost O(ranks of both meshes)
template <std::same_as<OwnerMap> S>
Transfers cross_transfers(const S& from, const S& to, const Shape& shape, int members, int self) {
  Transfers transfers;
  const index_t source = from.place(self), target = to.place(self);
  const Box had = source < 0 ? Box{} : from.box(source, shape);
  const Box wanted = target < 0 ? Box{} : to.box(target, shape);
  for (int peer = 0; peer < members; ++peer) {
    if (target >= 0 && from.place(peer) >= 0 && is_source(from, to, peer, self)) {
      const Box theirs = from.box(from.place(peer), shape);
      if (const Box box = intersect(theirs, wanted); !box.empty())
        transfers.receives.push_back(
            {peer, box.relative_to(theirs.begin), box.relative_to(wanted.begin)});
    }
    if (source >= 0 && to.place(peer) >= 0 && is_source(from, to, self, peer)) {
      const Box theirs = to.box(to.place(peer), shape);
      if (const Box box = intersect(had, theirs); !box.empty())
        transfers.sends.push_back(
            {peer, box.relative_to(had.begin), box.relative_to(theirs.begin)});
    }
  }
  return transfers;
}

/// The global shape, which ranks outside of the source mesh do not know.
template <std::same_as<UnionGroup> Union>
Shape agree_on_shape(Shape shape, const MeshState& source, const Union& ranks) {
  Collective call;
  call.kind = CollectiveKind::broadcast;
  call.root = ranks.place_of(source.world_ranks()[0]);
  const Shape extents(std::array<index_t, 1>{max_dims});
  call.source = ConstView::dense(shape.values.data(), DType::int64, extents);
  call.destination = View::dense(shape.values.data(), DType::int64, extents);
  call.operation = "redistribute";
  ranks.group->host().run(call);
  return shape;
}

template <class Device>
Block cross_redistribute(const Layout& source, const Layout& target, Block block,
                         const MeshState& from, const MeshState& to, Shape& shape) {
  if (from.world() != to.world())
    throw Error("redistribute", "the meshes were made from different groups of ranks",
                {.mesh = from.describe() + " and " + to.describe(), .rank = from.world_rank()});
  if (!from.is_member() && !to.is_member()) return block;
  const UnionGroup ranks = union_group(from, to);
  shape = agree_on_shape(shape, from, ranks);
  const DType dtype = block.view.dtype;

  StepLayout now{source};
  const Layout reduced = source.with_partials_as(Placement::replicate());
  while (const unsigned group = cleave::detail::next_partial_group(now.layout, reduced)) {
    const Step step =
        cleave::detail::scatter_step(now, group, cleave::detail::op_of(now.layout, group), shape.dims);
    Plan plan;
    plan.append(step);
    if (from.is_member())
      block = execute<Device>(plan, std::move(block), {from, shape, "redistribute"});
    now = step.to;
  }

  const StepLayout end{target};
  const Transfers transfers = cross_transfers(OwnerMap(from, now, ranks), OwnerMap(to, end, ranks),
                                              shape, ranks.group->size(), ranks.group->rank());
  Block result =
      allocate<Device>(dtype, to.is_member() ? own_box(end, {to, shape, "redistribute"}).extents()
                                             : Shape::filled(shape.dims, 0));
  Collective call;
  call.kind = CollectiveKind::exchange;
  call.source = block.view;
  call.destination = result.view;
  call.sends = transfers.sends;
  call.receives = transfers.receives;
  call.global_count = shape.product();
  call.operation = "redistribute";
  ranks.group->run(call);
  return result;
}

}  // namespace cleave::redistribution
