// Redistribution between two meshes of one world.
//
// Addends are first reduced on the source mesh, by reduce-scatter; then one exchange over the
// ranks of both meshes sends every rank exactly the elements that it must own and lacks. A chunk of
// the source may have several owners; the receivers of a chunk are spread over its owners. The
// meshes may have different axes, extents and orders of ranks, and share all, some or none of their
// ranks.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/redistribute/run_plan.hpp>

namespace cleave::redistribution {

// Templates of a single type: compiled where they are called, not wherever this file is included.

/// The ranks of two meshes together.
struct UnionGroup {
  std::vector<int> ranks{};  ///< world ranks, ascending
  Communicator* group = nullptr;

  int place_of(int world_rank) const {
    return int(std::lower_bound(ranks.begin(), ranks.end(), world_rank) - ranks.begin());
  }
};

/// @collective the first time for these ranks: every rank of both meshes
template <std::same_as<MeshState> Mesh>
UnionGroup union_group(const Mesh& a, const Mesh& b) {
  UnionGroup result;
  result.ranks = a.world_ranks();
  result.ranks.insert(result.ranks.end(), b.world_ranks().begin(), b.world_ranks().end());
  std::sort(result.ranks.begin(), result.ranks.end());
  result.ranks.erase(std::unique(result.ranks.begin(), result.ranks.end()), result.ranks.end());
  result.group = &a.world()->cached_subgroup(result.ranks, "meshes");
  return result;
}

/// The index in a mesh of each member of the union, -1 outside of the mesh.
template <std::same_as<UnionGroup> Union>
std::vector<index_t> places_in(const MeshState& mesh, const Union& members) {
  std::vector<index_t> places(members.ranks.size(), -1);
  for (std::size_t i = 0; i < mesh.world_ranks().size(); ++i)
    places[std::size_t(members.place_of(mesh.world_ranks()[i]))] = index_t(i);
  return places;
}

/// The transfers of this rank.
template <std::same_as<UnionGroup> Union>
Transfers cross_transfers(const Union& members, const MeshState& from, const StepLayout& source,
                          const MeshState& to, const StepLayout& target, const Shape& shape) {
  const auto self = [](const MeshState& mesh) {
    return mesh.is_member() ? &mesh.coordinate() : nullptr;
  };
  const ExchangeSide before(source, shape, from.extents(), self(from), ~0u);
  const ExchangeSide after(target, shape, to.extents(), self(to), ~0u);
  const auto number_in = [&](const MeshState& mesh) {
    return [&members, &mesh](const Shape& at) {
      return members.place_of(mesh.world_ranks()[std::size_t(linear_index(mesh.extents(), at))]);
    };
  };
  const std::vector<index_t> there = places_in(from, members);
  const auto owns_chunk = [&, number = number_in(to)](const Shape& at) {
    const index_t place = there[std::size_t(number(at))];
    return place >= 0 && before.is_own_chunk(coordinate_of(from.extents(), place));
  };
  return plan_transfers(before, after, number_in(from), number_in(to), owns_chunk);
}

template <class Device>
Block cross_redistribute(const Layout& source, const Layout& target, Block block,
                         const MeshState& from, const MeshState& to, Shape& shape) {
  if (from.world() != to.world())
    throw Error("redistribute", "the meshes were made from different groups of ranks",
                {.mesh = from.describe() + " and " + to.describe(), .rank = from.world_rank()});
  if (!from.is_member() && !to.is_member()) return block;
  const UnionGroup ranks = union_group(from, to);
  // ranks outside of the source mesh do not know the shape
  shape = cleave::detail::broadcast_shape(ranks.group->host(), shape, "redistribute",
                                          ranks.place_of(from.world_ranks()[0]));
  const DType dtype = block.view.dtype;

  StepLayout now{source};
  const Layout reduced = source.with_partials_as(Placement::replicate());
  while (const unsigned group = cleave::detail::next_partial_group(now.layout, reduced)) {
    const Step step = cleave::detail::scatter_step(
        now, group, cleave::detail::op_of(now.layout, group), shape.dims);
    Plan plan;
    plan.append(step);
    if (from.is_member())
      block = execute<Device>(plan, std::move(block), {from, shape, "redistribute"});
    now = step.to;
  }

  const StepLayout end{target};
  const Transfers transfers = cross_transfers(ranks, from, now, to, end, shape);
  Block result =
      allocate<Device>(dtype, to.is_member() ? own_box(end, {to, shape, "redistribute"}).extents()
                                             : Shape::filled(shape.dims, 0));
  Collective call = Collective::exchange(CollectiveKind::exchange, block.view, result.view,
                                         transfers.sends, transfers.receives)
                        .named("redistribute");
  call.global_count = shape.product();
  ranks.group->run(call);
  return result;
}

}  // namespace cleave::redistribution
