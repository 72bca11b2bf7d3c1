// permutation: the numbers from 0 to n - 1 in random order, the same on any mesh.
#pragma once

#include <cleave/dtensor/random.hpp>
#include <cleave/kernels/permuted_index.hpp>

namespace cleave::inline v0 {

namespace detail {

inline constexpr auto permutation_of = [](index_t n) {
  return [n](const RandomState& state) { return kernels::Permutation(n, state); };
};

}  // namespace detail

/// A random permutation of the numbers in [0, n): `permutation(n, mesh, Shard<0>{})`.
///
/// Element i is computed from i alone: no table, no sort, no communication.
/// @collective as `rand`
/// @cost       time proportional to max(n, 256) / ranks; no memory besides the result
/// @throws Error if n is negative
template <class Mesh, class... P>
  requires is_device_mesh<Mesh>
auto permutation(index_t n, const Mesh& mesh, P... placements) {
  return detail::fill_from("permutation", detail::permutation_of(n),
                           detail::make_empty<index_t>({n}, mesh, placements...));
}

/// The same in a local tensor, drawn with the given state.
inline auto permutation(index_t n, RandomState& state) {
  return detail::fill_from("permutation", detail::permutation_of(n),
                           detail::make_local<index_t>({n}), state);
}

}  // namespace cleave::inline v0
