// Sums, products, maxima and minima over some dimensions of an array on a GPU.
//
// Memory is read along the reduced dimensions where those have the smallest stride, across them
// otherwise. The order of the operations depends on extents, strides and the device alone: same
// bits in every run. Threads sum few elements each and meet in trees, so that rounding errors stay
// small; 16-bit floats are accumulated in float.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <cleave/kernels/cuda/reduce_kernels.hpp>
#include <cleave/kernels/cuda/strided_copy.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave {

namespace cuda::detail {

/// Steps of a thread that are worth a block more, and steps that are enough for one.
inline constexpr index_t least_reduce_steps = 16, most_reduce_steps = 1024;

constexpr std::uint32_t power_of_two(index_t least, std::uint32_t most) {
  std::uint32_t n = 1;
  while (n < most && index_t(n) < least) n *= 2;
  return n;
}

/// The loops of a reduction, and how they are walked.
template <class T>
struct ReduceNests {
  static constexpr int width = pack_width<T>();

  LoopNest<2> kept;     ///< array 0 is the input, array 1 the result
  LoopNest<1> reduced;  ///< of the input
  bool along;           ///< packs lie along the reduced loops
  bool packed;

  ReduceNests(const LoopNest<2>& kept_loops, const LoopNest<1>& reduced_loops, const T* in)
      : kept(kept_loops), reduced(reduced_loops) {
    const index_t kept_step = magnitude(kept.strides[0][kept.inner()]);
    const index_t reduced_step = magnitude(reduced.strides[0][reduced.inner()]);
    along = kept.size() == 1 || (reduced.size() > 1 && reduced_step < kept_step);
    const bool rows = along ? reduced.rows_are_packs(0, width) : kept.rows_are_packs(0, width);
    const bool others =
        along ? kept.outer_strides_are_multiples(0, width) &&
                    (kept.size() == 1 || kept.strides[0][kept.inner()] % width == 0)
              : reduced.outer_strides_are_multiples(0, width) &&
                    (reduced.size() == 1 || reduced.strides[0][reduced.inner()] % width == 0);
    packed = rows && others && aligned_for<width>(in);
  }

  /// Blocks and threads for the reduction as it is.
  ReduceGrid grid() const {
    const int kept_width = along ? 1 : width, reduced_width = along ? width : 1;
    ReduceGrid g;
    g.packed = packed;
    g.results = Loops<2>(kept, kept_width).size();
    g.steps = Loops<1>(reduced, reduced_width).size();
    g.cols = along ? reduced.extents[reduced.inner()] : kept.extents[kept.inner()];
    if (along && packed)
      g.whole = g.cols % width == 0       ? g.steps
                : reduced.dims == 1 ? std::uint32_t(g.cols / width)
                                    : 0;
    const index_t fill = index_t(block_threads) * 8 * multiprocessors();  // threads of the device
    if (along) {
      const index_t few = g.steps < 8 ? g.steps : 8, quarter = g.steps / 4;
      g.lanes = power_of_two(quarter > few ? quarter : few, block_threads);
      while (g.lanes < block_threads && g.lanes < g.steps && index_t(g.lanes) * g.results < fill)
        g.lanes *= 2;
    } else {
      g.lanes = block_threads / power_of_two(g.results, 32);
      const std::uint32_t needed = power_of_two(g.steps, block_threads);
      if (g.lanes > needed) g.lanes = needed;
    }
    const index_t blocks = index_t(blocks_per_split(g));
    const index_t per_thread = (index_t(g.steps) + g.lanes - 1) / g.lanes;
    index_t splits = 2 * fill / block_threads / blocks;
    if (splits > per_thread / least_reduce_steps) splits = per_thread / least_reduce_steps;
    if (splits * most_reduce_steps < per_thread)
      splits = (per_thread + most_reduce_steps - 1) / most_reduce_steps;
    if (splits < 1) splits = 1;
    if (splits == 1) return unsplit(g);
    const index_t round = index_t(g.lanes) * reduce_ahead;
    g.chunk = std::uint32_t((g.steps + splits * round - 1) / (splits * round) * round);
    g.splits = (g.steps + g.chunk - 1) / g.chunk;
    g.by_splits = Divisor(g.splits);
    return g;
  }

  /// The same with one block per result.
  static ReduceGrid unsplit(ReduceGrid g) {
    g.chunk = g.steps;
    g.splits = 1;
    g.by_splits = Divisor(1);
    return g;
  }

  /// Reduces to the result or, if the grid says so, to partial results.
  template <class Op, class A, class R, class Finish>
  void run(const ReduceGrid& g, const T* in, const ReduceResult<R, Finish>& result) const {
    if (along) return run_along<Op, A>(g, in, result);
    launch("reduce_dims", reduce_across_kernel<width, Op, A, T, R, Finish>, blocks(g),
           dim3(block_threads), in, Loops<2>(kept, width), Loops<1>(reduced), g, result);
  }

  template <class Op, class A, class R, class Finish>
  void run_along(const ReduceGrid& g, const T* in, const ReduceResult<R, Finish>& result) const {
    launch("reduce_dims", reduce_along_kernel<width, Op, A, T, R, Finish>, blocks(g),
           dim3(block_threads), in, Loops<2>(kept), Loops<1>(reduced, width), g, result);
  }

 private:
  static dim3 blocks(const ReduceGrid& g) { return dim3(blocks_per_split(g) * g.splits); }

  static unsigned blocks_per_split(const ReduceGrid& g) {
    const std::uint32_t per_block = block_threads / g.lanes;
    return (g.results + per_block - 1) / per_block;
  }
};

/// The kept loops as rows of `splits` partial results, in the order of the results.
inline LoopNest<2> rows_of_partials(LoopNest<2> kept, index_t splits) {
  for (int d = 0; d < kept.dims; ++d) kept.strides[0][d] = kept.strides[1][d] * splits;
  kept.start[0] = kept.start[1] * splits;
  return kept;
}

template <class Op, class A, class T, class R, class Finish>
void reduce_nests(const T* in, const LoopNest<2>& kept, const LoopNest<1>& reduced,
                  ReduceResult<R, Finish> result) {
  using Nests = ReduceNests<T>;
  std::vector<LoopNest<1>> parts;  // usually one
  in_pieces(reduced, [&](const LoopNest<1>& part) { parts.push_back(part); });
  in_pieces(kept, [&](const LoopNest<2>& piece) {
    std::vector<ReduceGrid> grids;
    std::uint32_t splits = 0;
    for (const LoopNest<1>& part : parts) {
      grids.push_back(Nests(piece, part, in).grid());
      grids.back().first_split = splits;
      splits += grids.back().splits;
    }
    if (splits == 1)
      return Nests(piece, parts[0], in).template run<Op, A>(grids[0], in, result);

    const auto memory =
        allocate_bytes(Cuda{}, std::size_t(kept.size()) * splits * sizeof(A));
    auto* partials = static_cast<A*>(memory.get());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      grids[i].partials = partials;
      grids[i].all_splits = splits;
      Nests(piece, parts[i], in).template run<Op, A>(grids[i], in, result);
    }
    const Shape row(std::array<index_t, 1>{splits}), step(std::array<index_t, 1>{1});
    const ReduceNests<A> rows(rows_of_partials(piece, splits), LoopNest<1>(row, {&step}),
                              partials);
    rows.template run_along<Op, A>(rows.unsplit(rows.grid()), partials, result);
  });
}

}  // namespace cuda::detail

namespace kernels {

/// Reduces the dimensions of the mask, in the order of the current stream.
///
/// @tparam Op  Sum, Product, Max or Min
/// @param in   any extents and strides
/// @param mask bit d: dimension d disappears
/// @param out  the remaining dimensions in their order, row-major without gaps; identity elements
///             where there is nothing to reduce
/// @param finish  applied to each result before it is rounded to R
/// @cost  one launch, two where few results have many elements; memory for the partial results
/// @throws Error if a launch fails, or there is no memory for partial results
template <class Op, class T, class R, class Finish = Same>
void reduce_dims(On<Cuda>, const Strided<const T>& in, unsigned mask, const Strided<R>& out,
                 const Finish& finish = {}) {
  using A = accumulator_t<R>;
  if (out.extents.product() == 0) return;
  if (in.extents.product() == 0) {
    const R identity = R(finish(Fold<Op>::template identity<A>()));
    return strided_fill(Cuda{}, View{out.data, dtype_of<R>(), out.extents, out.strides}, identity);
  }
  Shape kept{}, kept_strides{}, out_strides{}, reduced{}, reduced_strides{};
  const auto push = [](Shape& shape, index_t value) { shape[shape.dims++] = value; };
  for (int d = 0; d < in.extents.dims; ++d) {
    if (mask >> d & 1u) {
      push(reduced, in.extents[d]);
      push(reduced_strides, in.strides[d]);
    } else {
      push(out_strides, out.strides[kept.dims]);
      push(kept, in.extents[d]);
      push(kept_strides, in.strides[d]);
    }
  }
  cuda::detail::reduce_nests<Op, A>(
      in.data, cuda::detail::LoopNest<2>(kept, {&kept_strides, &out_strides}),
      cuda::detail::LoopNest<1>(reduced, {&reduced_strides}),
      cuda::detail::ReduceResult<R, Finish>{out.data, finish});
}

}  // namespace kernels

}  // namespace cleave
