// Running sums along a dimension on a GPU: threads that share a line add runs of it, then the sums
// of the threads before them. The order of additions depends on extents and strides alone.
#pragma once

#include <array>

#include <cleave/kernels/cuda/fused_rows.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/running_sums.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

struct PlusOfTwo {
  template <class A>
  CLEAVE_HOST_DEVICE A operator()(const A& a, const A& b) const {
    return kernels::plus(a, b);
  }
};

/// @param lines  array 0 is the input, array 1 the output
template <int V, class T, class R>
__global__ void running_sums_kernel(RowArray<const T> in, RowArray<R> out, RowTeams teams,
                                    Loops<2> lines) {
  using A = kernels::running_t<R>;
  const RowTeam team(teams);
  if (team.exists()) {
    const auto at = lines.at(team.row());
    in.data += at.offset[0], out.data += at.offset[1];
  }
  A before = A(0);  // the sum of the runs of all threads so far
  for (index_t first = 0; first < teams.n; first += team.lanes() * V) {
    const index_t i = first + index_t(team.lane()) * V;
    const bool exists = team.exists() && i < teams.n;
    Pack<A, V> sums{};
    if (exists) {
      const Pack<T, V> elements = in.template load<V>(i, teams.n);
      for (int k = 0; k < V; ++k) sums.values[k] = A(elements.values[k]);
    }
    for (int k = 1; k < V; ++k) sums.values[k] = kernels::plus(sums.values[k - 1], sums.values[k]);
    const Scanned<A> scanned = team.scan(sums.values[V - 1], A(0), PlusOfTwo{});
    const A start = kernels::plus(before, scanned.before);
    before = kernels::plus(before, scanned.total);
    if (!exists) continue;
    Pack<R, V> results;
    for (int k = 0; k < V; ++k) results.values[k] = R(kernels::plus(start, sums.values[k]));
    out.template store<V>(i, teams.n, results);
  }
}

}  // namespace cuda::detail

namespace kernels {

/// out[.., i, ..] = sum of in[.., k, ..] over k <= i, or over k >= i if `reversed`, in the order of
/// the current stream. Floats of up to 32 bits are accumulated in a wider type; sums of floats may
/// differ from the host's by rounding.
///
/// @param in   any extents and strides
/// @param out  the same extents
/// @cost   one launch per 2^31 lines, with up to 256 threads per line; reads and writes once
/// @throws Error if a launch fails
template <class T, class R>
void running_sums(On<Cuda>, Strided<const T> in, int dim, bool reversed, Strided<R> out) {
  using namespace cuda::detail;
  if (in.extents.product() == 0) return;
  const index_t n = in.extents[dim];
  if (reversed) {
    in.data += (n - 1) * in.strides[dim], out.data += (n - 1) * out.strides[dim];
    in.strides[dim] = -in.strides[dim], out.strides[dim] = -out.strides[dim];
  }
  constexpr int width = pack_width<T, R>();
  const auto lines = loops_over_rows(in.extents, dim, std::array{in.strides, out.strides});
  in_pieces(lines, [&](const LoopNest<2>& piece) {
    const RowTeams teams = row_teams<width>(piece, n, in.strides[dim]);
    launch_teams("running_sums", running_sums_kernel<width, T, R>, teams,
                 row_array<width>(in, dim, piece, 0), row_array<width>(out, dim, piece, 1), teams,
                 Loops<2>(piece));
  });
}

}  // namespace kernels

}  // namespace cleave::inline v0
