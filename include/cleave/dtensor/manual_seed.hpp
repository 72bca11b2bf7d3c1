// The random state of a program: set, save, restore, and compare it between the ranks of a mesh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/exchange_values.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/draws.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0 {

/// Sets the seed of this rank's draws and resets their count. All ranks set the same seed.
///
/// @param owner  a World, a mesh, or anything else with a `communicator()`
/// @collective   none, but draws on a mesh need equal states on its ranks
template <class Owner>
void manual_seed(const Owner& owner, std::uint64_t seed) {
  detail::RankDraws::of(owner.communicator().state()).state = {seed, 0};
}

/// The state of this rank's next draw, to be saved with the program's state.
template <class Owner>
RandomState random_state(const Owner& owner) {
  return detail::RankDraws::of(owner.communicator().state()).state;
}
template <class Owner>
void set_random_state(const Owner& owner, const RandomState& state) {
  detail::RankDraws::of(owner.communicator().state()).state = state;
}

/// Sets every rank's state to that of the first rank, for use after draws on some ranks only.
///
/// @param owner  a World or a mesh
/// @collective   every rank of it: one broadcast of 16 bytes
template <class Owner>
void synchronize_random_state(const Owner& owner) {
  Communicator& group = owner.communicator().host();
  RandomState& state = detail::RankDraws::of(group.state()).state;
  std::array<std::uint64_t, 2> words{state.seed, state.offset};
  group.run(detail::broadcast_call(View::dense(words.data(), DType::uint64, Shape::filled(1, 2)),
                                   "synchronize_random_state"));
  state = {words[0], words[1]};
}

namespace detail {

/// The offset that a region adds to the seed of a rank of the world.
inline std::uint64_t shift_of(const RandomRegion* region, int world_rank) {
  return region == nullptr ? 0 : region->shift.at(std::size_t(world_rank));
}

/// @throws Error that names the ranks whose state differs from that of the mesh's first rank
inline void require_equal(const MeshState& mesh, const std::vector<RandomState>& states,
                          const char* operation) {
  std::string others;
  const auto described = [&](std::size_t r) {
    return "rank " + std::to_string(mesh.world_ranks()[r]) + " (seed " +
           std::to_string(states[r].seed) + ", offset " + std::to_string(states[r].offset) + ")";
  };
  for (std::size_t r = 1; r < states.size(); ++r)
    if (!(states[r] == states[0])) others += (others.empty() ? "" : ", ") + described(r);
  if (others.empty()) return;
  throw Error(operation,
              "the random states of the ranks differ: " + others + " from " + described(0) +
                  "; set the same seed on all ranks, and draw on all ranks or call "
                  "synchronize_random_state",
              {.mesh = mesh.describe(), .rank = mesh.world_rank()});
}

/// @throws Error if ranks that hold the same elements would draw different ones
inline void require_equal_replicas(const MeshState& mesh, const Layout& layout,
                                   const char* operation) {
  const RandomRegion* const region = RankDraws::of(mesh.world()->state()).region.get();
  if (region == nullptr || !mesh.is_member()) return;
  const std::uint64_t mine = shift_of(region, mesh.world()->rank());
  for (int a = 0; a < layout.axes; ++a) {
    if (layout[a].shards()) continue;
    Shape at = mesh.coordinate();
    for (at[a] = 0; at[a] < mesh.extents()[a]; ++at[a]) {
      const auto member = std::size_t(linear_index(mesh.extents(), at));
      if (shift_of(region, mesh.world_ranks()[member]) == mine) continue;
      throw Error(
          operation,
          "inside this distribute_region the ranks along axis '" + mesh.name(a) +
              "' may draw different numbers, but the array is not sharded over it",
          {.placements = to_string(layout), .mesh = mesh.describe(), .rank = mesh.world_rank()});
    }
  }
}

/// Takes the next `count` draws on a mesh: returns their state and advances that of the rank.
///
/// @collective    with CLEAVE_CHECK=collective every rank of the mesh, to compare the states
/// @throws Error  if the states differ
inline RandomState take_draws(const MeshState& mesh, const char* operation, std::uint64_t count) {
  RankState& rank = mesh.world()->state();
  RankDraws& draws = RankDraws::of(rank);
  const RandomState state = take_draws(draws.state, count);
  if (rank.check == CheckLevel::collective && mesh.is_member() && mesh.size() > 1) {
    const RandomState base{state.seed - shift_of(draws.region.get(), mesh.world()->rank()),
                           state.offset};
    require_equal(mesh, gather_values(mesh.group().host(), base, operation), operation);
  }
  return state;
}

/// Takes the next draw of an array with this layout.
/// @throws Error  also, inside a region, if replicas would differ
inline RandomState take_draws(const MeshState& mesh, const Layout& layout, const char* operation) {
  require_equal_replicas(mesh, layout, operation);
  return take_draws(mesh, operation, 1);
}

}  // namespace detail

}  // namespace cleave::inline v0
