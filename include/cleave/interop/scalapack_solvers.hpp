// One large matrix, by ScaLAPACK, from any placement: scalapack::cholesky, solve, inv, det.
//
//     // l[BC0,BC1] = scalapack::cholesky(a[S0,R])                  an exchange of a, then p?potrf
//     // x[BC1,BC0] = scalapack::solve(a[S0,R], b[S0,R])            of a and b, then p?getrf,
//     p?getrs
//
// Matrices are redistributed to BlockCyclic<0, 64> on the first axis of the mesh and BlockCyclic<1,
// 64> on the second; or stay, if blocks of one length are dealt already. Factorisations overwrite
// copies, never what they are given. For ranks that are MPI processes.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/interop/scalapack.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/placement/ownership.hpp>
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

/// The global indices of what this rank has of dimension d, ascending.
template <class X>
std::vector<index_t> global_indices(const X& x, int d) {
  const DimOwnership own(X::layout, {0, 1, 2, 3, 4, 5, 6, 7}, d, x.shape()[std::size_t(d)],
                         x.mesh().extents());
  const auto parts = own.parts_of(x.mesh().coordinate());
  std::vector<index_t> indices;
  for (index_t i = 0; i < x.to_local().extent(d); ++i) indices.push_back(own.global(parts, i));
  return indices;
}

/// Calls visit(i, j, global index) for the elements on the diagonal of x that this rank has.
template <class X, class Visit>
void each_on_diagonal(const X& x, const Visit& visit) {
  const std::vector<index_t> rows = global_indices(x, 0), columns = global_indices(x, 1);
  for (std::size_t i = 0, j = 0; i < rows.size() && j < columns.size();) {
    if (rows[i] == columns[j]) visit(index_t(i), index_t(j), rows[i]);
    if (rows[i] <= columns[j]) ++i;
    else ++j;
  }
}

/// Reduces what the ranks of a matrix have, each a tensor of its own: replicas of it, once.
/// @collective every rank of the mesh
template <class Op, class X, class Y>
auto reduced_over_parts(const X& of, const Y& mine) {
  return [&]<class... P>(const Placements<P...>&) {
    const auto parts = from_local(
        mine, of.mesh(),
        Placements<std::conditional_t<std::is_same_v<P, Replicate>, Replicate, Partial<Op>>...>{});
    return parts.redistribute(replicated_t<int(sizeof...(P))>{});
  }(typename X::placements_type{});
}

/// Calls a function of ScaLAPACK twice, with work arrays and their lengths: first with the lengths
/// -1, for which it writes the lengths that it requires.
/// @tparam W    the element type of each array
/// @param more  elements that each array has beyond its length
template <class... W>
void call_with_work_arrays(const auto& call, index_t more = 0) {
  std::tuple<std::vector<W>...> arrays{std::vector<W>(1)...};
  std::array<int, sizeof...(W)> lengths;
  lengths.fill(-1);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto make = [&] {
      std::apply(call, std::tuple_cat(std::tuple{std::get<I>(arrays).data(),
                                                 static_cast<const int*>(&lengths[I])}...));
    };
    make();
    ((lengths[I] = int(std::real(std::get<I>(arrays)[0])) + int(more)), ...);
    (std::get<I>(arrays).resize(std::size_t(lengths[I])), ...);
    make();
  }(std::index_sequence_for<W...>{});
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

/// The inverse of a matrix, by p?getrf and p?getri. To solve a system, call scalapack::solve, which
/// is faster and more accurate.
///
/// @param a     [n, n], float, double or complex, under any placements
/// @return      [n, n], dealt in blocks as the result of scalapack::cholesky
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a; 2 n³ multiplications and additions, shared by the
///              ranks. Has no gradient
/// @throws Error on every rank if the matrix is not square or exactly singular, or the ranks are
///              not MPI processes
template <class T, class Mesh, class P>
auto inv(const DTensor<T, 2, Mesh, P>& a) {
  detail::require_square_of_scalapack("scalapack::inv", a);
  const auto tiles = detail::tiles_of(a, detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
#if CLEAVE_HAS_SCALAPACK
  using Call = detail::Scalapack<T>;
  const int n = int(a.shape()[0]), first = 1;
  const int* const described = tiles.descriptor.data();
  if (n == 0) return tiles.matrix;
  std::vector<int> pivots(std::size_t(tiles.matrix.to_local().extent(1) + tiles.block));
  int info = 0;
  Call::getrf(&n, &n, tiles.data(), &first, &first, described, pivots.data(), &info);
  if (info == 0)
    detail::call_with_work_arrays<T, int>([&](auto... work) {
      Call::getri(&n, tiles.data(), &first, &first, described, pivots.data(), work..., &info);
    });
  if (info != 0)
    throw Error("scalapack::inv",
                "the matrix is singular: its pivot " + std::to_string(info) + " is 0", a.context());
#endif
  return tiles.matrix;
}

/// The determinant of a matrix, by p?getrf.
///
/// @param a     [n, n], float, double or complex, under any placements
/// @return      a DTensor without dimensions, the same on every rank; 1 for n = 0
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a; 2 n³/3 multiplications and additions, shared by
///              the ranks. Has no gradient
/// @throws Error on every rank if the matrix is not square, or the ranks are not MPI processes
template <class T, class Mesh, class P>
auto det(const DTensor<T, 2, Mesh, P>& a) {
  detail::require_square_of_scalapack("scalapack::det", a);
  const auto tiles = detail::tiles_of(a, detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
  const Tensor<T, 0> product{{}};
  product.fill_(T(1));
#if CLEAVE_HAS_SCALAPACK
  const int n = int(a.shape()[0]), first = 1;
  if (n > 0) {
    const auto& local = tiles.matrix.to_local();
    std::vector<int> pivots(std::size_t(local.extent(1) + tiles.block));
    int info = 0;
    detail::Scalapack<T>::getrf(&n, &n, tiles.data(), &first, &first, tiles.descriptor.data(),
                                pivots.data(), &info);
    detail::each_on_diagonal(tiles.matrix, [&](index_t i, index_t j, index_t at) {
      const T pivot = local(i, j);
      T& all = *product.data();
      all = kernels::times(all, pivots[std::size_t(j)] == at + 1 ? pivot : -pivot);
    });
  }
#endif
  return detail::reduced_over_parts<Product>(tiles.matrix, product);
}

}  // namespace cleave::scalapack
