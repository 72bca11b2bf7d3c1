// One large matrix, by ScaLAPACK, from any placement: scalapack::cholesky, solve, triangular_solve,
// lstsq, inv, det, slogdet.
//
//     // l[BC0,BC1] = scalapack::cholesky(a[S0,R])          an exchange of a, then p?potrf
//     // x[BC1,BC0] = scalapack::solve(a[S0,R], b[S0,R])    of a and b, then p?getrf, p?getrs
//
// Placements are those of scalapack_tiles.hpp: blocks of 64, or those of the operand.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/interop/scalapack_tiles.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/element_functions.hpp>
#include <cleave/ops/linear_algebra/solve.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#if CLEAVE_HAS_SCALAPACK
#include <cleave/interop/mpi/scalapack_functions.hpp>
#endif

namespace cleave::inline v0::detail {

/// Calls visit(pivot) for those pivots of the LU factorisation of a matrix that this rank has,
/// negated where rows change places: their product is the determinant.
/// @return the matrix dealt in blocks, which the pivots lie on the diagonal of
/// @collective every rank of the mesh
template <class X, class Visit>
auto each_pivot(const char* operation, const X& a, [[maybe_unused]] const Visit& visit) {
  require_square_of_scalapack(operation, a);
  const auto tiles = tiles_of(a, tiled_placements<X>());
#if CLEAVE_HAS_SCALAPACK
  using T = typename X::value_type;
  const int n = int(a.shape()[0]), first = 1;
  if (n > 0) {
    const auto& local = tiles.matrix.to_local();
    std::vector<int> rows(std::size_t(local.extent(1) + tiles.block));
    int info = 0;
    Scalapack<T>::getrf(&n, &n, tiles.data(), &first, &first, tiles.descriptor.data(), rows.data(),
                        &info);
    each_on_diagonal(tiles.matrix, [&](index_t i, index_t j, index_t at) {
      const T pivot = local(i, j);
      visit(rows[std::size_t(j)] == at + 1 ? pivot : -pivot);
    });
  }
#endif
  return tiles.matrix;
}

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0::scalapack {

/// The Cholesky factor l of a Hermitian positive definite matrix, a = l l^H, by p?potrf.
///
/// @param a     [n, n], float, double or complex, under any placements. What is above the diagonal
///              is not read
/// @return      [n, n], a lower triangle, dealt in blocks: as a is, if it is dealt in blocks of one
///              length, else in blocks of 64
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a; n³/3 multiplications and additions, shared by the
///              ranks. Has no gradient
/// @throws Error on every rank if the matrix is not square or not positive definite, or the ranks
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
/// @param b     [n, k], or [n], under any placements on the same mesh
/// @return      the shape of b, dealt in blocks; as it holds columns, placements are those of a
///              transpose
/// @collective  every rank of the mesh
/// @cost        a redistribution or copy of a and of b; 2 n³/3 + 2 n² k multiplications and
///              additions, shared by the ranks. Has no gradient
/// @throws Error on every rank if the extents do not fit, a is exactly singular, or the ranks are
///              not MPI processes
template <class T, class U, int Rank, class Mesh, class P, class Q>
auto solve(const DTensor<T, 2, Mesh, P>& a, const DTensor<U, Rank, Mesh, Q>& b) {
  using X = DTensor<T, 2, Mesh, P>;
  detail::require_square_of_scalapack("scalapack::solve", a);
  return detail::solved_for("scalapack::solve", a, b, [&](const auto& each) {
    const auto tiles = detail::tiles_of(a, detail::tiled_placements<X>());
    const auto sides = detail::sides_of(tiles, each, a.shape()[0], std::identity());
#if CLEAVE_HAS_SCALAPACK
    using Call = detail::Scalapack<T>;
    const int n = int(a.shape()[0]), columns = int(each.shape()[1]), first = 1;
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
  });
}

/// The solution x of a x = b, where a is the lower triangle of what is given, or the upper one:
/// `scalapack::triangular_solve(a, b, Side::upper)`, by p?trsm. The elements on the other side are
/// not read. Otherwise as scalapack::solve, at n² k multiplications and additions.
///
/// @throws Error on every rank also if an element of the diagonal is 0
template <class T, class U, int Rank, class Mesh, class P, class Q>
auto triangular_solve(const DTensor<T, 2, Mesh, P>& a, const DTensor<U, Rank, Mesh, Q>& b,
                      Side side = Side::lower) {
  using X = DTensor<T, 2, Mesh, P>;
  constexpr const char* name = "scalapack::triangular_solve";
  detail::require_square_of_scalapack(name, a);
  return detail::solved_for(name, a, b, [&](const auto& each) {
    const auto tiles = detail::tiles_of(a, detail::tiled_placements<X>());
    const auto sides = detail::sides_of(tiles, each, a.shape()[0], std::identity());
    const int n = int(a.shape()[0]), columns = int(each.shape()[1]);
    // p?trtrs checks two elements of each block only
    const index_t row = n > 0 && columns > 0 ? detail::zero_on_diagonal(name, tiles.matrix) : 0;
    if (row != 0)
      throw Error(name,
                  "the matrix is singular: its diagonal element " + std::to_string(row) + " is 0",
                  a.context());
#if CLEAVE_HAS_SCALAPACK
    const int first = 1;
    const T one = 1;
    if (n > 0 && columns > 0)
      detail::Scalapack<T>::trsm("L", side == Side::lower ? "U" : "L", "T", "N", &n, &columns, &one,
                                 tiles.data(), &first, &first, tiles.descriptor.data(),
                                 sides.data(), &first, &first, sides.descriptor.data());
#else
    static_cast<void>(side);
#endif
    return transpose(sides.matrix);
  });
}

/// The x with the least norm of a x - b, column by column, and of those the one of least norm, by
/// p?gels: more rows than columns are equations that cannot all hold, fewer leave x open. Of one
/// tall matrix with few columns whose rows are cut, lstsq takes less.
///
/// @param a     [m, n], float, double or complex, of full rank, under any placements
/// @param b     [m, k], or [m], under any placements on the same mesh
/// @return      [n, k], or [n], dealt in blocks; as it holds columns, placements are those of a
///              transpose
/// @collective  every rank of the mesh
/// @cost        a redistribution or copy of a and of b; m n p - (m + n) p²/2 + p³/3
///              multiplications and additions, p = min(m, n), and 2 m n k, shared by the ranks. Has
///              no gradient
/// @throws Error on every rank if the extents do not fit, a triangular factor of a has a zero on
///              its diagonal, or the ranks are not MPI processes. Rounding may hide that the rank
///              is not full: svd tells
template <class T, class U, int Rank, class Mesh, class P, class Q>
auto lstsq(const DTensor<T, 2, Mesh, P>& a, const DTensor<U, Rank, Mesh, Q>& b) {
  using X = DTensor<T, 2, Mesh, P>;
  constexpr const char* name = "scalapack::lstsq";
  return detail::solved_for(name, a, b, [&](const auto& each) {
    const index_t m = a.shape()[0], n = a.shape()[1], k = each.shape()[1];
    const auto tiles = detail::tiles_of(a, detail::tiled_placements<X>());
    const auto sides = detail::sides_of(tiles, each, std::max(m, n), detail::conjugate_of<T>);
    const auto& local = sides.matrix.to_local();
    const bool is_empty = m == 0 || n == 0 || k == 0;
    if (!is_empty) {
#if CLEAVE_HAS_SCALAPACK
      // what rows hold is transpose(a): the transpose of that is a, its adjoint is conj(a)
      const int height = int(n), width = int(m), columns = int(k), first = 1;
      int info = 0;
      detail::call_with_work_arrays<T>([&](auto... work) {
        detail::Scalapack<T>::gels(is_complex<T> ? "C" : "T", &height, &width, &columns,
                                   tiles.data(), &first, &first, tiles.descriptor.data(),
                                   sides.data(), &first, &first, sides.descriptor.data(), work...,
                                   &info, 1);
      });
      if (info != 0) throw Error(name, "p?gels returns " + std::to_string(info), a.context());
#endif
      if (const index_t row = detail::zero_on_diagonal(name, tiles.matrix); row != 0)
        throw Error(name,
                    "the matrix does not have full rank: diagonal element " + std::to_string(row) +
                        " of its triangular factor is 0",
                    a.context());
    }
    return transpose(detail::dealt<typename std::remove_cvref_t<decltype(sides.matrix)>>(
        a.mesh(), k, n, [&](index_t i, index_t j, index_t, index_t) {
          return is_empty ? T(0) : detail::conjugate_of(local(i, j));
        }));
  });
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

/// The determinant of a matrix, by p?getrf. Large matrices overflow: call scalapack::slogdet.
///
/// @param a     [n, n], float, double or complex, under any placements
/// @return      a DTensor without dimensions, the same on every rank; 1 for n = 0
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a; 2 n³/3 multiplications and additions, shared by
///              the ranks. Has no gradient
/// @throws Error on every rank if the matrix is not square, or the ranks are not MPI processes
template <class T, class Mesh, class P>
auto det(const DTensor<T, 2, Mesh, P>& a) {
  T product = 1;
  const auto x = detail::each_pivot(
      "scalapack::det", a, [&](const T& pivot) { product = kernels::times(product, pivot); });
  return detail::reduced_over_parts<Product>(x, detail::number(product));
}

/// The sign and the logarithm of the determinant d of a matrix, by p?getrf:
/// `const auto [sign, logarithm] = scalapack::slogdet(a)`, with d = sign · exp(logarithm).
///
/// @param a     [n, n], float, double or complex, under any placements
/// @return      a std::tuple of d / |d|, of the element type of a, and log |d|, real: DTensors
///              without dimensions, the same on every rank; 0 and -inf if the matrix is singular
/// @collective  every rank of the mesh
/// @cost        as scalapack::det. Has no gradient
/// @throws Error on every rank if the matrix is not square, or the ranks are not MPI processes
template <class T, class Mesh, class P>
auto slogdet(const DTensor<T, 2, Mesh, P>& a) {
  using Size = kernels::real_t<T>;
  T direction = 1;
  Size sum = 0;
  const auto x = detail::each_pivot("scalapack::slogdet", a, [&](const T& pivot) {
    const Size size = kernels::magnitude(pivot);
    direction = kernels::times(direction, size == Size(0) ? T(0) : pivot / size);
    sum += std::log(size);
  });
  return std::tuple{detail::reduced_over_parts<Product>(x, detail::number(direction)),
                    detail::reduced_over_parts<Sum>(x, detail::number(sum))};
}

}  // namespace cleave::inline v0::scalapack
