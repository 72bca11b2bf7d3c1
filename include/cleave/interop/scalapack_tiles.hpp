// How ScaLAPACK's functions are called on one large matrix that lies in any way: copies in blocks,
// their global indices, work arrays, and errors that all ranks agree on.
//
// Matrices are redistributed to BlockCyclic<0, 64> on the first axis of the mesh and BlockCyclic<1,
// 64> on the second; or stay, if blocks of one length are dealt already. Functions overwrite
// copies, never what they are given. For ranks that are MPI processes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/interop/scalapack.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/ops/shapes/squeeze.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0::detail {

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
template <class X>
Tiles<X> as_tiles(const X& matrix) {
  using R = kernels::real_t<typename X::value_type>;
  static_assert(std::is_same_v<R, float> || std::is_same_v<R, double>,
                "cleave: ScaLAPACK takes float, double and complex numbers of both; call "
                "cast<double>(x)");
  Tiles<X> tiles{matrix, scalapack::descriptor(matrix)};
  // a dimension that no axis cuts is one block of any length; ScaLAPACK requires square ones
  tiles.descriptor[4] = tiles.descriptor[5] = Tiles<X>::block;
  return tiles;
}
template <class X, class P>
auto tiles_of(const X& x, P placements) {
  const auto there = x.redistribute(placements);
  using Y = std::remove_const_t<decltype(there)>;
  return as_tiles(Y::unchecked(there.to_local().clone(), there.mesh(), there.shape()));
}

/// The same of a copy of x by columns, dealt as tiles_of deals: ScaLAPACK then sees x itself, not
/// its transpose.
template <class X, class P>
auto column_tiles_of(const X& x, P placements) {
  const auto turned = transpose(x.redistribute(placements));
  return tiles_of(turned, turned.placements());
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

/// A matrix dealt as X is: `element(i, j, row, column)` of local and of global indices. An element
/// of given global indices has the same local ones in all matrices that are dealt so.
template <class X, class Element>
X dealt(const typename X::mesh_type& mesh, index_t rows, index_t columns, const Element& element) {
  const std::array<index_t, 2> shape{rows, columns};
  const typename X::local_type local(
      to_array<2>(local_shape(X::layout, Shape(shape), mesh.extents(), mesh.coordinate())));
  const X matrix = X::unchecked(local, mesh, shape);
  const std::vector<index_t> i_rows = global_indices(matrix, 0),
                             j_columns = global_indices(matrix, 1);
  for (index_t i = 0; i < local.extent(0); ++i)
    for (index_t j = 0; j < local.extent(1); ++j)
      local(i, j) = element(i, j, i_rows[std::size_t(i)], j_columns[std::size_t(j)]);
  return matrix;
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

template <class T>
T conjugate_of(const T& x) {
  if constexpr (is_complex<T>) return std::conj(x);
  else return x;
}
template <class T>
Tensor<T, 0> number(const T& value) {
  const Tensor<T, 0> result{{}};
  result.fill_(value);
  return result;
}

/// The first element of the diagonal of x that is 0, from 1 on; 0 if there is none.
/// @collective every rank of the mesh, to which it is the same
template <class X>
index_t zero_on_diagonal(const char* operation, const X& x) {
  constexpr index_t none = std::numeric_limits<index_t>::max();
  index_t first = none;
  each_on_diagonal(x, [&](index_t i, index_t j, index_t at) {
    if (first == none && x.to_local()(i, j) == typename X::value_type(0)) first = at + 1;
  });
  first = reduce_values(x.mesh().communicator().host(), ReduceOp::min, first, operation);
  return first == none ? 0 : first;
}

/// The largest magnitude of a real or imaginary part of x.
/// @param counts    counts(row, column): whether the element of these global indices is read
/// @collective      every rank of the mesh, to which it is the same
/// @throws Error    on every rank if an element that counts is infinite or NaN
template <class X>
auto largest_part(const char* operation, const X& x, const ErrorContext& context,
                  const auto& counts) {
  using R = kernels::real_t<typename X::value_type>;
  constexpr R infinity = std::numeric_limits<R>::infinity();
  const std::vector<index_t> rows = global_indices(x, 0), columns = global_indices(x, 1);
  const auto& local = x.to_local();
  R largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const auto& element = local(index_t(i), index_t(j));
      if (!counts(rows[i], columns[j])) continue;
      for (const R part : {R(std::abs(std::real(element))), R(std::abs(std::imag(element)))})
        if (!(part <= largest)) largest = std::isfinite(part) ? part : infinity;
    }
  largest = reduce_values(x.mesh().communicator().host(), ReduceOp::max, largest, operation);
  if (largest == infinity)
    throw Error(operation, "the matrix has an element that is not finite", context);
  return largest;
}

/// Values of the rank that has the first element of x, on every rank of the mesh.
/// @collective every rank of the mesh
template <class X, class Y>
auto values_of_first(const X& x, const Y& values) {
  const auto begins = [&](int d) {
    const std::vector<index_t> indices = global_indices(x, d);
    return !indices.empty() && indices[0] == 0;
  };
  if (!begins(0) || !begins(1)) values.fill_(0);
  return reduced_over_parts<Sum>(x, values);
}

/// The length of a work array that ScaLAPACK writes as a number of the array's type, which rounds.
/// @throws Error if it is more than ScaLAPACK, which computes it in 32 bits, can count
template <class R>
int length_of_work(R length) {
  const R above = std::nextafter(length, std::numeric_limits<R>::infinity());
  if (!(length >= 0 && double(above) < double(std::numeric_limits<int>::max())))
    throw Error("scalapack",
                "ScaLAPACK counts in 32 bits: its work array is too large; use more processes");
  return int(above);
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
    ((lengths[I] = length_of_work(std::real(std::get<I>(arrays)[0])) + int(more)), ...);
    (std::get<I>(arrays).resize(std::size_t(lengths[I])), ...);
    make();
  }(std::index_sequence_for<W...>{});
}

/// @throws Error if the matrix x is not square
template <class X>
void require_square_of_scalapack(const char* operation, const X& x) {
  static_assert(X::dims == 2, "cleave: ScaLAPACK has matrices: a DTensor of two dimensions");
  if (x.shape()[0] != x.shape()[1]) throw Error(operation, "the matrix is not square", x.context());
}

/// The x of a system with the matrix a, of right-hand sides b, [n, k] or [n].
/// @param solve   returns the x [m, k] of right-hand sides [n, k]
/// @throws Error  on every rank if b is not on the same mesh, or has not as many rows as a
template <class A, class B>
auto solved_for(const char* operation, const A& a, const B& b, const auto& solve) {
  static_assert(std::is_same_v<typename A::value_type, typename B::value_type>,
                "cleave: the matrices and the right-hand sides have different element types; cast "
                "one of them");
  static_assert(B::dims == 1 || B::dims == 2,
                "cleave: right-hand sides of ScaLAPACK are [n, k], or [n]");
  if (!(a.mesh() == b.mesh()))
    throw Error(operation, "the operands are on different meshes", a.context());
  if (a.shape()[0] != b.shape()[0])
    throw Error(operation,
                "the matrix has " + std::to_string(a.shape()[0]) + " rows, the right-hand sides " +
                    std::to_string(b.shape()[0]),
                a.context());
  if constexpr (B::dims == 2) return solve(b);
  else return squeeze(solve(unsqueeze(b, dim<-1>{})), dim<-1>{});
}

/// The columns of b [n, k] in memory of their own, as ScaLAPACK takes them beside a: dealt as a is,
/// `element` of each, and zeros below up to the given number of rows.
template <class X, class B>
Tiles<X> sides_of(const Tiles<X>& a, const B& b, index_t rows, const auto& element) {
  using T = typename X::value_type;
  const auto there = transpose(b).redistribute(typename X::placements_type{});
  const auto& local = there.to_local();
  const index_t height = b.shape()[0];
  return as_tiles(dealt<X>(a.matrix.mesh(), b.shape()[1], rows,
                           [&](index_t i, index_t j, index_t, index_t row) {
                             return row < height ? element(local(i, j)) : T(0);
                           }));
}

}  // namespace cleave::inline v0::detail
