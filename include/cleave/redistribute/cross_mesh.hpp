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
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/redistribute_local.hpp>
#include <cleave/redistribute/run_plan.hpp>

namespace cleave::inline v0::redistribution {

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

/// The numbers of ranks in the union of two meshes.
template <std::same_as<UnionGroup> Union>
struct UnionNumbers final : GroupNumbers {
  const Union& members;
  const MeshState &from, &to;
  const ExchangeSide& before;
  std::vector<index_t> there;  ///< in the source mesh

  UnionNumbers(const Union& ranks, const MeshState& source, const MeshState& target,
               const ExchangeSide& side)
      : members(ranks), from(source), to(target), before(side), there(places_in(source, ranks)) {}
  int owner(const Shape& at) const override { return number(from, at); }
  int receiver(const Shape& at) const override { return number(to, at); }
  bool owns_chunk(const Shape& at) const override {
    const index_t place = there[std::size_t(receiver(at))];
    return place >= 0 && before.is_own_chunk(coordinate_of(from.extents(), place));
  }

 private:
  int number(const MeshState& mesh, const Shape& at) const {
    return members.place_of(mesh.world_ranks()[std::size_t(linear_index(mesh.extents(), at))]);
  }
};

/// The layout with the cut points of the source mesh, which other ranks need not know.
template <std::same_as<UnionGroup> Union>
Layout with_points_of_mesh(Layout layout, const MeshState& mesh, const Union& ranks) {
  for (int a = 0; a < layout.axes; ++a) {
    if (layout[a].kind != PlacementKind::cuts) continue;
    std::vector<index_t> points(std::size_t(mesh.extents()[a]) + 1);
    if (mesh.is_member()) {
      const cleave::detail::CutPoints& own = cleave::detail::cut_points(layout[a].number);
      std::copy(own.at, own.at + points.size(), points.begin());
    }
    ranks.group->host().run(cleave::detail::broadcast_call(
        View::dense(points.data(), DType::int64, Shape::filled(1, index_t(points.size()))),
        "redistribute", ranks.place_of(mesh.world_ranks()[0])));
    layout[a].number = cleave::detail::number_of_points(points);
  }
  return layout;
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
  const Layout known = with_points_of_mesh(source, from, ranks);
  if (const std::string misfit = misfit_of_cuts(target, shape, to.extents()); !misfit.empty())
    throw Error("redistribute", misfit,
                {to_string(shape), to_string(target), to.describe(), from.world_rank()});
  const DType dtype = block.view.dtype;

  StepLayout now{known};
  const Layout reduced = known.with_partials_as(Placement::replicate());
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
  const auto self = [](const MeshState& mesh) {
    return mesh.is_member() ? &mesh.coordinate() : nullptr;
  };
  const ExchangeSide before(now, shape, from.extents(), self(from), ~0u);
  const ExchangeSide after(end, shape, to.extents(), self(to), ~0u);
  const UnionNumbers<UnionGroup> numbers(ranks, from, to, before);
  const bool has_runs = !now.is_box() || !end.is_box();
  Call result;  // not run as it is: the group is that of both meshes
  if (has_runs) {
    result.runs = std::make_shared<RunTransfers>(plan_runs(before, after, numbers));
    result.transfers = result.runs;
    if (from.is_member()) block = packed_by<Device>(result.runs->pack, block);
  } else {
    result.transfers = std::make_shared<Transfers>(plan_transfers(before, after, numbers));
  }
  Shape extents =
      to.is_member() ? own_extents(end, {to, shape, "redistribute"}) : Shape::filled(shape.dims, 0);
  if (has_runs) extents = Shape::filled(1, extents.product());
  result.result = allocate<Device>(dtype, extents);
  Collective call = Collective::exchange(CollectiveKind::exchange, block.view, result.result.view,
                                         result.transfers->sends, result.transfers->receives)
                        .named("redistribute");
  call.global_count = shape.product();
  ranks.group->run(call);
  return finish<Device>(std::move(result));
}

}  // namespace cleave::inline v0::redistribution
