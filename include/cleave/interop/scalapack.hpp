// Matrices of ScaLAPACK as DTensors and DTensors as matrices of ScaLAPACK, without a copy.
//
// ScaLAPACK stores columns, cleave stores rows: to ScaLAPACK, the local arrays of x[m, n] are the
// matrix [n, m], on the grid whose process rows are the ranks along which x's columns are cut.
//
//     // c = a b is transpose(c) = transpose(b) transpose(a): the operands change places
//     const auto da = scalapack::descriptor(a), db = scalapack::descriptor(b), ..;
//     pdgemm_("N", "N", &columns, &rows, &inner, &one, b.to_local().data(), &i1, &i1, db.data(),
//             a.to_local().data(), &i1, &i1, da.data(), &zero, c.to_local().data(), ..);
//
// For ranks that are MPI processes; requires CLEAVE_HAS_SCALAPACK.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/placement/placement.hpp>
#if CLEAVE_HAS_SCALAPACK
#include <cleave/interop/mpi/blacs.hpp>
#endif

namespace cleave::inline v0::scalapack {

/// A descriptor of a dense matrix: DTYPE_ = 1, CTXT_, M_, N_, MB_, NB_, RSRC_, CSRC_, LLD_.
using Descriptor = std::array<int, 9>;

}  // namespace cleave::inline v0::scalapack

namespace cleave::inline v0::detail {

/// Whether the axes that cut dimension d deal blocks of one length in turn, as ScaLAPACK does.
constexpr bool deals_blocks(const Layout& layout, int d) {
  int axes = 0, chunks = 0, other = 0;
  std::int32_t block = 0;
  for (int a = 0; a < layout.axes; ++a) {
    const Placement& p = layout[a];
    if (!p.shards(d)) continue;
    const bool is_cyclic = p.kind == PlacementKind::block_cyclic;
    if (p.kind == PlacementKind::shard) ++chunks;
    else if (!is_cyclic || p.number < 1 || (axes > 0 && block != p.number)) ++other;
    block = p.number;
    ++axes;
  }
  return other == 0 && (chunks == 0 || axes == 1);
}

/// The length of these blocks: ceil-chunks are blocks of which each rank has one.
constexpr index_t dealt_block(const Layout& layout, int d, index_t extent, const Shape& mesh) {
  index_t block = extent;
  for (int a = 0; a < layout.axes; ++a)
    if (layout[a].shards(d))
      block = layout[a].kind == PlacementKind::block_cyclic ? layout[a].number
                                                            : (extent + mesh[a] - 1) / mesh[a];
  return block < 1 ? 1 : block;
}

template <class X>
constexpr void require_scalapack() {
#if CLEAVE_HAS_SCALAPACK
  constexpr bool found = true;
#else
  constexpr bool found = false;
#endif
  static_assert(found || sizeof(X) == 0,
                "cleave: ScaLAPACK was not found when this was built: install the Debian package "
                "libscalapack-openmpi-dev (Meson option scalapack)");
  static_assert(X::dims == 2, "cleave: ScaLAPACK has matrices: a DTensor of two dimensions");
  static_assert(std::is_same_v<typename X::device_type, Host>,
                "cleave: ScaLAPACK runs on the host; call x.to_host() first");
  static_assert(!X::layout.has_partial(),
                "cleave: ScaLAPACK has no addends: redistribute the Partial axes first");
  static_assert(deals_blocks(X::layout, 0) && deals_blocks(X::layout, 1),
                "cleave: ScaLAPACK cuts a dimension by Shard on one axis, or by BlockCyclic with "
                "one block length on its axes; redistribute first");
}

/// The descriptor of the local arrays of a matrix of this layout.
/// @param leading  the distance of rows in memory
template <class X>
scalapack::Descriptor row_major_descriptor(const std::array<index_t, 2>& shape,
                                           const typename X::mesh_type& mesh, index_t leading,
                                           int context) {
  constexpr Layout layout = X::layout;
  const Shape& extents = mesh.extents();
  const index_t numbers[] = {shape[1], shape[0], dealt_block(layout, 1, shape[1], extents),
                             dealt_block(layout, 0, shape[0], extents), leading < 1 ? 1 : leading};
  for (const index_t number : numbers)
    if (number > std::numeric_limits<int>::max())
      throw Error(
          "scalapack::descriptor",
          "ScaLAPACK counts in 32 bits: " + std::to_string(number) + " is too large",
          {to_string(Shape(shape)), to_string(layout), mesh.describe(), mesh.state().world_rank()});
  const auto at = [&](int i) { return int(numbers[i]); };
  return {1, context, at(0), at(1), at(2), at(3), 0, 0, at(4)};
}

#if CLEAVE_HAS_SCALAPACK
template <class X>
int context_of(const MeshState& mesh) {
  return mesh.cache<BlacsContexts>().of(mesh, X::layout.sharding_axes(1),
                                        X::layout.sharding_axes(0));
}
#endif

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0::scalapack {

/// The descriptor of the local arrays of x: of the matrix transpose(x), as they hold rows.
///
/// @param x         [m, n], each dimension cut by Shard or by BlockCyclic; replicas have grids of
///                  their own. Rows must be contiguous
/// @return          describes [n, m] and `x.to_local().data()`; the context lives as long as the
///                  mesh
/// @collective      every rank of the mesh
/// @cost            one small all-gather; for the first x of a mesh and of the dimensions that its
///                  axes cut, a new BLACS context
/// @throws Error    on every rank if the elements of a rank's rows do not follow each other (pass a
///                  copy, or, of a transposed view, what it is the transpose of), if an extent
///                  exceeds an int, or if the ranks are not MPI processes
template <class T, int Rank, class Mesh, class P>
Descriptor descriptor(const DTensor<T, Rank, Mesh, P>& x) {
  using X = DTensor<T, Rank, Mesh, P>;
  detail::require_scalapack<X>();
  const auto& local = x.to_local();
  const auto& [rows, columns] = local.shape();
  const bool is_short = rows < 2 || columns < 1;
  const index_t leading = is_short ? columns : local.strides()[0];
  const bool has_rows = (columns < 2 || local.strides()[1] == 1) && leading >= columns;
  const auto all =
      detail::gather_values(x.mesh().communicator().host(), int(has_rows), "scalapack::descriptor");
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] == 0)
      throw Error("scalapack::descriptor",
                  "the rows of rank " + std::to_string(x.mesh().state().world_ranks()[r]) +
                      " are not contiguous; pass a copy of x, or transpose(x) if x is a transpose",
                  x.context());
#if CLEAVE_HAS_SCALAPACK
  return detail::row_major_descriptor<X>(x.shape(), x.mesh(), leading,
                                         detail::context_of<X>(x.mesh().state()));
#endif
}

/// The DTensor whose local arrays ScaLAPACK has made: the transpose of its matrix, without a copy.
///
///     // M x N in blocks of 64 x 32 on a grid of the mesh's extents, by rows ("Row")
///     const auto x = scalapack::adopt<BlockCyclic<1, 64>, BlockCyclic<0, 32>>(a, descriptor,
///     mesh); const auto matrix = transpose(x);  // [M, N], a view
///
/// @tparam P         the placements of the result [N, M]: process rows cut its dimension 1, process
///                   columns its dimension 0
/// @param data       this rank's part; must outlive the result and its views
/// @param described  the nine numbers of the descriptor
/// @collective       none
/// @throws Error     if the descriptor contradicts the placements: other block lengths, another
///                   place of this rank in the grid, or a first block that is not on process 0
template <class... P, class T, class Mesh>
auto adopt([[maybe_unused]] T* data, [[maybe_unused]] const Descriptor& described,
           [[maybe_unused]] const Mesh& mesh) {
  static_assert(sizeof...(P) == std::size_t(Mesh::axis_count),
                "cleave: scalapack::adopt takes exactly one placement per mesh axis");
  using X = DTensor<T, 2, Mesh, normalized_t<Placements<P...>, 2>>;
  detail::require_scalapack<X>();
#if CLEAVE_HAS_SCALAPACK
  const std::array<index_t, 2> shape{described[3], described[2]};
  const auto refuse = [&](const std::string& text) {
    throw Error("scalapack::adopt", text,
                {to_string(Shape(shape)), to_string(X::layout), mesh.describe(),
                 mesh.state().world_rank()});
  };
  const auto pair = [](int a, int b) { return std::to_string(a) + " x " + std::to_string(b); };
  if (described[0] != 1) refuse("DTYPE_ is not 1, a dense matrix");
  if (described[6] != 0 || described[7] != 0) refuse("the first block must be on process (0, 0)");
  const Descriptor own = detail::row_major_descriptor<X>(shape, mesh, described[8], described[1]);
  if (own[4] != described[4] || own[5] != described[5])
    refuse("the descriptor has blocks of " + pair(described[4], described[5]) +
           ", these placements of " + pair(own[4], own[5]));
  constexpr AxisMask along_rows = X::layout.sharding_axes(1),
                     along_columns = X::layout.sharding_axes(0);
  int rows = 0, columns = 0, row = 0, column = 0;
  Cblacs_gridinfo(described[1], &rows, &columns, &row, &column);
  const Shape &extents = mesh.extents(), &at = mesh.coordinate();
  const int height = int(mesh.state().size(along_rows)),
            width = int(mesh.state().size(along_columns));
  if (rows != height || columns != width)
    refuse("the grid of the descriptor is " + pair(rows, columns) + ", the ranks are " +
           pair(height, width));
  const int here_row = detail::dealt_place(extents, at, along_rows),
            here_column = detail::dealt_place(extents, at, along_columns);
  if (row != here_row || column != here_column)
    refuse("this rank is process (" + std::to_string(row) + ", " + std::to_string(column) +
           ") of the descriptor's grid, but the mesh places it at (" + std::to_string(here_row) +
           ", " + std::to_string(here_column) + ")");
  const Shape local = local_shape(X::layout, Shape(shape), extents, at);
  if (local[1] > described[8])
    refuse("LLD_ is " + std::to_string(described[8]) + ", this rank has columns of " +
           std::to_string(local[1]));
  return X::unchecked(
      X::local_type::adopt(data, to_array<2>(local), {index_t(described[8]), 1}, nullptr), mesh,
      shape);
#endif
}

}  // namespace cleave::inline v0::scalapack
