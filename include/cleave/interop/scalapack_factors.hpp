// The factors of one large matrix, by ScaLAPACK, from any placement: scalapack::qr, lu, svd, eigh.
//
//     // q[BC0,BC1], r[BC0,BC1] = scalapack::qr(a[S0,R])   exchange of a; p?geqrf, p?orgqr
//     // w[R], v[BC1,BC0] = scalapack::eigh(a[S0,R])       exchange of a; ELPA or p?syevd
//
// Placements are those of scalapack_tiles.hpp. What rows hold is the transpose of a, to ScaLAPACK:
// qr and lu hand it a copy of the transpose, and the vectors of singular values change places.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/agree.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/interop/scalapack_tiles.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#if CLEAVE_HAS_SCALAPACK
#include <cleave/interop/mpi/scalapack_functions.hpp>
#endif
#if CLEAVE_HAS_ELPA
#include <cleave/interop/mpi/elpa.hpp>
#endif

namespace cleave::inline v0::detail {

/// Whether ELPA was found, computes with the elements of X, and each process of the grid has a part
/// of x, which it requires.
template <class X>
bool can_take_elpa([[maybe_unused]] const X& x) {
#if CLEAVE_HAS_ELPA
  constexpr bool is_double = std::is_same_v<kernels::real_t<typename X::value_type>, double>;
  const MeshState& mesh = x.mesh().state();
  const index_t blocks = (x.shape()[0] + Tiles<X>::block - 1) / Tiles<X>::block;
  return is_double && blocks > 0 && blocks >= mesh.size(X::layout.sharding_axes(0)) &&
         blocks >= mesh.size(X::layout.sharding_axes(1));
#else
  return false;
#endif
}

/// Writes the eigenvalues and the vectors of what rows of a Hermitian matrix hold, of which the
/// lower triangle is read.
/// @param largest  the largest part of an element of it, by which it is scaled
/// @collective     every rank of the mesh
/// @throws Error   if the library fails on this rank
template <class X, class Y>
void eigenvectors_by_elpa([[maybe_unused]] const X& x, [[maybe_unused]] double largest,
                          [[maybe_unused]] const Y& values, [[maybe_unused]] const X& vectors) {
#if CLEAVE_HAS_ELPA
  using T = typename X::value_type;
  constexpr int limit = std::numeric_limits<double>::max_exponent - 2;
  const int exponent = largest == 0 ? 0 : std::clamp(std::ilogb(largest), -limit, limit);
  const double down = std::ldexp(1., -exponent), up = std::ldexp(1., exponent);
  const auto& lower = x.to_local();
  // ELPA reads all elements: the others are those of the transpose
  const auto upper = transpose(x).redistribute(x.placements()).to_local();
  const int n = int(x.shape()[0]);
  const X full = dealt<X>(x.mesh(), n, n, [&](index_t i, index_t j, index_t row, index_t column) {
    if (row == column) return T(std::real(lower(i, j)) * down);
    return (row > column ? lower(i, j) : conjugate_of(upper(i, j))) * down;
  });
  Elpa elpa(x.mesh().state(), X::layout.sharding_axes(1), X::layout.sharding_axes(0), n,
            Tiles<X>::block, int(lower.extent(1)), int(lower.extent(0)));
  const std::string text =
      elpa.eigenvectors(full.to_local().data(), values.data(), vectors.to_local().data());
  if (!text.empty()) throw Error("scalapack::eigh", text);
  for (index_t i = 0; i < n; ++i) values(i) *= up;
#endif
}
template <class X, class Y>
void eigenvectors_by_scalapack([[maybe_unused]] const X& x, [[maybe_unused]] const Y& values,
                               [[maybe_unused]] const X& vectors) {
#if CLEAVE_HAS_SCALAPACK
  using T = typename X::value_type;
  const auto tiles = tiles_of(x, x.placements());
  const auto& local = tiles.matrix.to_local();
  const int n = int(x.shape()[0]), first = 1;
  const int* const described = tiles.descriptor.data();
  int info = 0;
  const auto call = [&](auto... work) {
    Scalapack<T>::eigh("V", "U", &n, tiles.data(), &first, &first, described, values.data(),
                       vectors.to_local().data(), &first, &first, described, work..., &info, 1, 1);
  };
  // p?syevd of ScaLAPACK 2.2 asks for less than p?ormtr and p?lasrt, which it calls, check for
  const index_t block = tiles.block, height = local.extent(1) + block,
                width = local.extent(0) + block,
                more = 2 * height * width + 4 * block * (height + width) + 8 * n;
  if (n > 0) {
    if constexpr (is_complex<T>) call_with_work_arrays<T, kernels::real_t<T>, int>(call, more);
    else call_with_work_arrays<T, int>(call, more);
  }
  if (info != 0)
    throw Error("scalapack::eigh",
                "the eigenvalues do not converge: p?syevd returns " + std::to_string(info));
#endif
}

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0::scalapack {

/// The reduced factors of a matrix, a = q r, by Householder reflections (p?geqrf, p?orgqr):
/// `const auto [q, r] = scalapack::qr(a)`. Of one tall matrix with few columns, qr takes less.
///
/// @param a     [m, n], float, double or complex, under any placements; k = min(m, n)
/// @return      a std::tuple of q [m, k], whose columns are orthonormal, and r [k, n], an upper
///              triangle whose diagonal is real and at least 0; dealt in blocks as the result of
///              scalapack::cholesky
/// @collective  every rank of the mesh
/// @cost        one redistribution and a copy of a, a sum of k numbers; 4 m n k - 2 (m + n) k² +
///              4 k³/3 multiplications and additions, shared by the ranks. Has no gradient
/// @throws Error on every rank if the ranks are not MPI processes
template <class T, class Mesh, class P>
auto qr(const DTensor<T, 2, Mesh, P>& a) {
  using Dealt = decltype(detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
  using X = DTensor<T, 2, Mesh, Dealt>;
  const auto tiles = detail::column_tiles_of(a, Dealt{});  // p?gelqf of the transpose takes longer
  const auto& x = tiles.matrix;
  const auto& local = x.to_local();
  const index_t m = a.shape()[0], n = a.shape()[1], k = std::min(m, n);
  const Tensor<T, 1> own({k});
  std::fill_n(own.data(), k, T(0));
#if CLEAVE_HAS_SCALAPACK
  using Call = detail::Scalapack<T>;
  const int height = int(m), width = int(n), count = int(k), first = 1;
  const int* const described = tiles.descriptor.data();
  std::vector<T> scales(std::size_t(local.extent(0) + tiles.block));  // one per column
  int info = 0;
  if (k > 0)
    detail::call_with_work_arrays<T>([&](auto... work) {
      Call::geqrf(&height, &width, tiles.data(), &first, &first, described, scales.data(), work...,
                  &info);
    });
#endif
  detail::each_on_diagonal(x, [&](index_t i, index_t j, index_t at) {
    own(at) = std::real(local(i, j)) < 0 ? T(-1) : T(1);
  });
  const auto signs = detail::reduced_over_parts<Sum>(x, own).to_local();
  const X r =
      detail::dealt<X>(a.mesh(), k, n, [&](index_t i, index_t j, index_t row, index_t column) {
        return row > column ? T(0) : signs(row) * local(j, i);
      });
#if CLEAVE_HAS_SCALAPACK
  if (k > 0)
    detail::call_with_work_arrays<T>([&](auto... work) {
      Call::orgqr(&height, &count, &count, tiles.data(), &first, &first, described, scales.data(),
                  work..., &info);
    });
#endif
  const X q = detail::dealt<X>(a.mesh(), m, k, [&](index_t i, index_t j, index_t, index_t column) {
    return signs(column) * local(j, i);
  });
  return std::tuple{q, r};
}

/// The factors of a matrix with partial pivoting, a = p l u, by p?getrf:
/// `const auto [p, l, u] = scalapack::lu(a)`. To solve a system, call scalapack::solve.
///
/// @param a     [m, n], float, double or complex, under any placements; k = min(m, n)
/// @return      a std::tuple of p [m, m], which permutes rows, l [m, k], a lower triangle with ones
///              on its diagonal, and u [k, n], an upper one; dealt in blocks as the result of
///              scalapack::cholesky
/// @collective  every rank of the mesh
/// @cost        one redistribution and a copy of a, a sum of k integers; m n k - (m + n) k²/2 +
///              k³/3 multiplications and additions, shared by the ranks. Has no gradient
/// @throws Error on every rank if the ranks are not MPI processes
template <class T, class Mesh, class P>
auto lu(const DTensor<T, 2, Mesh, P>& a) {
  using Dealt = decltype(detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
  using X = DTensor<T, 2, Mesh, Dealt>;
  const auto tiles = detail::column_tiles_of(a, Dealt{});  // whose rows are exchanged
  const auto& local = tiles.matrix.to_local();
  const index_t m = a.shape()[0], n = a.shape()[1], k = std::min(m, n);
  const Tensor<index_t, 1> own({k});
  own.fill_(0);
#if CLEAVE_HAS_SCALAPACK
  if (k > 0) {
    const int height = int(m), width = int(n), first = 1;
    std::vector<int> rows(std::size_t(local.extent(1) + tiles.block));
    int info = 0;  // a pivot of 0 is no error: u is singular
    detail::Scalapack<T>::getrf(&height, &width, tiles.data(), &first, &first,
                                tiles.descriptor.data(), rows.data(), &info);
    detail::each_on_diagonal(
        tiles.matrix, [&](index_t, index_t j, index_t at) { own(at) = rows[std::size_t(j)] - 1; });
  }
#endif
  const auto pivots = detail::reduced_over_parts<Sum>(tiles.matrix, own).to_local();
  std::vector<index_t> from_row(static_cast<std::size_t>(m));
  std::iota(from_row.begin(), from_row.end(), index_t(0));
  for (index_t i = 0; i < k; ++i)
    std::swap(from_row[std::size_t(i)], from_row[std::size_t(pivots(i))]);
  const auto part = [&](index_t rows, index_t columns, const auto& element) {
    return detail::dealt<X>(a.mesh(), rows, columns, element);
  };
  return std::tuple{part(m, m,
                         [&](index_t, index_t, index_t row, index_t column) {
                           return T(from_row[std::size_t(column)] == row ? 1 : 0);
                         }),
                    part(m, k,
                         [&](index_t i, index_t j, index_t row, index_t column) {
                           return row > column ? local(j, i) : T(row == column ? 1 : 0);
                         }),
                    part(k, n, [&](index_t i, index_t j, index_t row, index_t column) {
                      return row > column ? T(0) : local(j, i);
                    })};
}

/// The singular values, descending, and the orthonormal vectors of a matrix, by p?gesvd:
/// `const auto [u, s, vh] = scalapack::svd(a)`, with a = u diag(s) vh. @see svd
///
/// @param a     [m, n], float, double or complex, under any placements; k = min(m, n)
/// @return      a std::tuple of u [m, k], s [k], real, on every rank, and vh [k, n], the conjugated
///              vectors, one per row; u and vh dealt in blocks as the result of scalapack::cholesky
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a; about 4 m n k + 8 k³ multiplications and
///              additions, shared by the ranks. Has no gradient
/// @throws Error on every rank if the matrix has an element that is not finite or does not
///              converge, or if the ranks are not MPI processes
template <class T, class Mesh, class P>
auto svd(const DTensor<T, 2, Mesh, P>& a) {
  using R = kernels::real_t<T>;
  const auto tiles = detail::tiles_of(a, detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
  using X = std::remove_cvref_t<decltype(tiles.matrix)>;
  const index_t m = a.shape()[0], n = a.shape()[1], k = std::min(m, n);
  detail::largest_part("scalapack::svd", tiles.matrix, a.context(),
                       [](index_t, index_t) { return true; });
  const auto empty = [&](index_t rows, index_t columns) {
    return detail::as_tiles(
        detail::dealt<X>(a.mesh(), rows, columns, [](auto...) { return T(0); }));
  };
  const auto u = empty(m, k), vh = empty(k, n);
  const Tensor<R, 1> values({k});
#if CLEAVE_HAS_SCALAPACK
  // what rows hold is transpose(a) = transpose(vh) diag(s) transpose(u)
  const int height = int(n), width = int(m), first = 1;
  int info = 0;
  std::vector<R> reals(is_complex<T> ? std::size_t(1 + 4 * std::max(m, n)) : 0);
  const auto call = [&](auto... rest) {
    detail::Scalapack<T>::gesvd("V", "V", &height, &width, tiles.data(), &first, &first,
                                tiles.descriptor.data(), values.data(), vh.data(), &first, &first,
                                vh.descriptor.data(), u.data(), &first, &first, u.descriptor.data(),
                                rest..., &info, 1, 1);
  };
  if (k > 0)
    detail::call_with_work_arrays<T>([&](auto... work) {
      if constexpr (is_complex<T>) call(work..., reals.data());
      else call(work...);
    });
  // Processes that have vectors compute the values in another way than those that have none, which
  // ScaLAPACK then takes for different machines.
  const bool some_have_none = std::max(m, n) < a.mesh().state().size();
  if (info != 0 && !(info == k + 1 && some_have_none))
    throw Error("scalapack::svd",
                "the singular values do not converge: p?gesvd returns " + std::to_string(info),
                a.context());
#endif
  return std::tuple{u.matrix, detail::values_of_first(tiles.matrix, values), vh.matrix};
}

/// The eigenvalues, ascending, and the orthonormal eigenvectors of a Hermitian matrix:
/// `const auto [w, v] = scalapack::eigh(a)`, with a v = v diag(w).
///
/// By ELPA, if it was found, of double and complex<double> matrices that have a block for each
/// process row and column; ELPA_DEFAULT_solver=2 in the environment selects its solver of two
/// stages. Else by p?syevd or p?heevd.
///
/// @param a     [n, n], float, double or complex, under any placements. What is above the diagonal
///              is not read
/// @return      a std::tuple of w [n], real, on every rank, and v [n, n], a vector per column; as
///              it is dealt in blocks of columns, placements are those of a transpose. @see eigh
/// @collective  every rank of the mesh. A trace shows which library computes: it has an all-reduce
///              of one number in "scalapack::eigh by ELPA" or "scalapack::eigh by p?syevd"
/// @cost        one redistribution or copy of a, for ELPA also one of its transpose; about 4 n³
///              multiplications and additions, shared by the ranks. Has no gradient
/// @throws Error on every rank if the matrix is not square, has an element that is not finite, or
///              does not converge, or if the ranks are not MPI processes
template <class T, class Mesh, class P>
auto eigh(const DTensor<T, 2, Mesh, P>& a) {
  using R = kernels::real_t<T>;
  detail::require_square_of_scalapack("scalapack::eigh", a);
  const auto x = a.redistribute(detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
  using X = std::remove_const_t<decltype(x)>;
  const R largest = detail::largest_part("scalapack::eigh", x, a.context(),
                                         [](index_t row, index_t column) { return row >= column; });
  const Tensor<R, 1> values({a.shape()[0]});
  const X vectors = X::unchecked(typename X::local_type(x.to_local().shape()), x.mesh(), x.shape());
  // what rows hold is conj(a), whose vectors are those of a, conjugated
  const bool takes_elpa = detail::can_take_elpa(x);
  detail::together(
      x.mesh().communicator().host(),
      takes_elpa ? "scalapack::eigh by ELPA" : "scalapack::eigh by p?syevd",
      "another rank could not compute the eigenvalues", true,
      [&] {
        if constexpr (std::is_same_v<R, double>)
          if (takes_elpa) return detail::eigenvectors_by_elpa(x, largest, values, vectors);
        detail::eigenvectors_by_scalapack(x, values, vectors);
      },
      a.context());
  // if one block is all of a, only its rank has the values
  return std::tuple{detail::values_of_first(x, values), transpose(conj(vectors))};
}

}  // namespace cleave::inline v0::scalapack
