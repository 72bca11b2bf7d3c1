// One large matrix, by ScaLAPACK, from any placement: scalapack::qr, scalapack::eigh.
//
//     // q[BC0,BC1], r[BC0,BC1] = scalapack::qr(a[S0,R])   exchange of a; p?gelqf, p?orglq
//     // w[R], v[BC1,BC0] = scalapack::eigh(a[S0,R])       exchange of a; p?syevd
//
// Placements are those of scalapack_solvers.hpp. What rows hold is the transpose of a, to
// ScaLAPACK: its factors l q are transposes of r and q.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cleave/comm/exchange_values.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/interop/scalapack_solvers.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::detail {

/// A matrix whose first rows and columns are those of x: `element(i, j)` of local indices.
template <class X, class Element>
X upper_left(const X& x, index_t rows, index_t columns, const Element& element) {
  const std::array<index_t, 2> shape{rows, columns};
  const typename X::local_type local(
      to_array<2>(local_shape(X::layout, Shape(shape), x.mesh().extents(), x.mesh().coordinate())));
  for (index_t i = 0; i < local.extent(0); ++i)
    for (index_t j = 0; j < local.extent(1); ++j) local(i, j) = element(i, j);
  return X::unchecked(local, x.mesh(), shape);
}

}  // namespace cleave::detail

namespace cleave::scalapack {

/// The reduced factors of a matrix, a = q r, by Householder reflections (p?gelqf, p?orglq):
/// `const auto [q, r] = scalapack::qr(a)`. Of one tall matrix with few columns, qr takes less.
///
/// @param a     [m, n], float, double or complex, under any placements; k = min(m, n)
/// @return      a std::tuple of q [m, k], whose columns are orthonormal, and r [k, n], an upper
///              triangle whose diagonal is real and at least 0; dealt in blocks as the result of
///              scalapack::cholesky
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a, a sum of k numbers; multiplications and additions
///              shared by the ranks: 4 m n k - 2 (m + n) k² + 4 k³/3. Has no gradient
/// @throws Error on every rank if the ranks are not MPI processes
template <class T, class Mesh, class P>
auto qr(const DTensor<T, 2, Mesh, P>& a) {
  const auto tiles = detail::tiles_of(a, detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
  const auto& x = tiles.matrix;
  const auto& local = x.to_local();
  const index_t m = a.shape()[0], n = a.shape()[1], k = std::min(m, n);
  const std::vector<index_t> rows = detail::global_indices(x, 0),
                             columns = detail::global_indices(x, 1);
  const Tensor<T, 1> own({k});
  std::fill_n(own.data(), k, T(0));
#if CLEAVE_HAS_SCALAPACK
  using Call = detail::Scalapack<T>;
  const int height = int(n), width = int(m), count = int(k), first = 1;
  const int* const described = tiles.descriptor.data();
  std::vector<T> scales(std::size_t(local.extent(1) + tiles.block));
  int info = 0;
  if (k > 0)
    detail::call_with_work_arrays<T>([&](auto... work) {
      Call::gelqf(&height, &width, tiles.data(), &first, &first, described, scales.data(), work...,
                  &info);
    });
#endif
  detail::each_on_diagonal(x, [&](index_t i, index_t j, index_t at) {
    own(at) = std::real(local(i, j)) < 0 ? T(-1) : T(1);
  });
  const auto signs = detail::reduced_over_parts<Sum>(x, own).to_local();
  const auto r = detail::upper_left(x, k, n, [&](index_t i, index_t j) {
    const index_t row = rows[std::size_t(i)];
    return row > columns[std::size_t(j)] ? T(0) : signs(row) * local(i, j);
  });
#if CLEAVE_HAS_SCALAPACK
  if (k > 0)
    detail::call_with_work_arrays<T>([&](auto... work) {
      Call::orglq(&count, &width, &count, tiles.data(), &first, &first, described, scales.data(),
                  work..., &info);
    });
#endif
  const auto q = detail::upper_left(
      x, m, k, [&](index_t i, index_t j) { return signs(columns[std::size_t(j)]) * local(i, j); });
  return std::tuple{q, r};
}

/// The eigenvalues, ascending, and the orthonormal eigenvectors of a Hermitian matrix, by p?syevd
/// or p?heevd: `const auto [w, v] = scalapack::eigh(a)`, with a v = v diag(w).
///
/// @param a     [n, n], float, double or complex, under any placements. What is above the diagonal
///              is not read
/// @return      a std::tuple of w [n], real, on every rank, and v [n, n], a vector per column; as
///              it is dealt in blocks of columns, placements are those of a transpose. @see eigh
/// @collective  every rank of the mesh
/// @cost        one redistribution or copy of a; about 4 n³ multiplications and additions, shared
///              by the ranks. Has no gradient
/// @throws Error on every rank if the matrix is not square, has an element that is not finite, or
///              does not converge, or if the ranks are not MPI processes
template <class T, class Mesh, class P>
auto eigh(const DTensor<T, 2, Mesh, P>& a) {
  using R = kernels::real_t<T>;
  detail::require_square_of_scalapack("scalapack::eigh", a);
  const auto tiles = detail::tiles_of(a, detail::tiled_placements<DTensor<T, 2, Mesh, P>>());
  const auto& x = tiles.matrix;
  const auto& local = x.to_local();
  const Tensor<R, 1> values({a.shape()[0]});
  const auto vectors = x.unchecked(local.clone(), x.mesh(), x.shape());
  const std::vector<index_t> rows = detail::global_indices(x, 0),
                             columns = detail::global_indices(x, 1);
  int is_finite = 1;
  for (index_t i = 0; i < local.extent(0); ++i)
    for (index_t j = 0; j < local.extent(1); ++j)
      if (rows[std::size_t(i)] >= columns[std::size_t(j)] &&
          (!std::isfinite(std::real(local(i, j))) || !std::isfinite(std::imag(local(i, j)))))
        is_finite = 0;
  for (const int each :
       detail::gather_values(x.mesh().communicator().host(), is_finite, "scalapack::eigh"))
    if (each == 0)
      throw Error("scalapack::eigh", "the matrix has an element that is not finite", a.context());
#if CLEAVE_HAS_SCALAPACK
  using Call = detail::Scalapack<T>;
  const int n = int(a.shape()[0]), first = 1;
  const int* const described = tiles.descriptor.data();
  int info = 0;
  // what rows hold is conj(a), whose vectors are those of a, conjugated
  const auto call = [&](auto... work) {
    Call::eigh("V", "U", &n, tiles.data(), &first, &first, described, values.data(),
               vectors.to_local().data(), &first, &first, described, work..., &info, 1, 1);
  };
  // p?syevd of ScaLAPACK 2.2 asks for less than p?ormtr and p?lasrt, which it calls, check for
  const index_t block = tiles.block, height = local.extent(1) + block,
                width = local.extent(0) + block,
                more = 2 * height * width + 4 * block * (height + width) + 8 * n;
  if (n > 0) {
    if constexpr (is_complex<T>) detail::call_with_work_arrays<T, R, int>(call, more);
    else detail::call_with_work_arrays<T, int>(call, more);
  }
  if (info != 0)
    throw Error("scalapack::eigh",
                "the eigenvalues do not converge: p?syevd returns " + std::to_string(info),
                a.context());
#endif
  // if one block is all of a, only its rank has the values
  if (std::find(rows.begin(), rows.end(), 0) == rows.end() ||
      std::find(columns.begin(), columns.end(), 0) == columns.end())
    std::fill_n(values.data(), values.size(), R(0));
  return std::tuple{detail::reduced_over_parts<Sum>(x, values), transpose(conj(vectors))};
}

}  // namespace cleave::scalapack
