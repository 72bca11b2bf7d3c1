// QR factors of one matrix whose rows are cut among ranks, which keep them.
//
// Each rank factorises its rows, all gather the triangles and factorise these, one over the other;
// the own rows of that q are multiplied with the own q. J. Demmel, L. Grigori, M. Hoemmen and J.
// Langou: Communication-optimal parallel and sequential QR and LU factorizations. SIAM J. Sci.
// Comput. 34(1), 2012; here every rank does the work of the tree's root, in one communication.
//
//     // q[S0], r[R] = qr(a[S0])     receives (p - 1) n² elements
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/placement/ownership.hpp>

namespace cleave::inline v0::detail {

/// Whether x is one matrix of which axes cut the rows, in any way, and nothing else.
template <class X>
constexpr bool has_cut_rows() {
  using Plain = innermost_t<X>;
  if constexpr (!is_dtensor<Plain>) return false;
  else
    return Plain::dims == 2 && Plain::layout.sharding_axes(0) != 0 &&
           Plain::layout.sharding_axes(1) == 0 && !Plain::layout.has_partial();
}

/// Calls visit(place, rows, is_here) for each part of the rows of x, in the order of Shard<0>.
template <class X, class Visit>
void each_part_of_rows(const X& x, const Visit& visit) {
  const DimOwnership of(x.actual_layout(), {0, 1, 2, 3, 4, 5, 6, 7}, 0, x.shape()[0],
                        x.mesh().extents());
  const DimOwnership::Parts here = of.parts_of(x.mesh().coordinate());
  index_t count = 1;
  for (std::size_t level = 0; level < std::size_t(of.levels); ++level) count *= of.parts[level];
  for (index_t place = 0; place < count; ++place) {
    DimOwnership::Parts at{};
    index_t rest = place;
    for (std::size_t level = std::size_t(of.levels); level-- > 0; rest /= of.parts[level])
      at[level] = rest % of.parts[level];
    visit(place, of.size(at), at == here);
  }
}

/// @tparam Factors  the operation on whole matrices
/// @return          q, cut as x is, and r on every rank
template <class Factors, class T, class Mesh, class... P>
auto qr_of_cut_rows(const DTensor<T, 2, Mesh, Placements<P...>>& x) {
  using Own = DTensor<T, 2, Mesh, Placements<P...>>;
  using Triangles =
      DTensor<T, 2, Mesh,
              Placements<std::conditional_t<std::is_same_v<P, Replicate>, Replicate, Shard<0>>...>>;
  const index_t m = x.shape()[0], n = x.shape()[1];
  const Mesh& mesh = x.mesh();
  const auto rank_of = [n](index_t rows) { return rows < n ? rows : n; };
  const auto factors_of = [&](const Tensor<T, 2>& rows) {
    Factors factors;
    factors.rank = rank_of(rows.extent(0));
    return call_op(factors, rows);
  };
  const auto& local = x.to_local();
  const auto [own_q, own_r] = factors_of(local);

  // a rank with fewer rows than columns fills a part of its block
  index_t blocks = 0;
  each_part_of_rows(x, [&](index_t, index_t, bool) { ++blocks; });
  const Tensor<T, 2> block({mesh.is_member() ? n : 0, n});
  std::fill_n(block.data(), block.size(), T(0));
  for (index_t i = 0; i < own_r.extent(0); ++i)
    for (index_t j = i; j < n; ++j) block(i, j) = own_r(i, j);
  const auto all = redistribute_to<replicated_t<int(sizeof...(P))>>(
      Triangles::unchecked(block, mesh, {blocks * n, n}), Factors::name);

  index_t height = 0, begin = 0;
  each_part_of_rows(x, [&](index_t, index_t rows, bool is_here) {
    if (is_here) begin = height;
    height += rank_of(rows);
  });
  const Tensor<T, 2> stack({mesh.is_member() ? height : 0, n});
  index_t to = 0;
  each_part_of_rows(x, [&](index_t place, index_t rows, bool) {
    if (!mesh.is_member()) return;
    for (index_t i = 0; i < rank_of(rows); ++i, ++to)
      for (index_t j = 0; j < n; ++j) stack(to, j) = all.to_local()(place * n + i, j);
  });
  const auto [q, r] = factors_of(stack);
  const Tensor<T, 2> part({own_q.extent(1), q.extent(1)});
  for (index_t i = 0; i < part.extent(0); ++i)
    for (index_t j = 0; j < part.extent(1); ++j) part(i, j) = q(begin + i, j);
  const index_t rank = rank_of(m);
  return std::tuple{Own::unchecked(matmul(own_q, part), mesh, {m, rank}, x.actual_layout()),
                    decltype(all)::unchecked(r, mesh, {rank, n})};
}

}  // namespace cleave::inline v0::detail
