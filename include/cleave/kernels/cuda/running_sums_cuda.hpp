// Running sums along a dimension on a GPU: threads that share a line add runs of it, then the sums
// of the threads before them.
//
// A few long lines are cut into chunks: one launch sums each chunk, another makes running sums of
// these totals, the third those within the chunks. The order of additions depends on extents and
// strides alone, not on the GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <cleave/kernels/cuda/fused_rows.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/running_sums.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// When lines are cut into chunks. Chosen such that blocks fill the largest GPUs, and that two more
/// launches take less time than what they save; not measured.
struct ChunkLimits {
  index_t unit = 4096;    ///< chunks have multiples of so many elements, a multiple of 16
  index_t blocks = 2048;  ///< chunks of all lines have about so many blocks
  index_t fewest = 4;     ///< per line

  /// Elements of a chunk; n if lines are not cut.
  /// @param n       elements of a line
  /// @param needed  blocks for all lines, uncut
  index_t chunk(index_t n, index_t needed) const {
    if (needed * fewest > blocks || n <= (fewest - 1) * unit) return n;
    const index_t units = (n + unit - 1) / unit;
    return (units * needed + blocks - 1) / blocks * unit;
  }
};

struct PlusOfTwo {
  template <class A>
  CLEAVE_HOST_DEVICE A operator()(const A& a, const A& b) const {
    return kernels::plus(a, b);
  }
};

/// The sums of chunks.
/// @param chunks  array 0 is the input, array 1 the totals
template <int V, class T, class A>
__global__ void chunk_totals_kernel(RowArray<const T> in, A* totals, RowTeams teams,
                                    Loops<2> chunks) {
  const RowTeam team(teams);
  Pack<A, V> sums{};
  index_t at = 0;
  if (team.exists()) {
    const auto place = chunks.at(team.row());
    in.data += place.offset[0], at = place.offset[1];
    for (index_t i = index_t(team.lane()) * V; i < teams.n; i += team.lanes() * V) {
      const Pack<T, V> elements = in.template load<V>(i, teams.n);
      for (int k = 0; k < V; ++k)
        sums.values[k] = kernels::plus(sums.values[k], A(elements.values[k]));
    }
  }
  for (int k = 1; k < V; ++k) sums.values[0] = kernels::plus(sums.values[0], sums.values[k]);
  const A total = team.fold(sums.values[0], PlusOfTwo{});
  if (team.exists() && team.lane() == 0) totals[at] = total;
}

/// The running sums of whole lines, or within chunks.
/// @param before  null, or the sums of the chunks before each of them
/// @param chunks  array 0 is the input, array 1 the output, array 2 `before`, array 3 the index of
///                the chunk's first element
/// @param length  of a line
template <int V, class T, class R>
__global__ void running_sums_kernel(RowArray<const T> in, RowArray<R> out,
                                    const kernels::running_t<R>* before, RowTeams teams,
                                    Loops<4> chunks, index_t length) {
  using A = kernels::running_t<R>;
  const RowTeam team(teams);
  index_t n = teams.n;
  A carry = A(0);  // the sum of the chunks before, and of the runs of all threads so far
  if (team.exists()) {
    const auto place = chunks.at(team.row());
    in.data += place.offset[0], out.data += place.offset[1];
    const index_t skipped = place.offset[3];
    if (skipped > 0) carry = before[place.offset[2] - 1];
    if (length - skipped < n) n = length - skipped;
  }
  for (index_t first = 0; first < teams.n; first += team.lanes() * V) {
    const index_t i = first + index_t(team.lane()) * V;
    const bool exists = team.exists() && i < n;
    Pack<A, V> sums{};
    if (exists) {
      const Pack<T, V> elements = in.template load<V>(i, n);
      for (int k = 0; k < V; ++k) sums.values[k] = A(elements.values[k]);
    }
    for (int k = 1; k < V; ++k) sums.values[k] = kernels::plus(sums.values[k - 1], sums.values[k]);
    const Scanned<A> scanned = team.scan(sums.values[V - 1], A(0), PlusOfTwo{});
    const A start = kernels::plus(carry, scanned.before);
    carry = kernels::plus(carry, scanned.total);
    if (!exists) continue;
    Pack<R, V> results;
    for (int k = 0; k < V; ++k) results.values[k] = R(kernels::plus(start, sums.values[k]));
    out.template store<V>(i, n, results);
  }
}

}  // namespace cuda::detail

namespace kernels {

/// out[.., i, ..] = sum of in[.., k, ..] over k <= i, or over k >= i if `reversed`, in the order of
/// the current stream. Floats of up to 32 bits are accumulated in a wider type; sums of floats may
/// differ from the host's by rounding.
///
/// @param in   any extents and strides
/// @param out  the same extents; may be `in`
/// @cost   one launch per 2^31 lines, with up to 256 threads per line; reads and writes once. Three
///         launches for at most 512 lines (4096 across contiguous memory) of more than 12288
///         elements, with up to 2048 blocks in all; reads twice, writes once
/// @throws Error if a launch fails, or there is no memory for the sums of chunks
template <class T, class R>
void running_sums(On<Cuda>, Strided<const T> in, int dim, bool reversed, Strided<R> out,
                  const cuda::detail::ChunkLimits& limits = {}) {
  using namespace cuda::detail;
  using A = running_t<R>;
  if (in.extents.product() == 0) return;
  const index_t n = in.extents[dim];
  if (reversed) {
    in.data += (n - 1) * in.strides[dim], out.data += (n - 1) * out.strides[dim];
    in.strides[dim] = -in.strides[dim], out.strides[dim] = -out.strides[dim];
  }
  constexpr int width = pack_width<T, R>();
  const Shape none = Shape::filled(in.extents.dims, 0);
  Shape extents = in.extents;
  extents[dim] = 1;
  const LoopNest<1> lines(extents, {&in.strides});
  const index_t per_block = cuda::block_threads / row_teams<width>(lines, n, in.strides[dim]).lanes;
  const index_t chunk = limits.chunk(n, (lines.size() + per_block - 1) / per_block);
  const index_t before = (n - 1) / chunk;  // chunks before the last
  std::array<Shape, 4> strides{in.strides, out.strides, none, none};
  strides[0][dim] *= chunk, strides[1][dim] *= chunk;
  strides[3][dim] = chunk;

  std::shared_ptr<void> memory;
  if (before > 0) {
    Strided<A> totals{nullptr, extents, row_major_strides(extents)};
    for (int d = 0; d < extents.dims; ++d) totals.strides[d] *= before;
    extents[dim] = totals.extents[dim] = before, totals.strides[dim] = 1;
    memory = allocate_bytes(Cuda{}, std::size_t(extents.product()) * sizeof(A));
    totals.data = static_cast<A*>(memory.get());
    strides[2] = totals.strides;
    const LoopNest<2> chunks(extents, {&strides[0], &strides[2]});
    const RowTeams teams = row_teams<width>(chunks, chunk, in.strides[dim]);
    launch_teams("running_sums", chunk_totals_kernel<width, T, A>, teams,
                 row_array<width>(in, dim, chunks, 0), totals.data, teams, Loops<2>(chunks));
    running_sums(On<Cuda>{}, Strided<const A>{totals.data, extents, totals.strides}, dim, false,
                 totals);
  }
  extents[dim] = before + 1;
  const LoopNest<4> all(extents, {&strides[0], &strides[1], &strides[2], &strides[3]});
  in_pieces(all, [&](const LoopNest<4>& piece) {
    const RowTeams teams = row_teams<width>(piece, chunk, in.strides[dim]);
    launch_teams("running_sums", running_sums_kernel<width, T, R>, teams,
                 row_array<width>(in, dim, piece, 0), row_array<width>(out, dim, piece, 1),
                 static_cast<const A*>(memory.get()), teams, Loops<4>(piece), n);
  });
}

}  // namespace kernels

}  // namespace cleave::inline v0
