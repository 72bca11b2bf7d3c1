// One large matrix, by ScaLAPACK, from any placement: scalapack::cholesky, scalapack::solve.
//
//     // l[BC0,BC1] = scalapack::cholesky(a[S0,R])                  an exchange of a, then p?potrf
//     // x[BC1,BC0] = scalapack::solve(a[S0,R], b[S0,R])            of a and b, then p?getrf,
//     p?getrs
//
// Matrices are redistributed to BlockCyclic<0, 64> on the first axis of the mesh and BlockCyclic<1,
// 64> on the second; or stay, if blocks of one length are dealt already. Factorisations overwrite
// copies, never what they are given. For ranks that are MPI processes.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/interop/scalapack.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/placement/placement.hpp>
#if CLEAVE_HAS_SCALAPACK
#include <cleave/interop/mpi/scalapack_functions.hpp>
#endif

namespace cleave::detail {

/// The length of blocks that a matrix is cut into, square ones unless an axis is left.
inline constexpr int tile_extent = 64;

/// The length of the blocks of a layout, if all axes that cut deal blocks of one length; else 0.
constexpr int tile_of(const Layout& layout) {
  int block = 0;
  for (int a = 0; a < layout.axes; ++a) {
    if (layout[a] == Placement::replicate()) continue;
    if (layout[a].kind != PlacementKind::block_cyclic || layout[a].number < 1 ||
        (block != 0 && block != layout[a].number))
      return 0;
    block = layout[a].number;
  }
  return block;
}

template <int Axis>
using TilePlacement =
    std::conditional_t<Axis == 0, BlockCyclic<0, tile_extent>,
                       std::conditional_t<Axis == 1, BlockCyclic<1, tile_extent>, Replicate>>;
template <int... Axis>
constexpr Placements<TilePlacement<Axis>...> tile_placements(std::integer_sequence<int, Axis...>) {
  return {};
}

/// The placements in which ScaLAPACK factorises a matrix that lies as X does.
template <class X>
constexpr auto tiled_placements() {
  if constexpr (tile_of(X::layout) > 0) return typename X::placements_type{};
  else return tile_placements(std::make_integer_sequence<int, X::mesh_type::axis_count>{});
}

/// A matrix in memory of its own that ScaLAPACK may overwrite, and its descriptor.
template <class X>
struct Tiles {
  X matrix;
  scalapack::Descriptor descriptor;

  static constexpr int block = tile_of(X::layout);
  auto* data() const { return matrix.to_local().data(); }
};
template <class X, class P>
auto tiles_of(const X& x, P placements) {
  const auto there = x.redistribute(placements);
  using Y = std::remove_const_t<decltype(there)>;
  Tiles<Y> tiles{Y::unchecked(there.to_local().clone(), there.mesh(), there.shape()), {}};
  tiles.descriptor = scalapack::descriptor(tiles.matrix);
  // a dimension that no axis cuts is one block of any length; ScaLAPACK requires square ones
  tiles.descriptor[4] = tiles.descriptor[5] = Tiles<Y>::block;
  return tiles;
}

template <class X>
void require_square_of_scalapack(const char* operation, const X& x) {
  static_assert(X::dims == 2, "cleave: ScaLAPACK has matrices: a DTensor of two dimensions");
  if (x.shape()[0] != x.shape()[1]) throw Error(operation, "the matrix is not square", x.context());
}

}  // namespace cleave::detail

namespace cleave::scalapack {

/// The Cholesky factor l of a Hermitian positive definite matrix, a = l l^H, by p?potrf.
///
/// @param a     [n, n], float, double or complex, under any placements. What is above the diagonal
///              is not read
/// @return      [n, n], a lower triangle, dealt in blocks: as a is, if it is dealt in blocks of one
///              length, else in blocks of 64
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a; n³/3 multiplications and additions, shared by the
///              ranks. Has no gradient
/// @throws Error on every rank if the matrix is not square or not positive definite, or if the
/// ranks
///              are not MPI processes
template <class T, int Rank, class Mesh, class P>
auto cholesky(const DTensor<T, Rank, Mesh, P>& a) {
  using X = DTensor<T, Rank, Mesh, P>;
  detail::require_square_of_scalapack("scalapack::cholesky", a);
  const auto tiles = detail::tiles_of(a, detail::tiled_placements<X>());
#if CLEAVE_HAS_SCALAPACK
  using Call = detail::Scalapack<T>;
  const int n = int(a.shape()[0]), first = 1, second = 2, below = n - 1;
  const int* const described = tiles.descriptor.data();
  if (n == 0) return tiles.matrix;
  int info = 0;
  Call::potrf("U", &n, tiles.data(), &first, &first, described, &info, 1);
  if (info != 0)
    throw Error("scalapack::cholesky",
                "the matrix is not positive definite: so says its leading minor of order " +
                    std::to_string(info),
                a.context());
  const T zero = 0;
  if (n > 1)
    Call::laset("L", &below, &below, &zero, &zero, tiles.data(), &second, &first, described, 1);
#endif
  return tiles.matrix;
}

/// The solution x of a x = b, by p?getrf and p?getrs.
///
/// @param a     [n, n], float, double or complex, under any placements
/// @param b     [n, k], under any placements on the same mesh
/// @return      [n, k], dealt in blocks; as it holds columns, placements are those of a transpose
/// @collective  every rank of the mesh
/// @cost        a redistribution or copy of a and of b; 2 n³/3 + 2 n² k multiplications and
///              additions, shared by the ranks. Has no gradient
/// @throws Error on every rank if the extents do not fit, a is exactly singular, or the ranks are
///              not MPI processes
template <class T, class Mesh, class P, class Q>
auto solve(const DTensor<T, 2, Mesh, P>& a, const DTensor<T, 2, Mesh, Q>& b) {
  using X = DTensor<T, 2, Mesh, P>;
  detail::require_square_of_scalapack("scalapack::solve", a);
  if (a.shape()[0] != b.shape()[0])
    throw Error("scalapack::solve",
                "the matrix has " + std::to_string(a.shape()[0]) + " rows, the right-hand sides " +
                    std::to_string(b.shape()[0]),
                a.context());
  const auto placements = detail::tiled_placements<X>();
  const auto tiles = detail::tiles_of(a, placements);
  const auto sides = detail::tiles_of(transpose(b), placements);
#if CLEAVE_HAS_SCALAPACK
  using Call = detail::Scalapack<T>;
  const int n = int(a.shape()[0]), columns = int(b.shape()[1]), first = 1;
  if (n > 0 && columns > 0) {
    // what rows hold is transpose(a), of which getrs solves with the transpose
    std::vector<int> pivots(std::size_t(tiles.matrix.to_local().extent(1) + tiles.block));
    int info = 0;
    Call::getrf(&n, &n, tiles.data(), &first, &first, tiles.descriptor.data(), pivots.data(),
                &info);
    if (info != 0)
      throw Error("scalapack::solve",
                  "the matrix is singular: its pivot " + std::to_string(info) + " is 0",
                  a.context());
    Call::getrs("T", &n, &columns, tiles.data(), &first, &first, tiles.descriptor.data(),
                pivots.data(), sides.data(), &first, &first, sides.descriptor.data(), &info, 1);
  }
#endif
  return transpose(sides.matrix);
}

}  // namespace cleave::scalapack
