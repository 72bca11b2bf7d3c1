// The host side of reductions over dimensions: their distribution over blocks and threads.
//
// Memory is read along the reduced dimensions if these have the smallest stride, else across them.
// As many threads share a result as it takes to fill the device; if few results have many elements,
// several blocks share a result, and a second launch combines their partial results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/reduce_kernels.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0::cuda::detail {

/// The fewest steps per thread that justify another split, and the most steps per thread.
inline constexpr index_t min_reduce_steps = 16, max_reduce_steps = 1024;

constexpr std::uint32_t power_of_two(index_t least, std::uint32_t most) {
  std::uint32_t n = 1;
  while (n < most && index_t(n) < least) n *= 2;
  return n;
}

/// Elements that a thread processes per step, limited so that their totals fit into shared memory.
template <class T, class Total>
inline constexpr int reduce_width = [] {
  constexpr int most = int(4 * access_bytes / sizeof(Total));
  return pack_width<T>() < most ? pack_width<T>() : most;
}();

/// The loops of a reduction of elements T to totals, and how memory is accessed.
template <class T, class Total>
struct ReduceNests {
  static constexpr int width = reduce_width<T, Total>;

  LoopNest<2> kept;     ///< array 0 is the input, array 1 the result
  LoopNest<1> reduced;  ///< array 0 is the input
  bool along;           ///< whether packs lie along the reduced loops
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

  /// The blocks and threads for this reduction.
  ReduceGrid grid() const {
    const int kept_width = along ? 1 : width, reduced_width = along ? width : 1;
    ReduceGrid g;
    g.packed = packed;
    g.results = Loops<2>(kept, kept_width).size();
    g.steps = Loops<1>(reduced, reduced_width).size();
    g.cols = along ? reduced.extents[reduced.inner()] : kept.extents[kept.inner()];
    if (along && packed)
      g.whole = g.cols % width == 0 ? g.steps
                : reduced.dims == 1 ? std::uint32_t(g.cols / width)
                                    : 0;
    const index_t fill = index_t(block_threads) * 8 * multiprocessors();  // fills the device
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
    if (splits > per_thread / min_reduce_steps) splits = per_thread / min_reduce_steps;
    if (splits * max_reduce_steps < per_thread)
      splits = (per_thread + max_reduce_steps - 1) / max_reduce_steps;
    if (splits < 1) splits = 1;
    if (splits == 1) return unsplit(g);
    const index_t round = index_t(g.lanes) * reduce_ahead;
    g.chunk = std::uint32_t((g.steps + splits * round - 1) / (splits * round) * round);
    g.splits = (g.steps + g.chunk - 1) / g.chunk;
    g.by_splits = FastDivision(g.splits);
    return g;
  }

  /// The same with one block per result.
  static ReduceGrid unsplit(ReduceGrid g) {
    g.chunk = g.steps;
    g.splits = 1;
    g.by_splits = FastDivision(1);
    return g;
  }

  /// Reduces to the result, or to `partials` if the grid has them.
  template <class Reduction, class Result>
  void run(const char* operation, const ReduceGrid& g, const T* in, const Result& result) const {
    if (along) return run_along<Reduction>(operation, g, in, result);
    launch(operation, reduce_across_kernel<width, Reduction, T, Result>, blocks(g),
           dim3(block_threads), in, Loops<2>(kept, width), Loops<1>(reduced), g, result);
  }

  template <class Reduction, class Result>
  void run_along(const char* operation, const ReduceGrid& g, const T* in,
                 const Result& result) const {
    launch(operation, reduce_along_kernel<width, Reduction, T, Result>, blocks(g),
           dim3(block_threads), in, Loops<2>(kept), Loops<1>(reduced, width), g, result);
  }

 private:
  static dim3 blocks(const ReduceGrid& g) { return dim3(blocks_per_split(g) * g.splits); }

  static unsigned blocks_per_split(const ReduceGrid& g) {
    const std::uint32_t per_block = block_threads / g.lanes;
    return (g.results + per_block - 1) / per_block;
  }
};

/// The kept loops over rows of `splits` partial results, in the order of the results.
inline LoopNest<2> rows_of_partials(LoopNest<2> kept, index_t splits) {
  for (int d = 0; d < kept.dims; ++d) kept.strides[0][d] = kept.strides[1][d] * splits;
  kept.start[0] = kept.start[1] * splits;
  return kept;
}

/// Reduces the elements of `in` to the results. @pre no loop is empty
template <class Reduction, class T, class Result>
void reduce_nests(const char* operation, const T* in, const LoopNest<2>& kept,
                  const LoopNest<1>& reduced, const Result& result) {
  using Total = typename Reduction::Total;
  using Nests = ReduceNests<T, Total>;
  std::vector<LoopNest<1>> parts;  // usually one
  in_pieces(reduced, [&](const LoopNest<1>& part) { parts.push_back(part); });
  in_pieces(kept, [&](const LoopNest<2>& piece) {
    std::vector<ReduceGrid> grids;
    std::uint32_t splits = 0;
    index_t elements = 0;
    for (const LoopNest<1>& part : parts) {
      ReduceGrid& grid = grids.emplace_back(Nests(piece, part, in).grid());
      grid.first_split = splits;
      grid.first_index = elements;
      splits += grid.splits;
      elements += part.size();
    }
    if (splits == 1)
      return Nests(piece, parts[0], in).template run<Reduction>(operation, grids[0], in, result);

    const auto memory = allocate_bytes(Cuda{}, std::size_t(kept.size()) * splits * sizeof(Total));
    auto* partials = static_cast<Total*>(memory.get());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      grids[i].partials = partials;
      grids[i].all_splits = splits;
      Nests(piece, parts[i], in).template run<Reduction>(operation, grids[i], in, result);
    }
    const Shape row(std::array<index_t, 1>{splits}), step(std::array<index_t, 1>{1});
    const ReduceNests<Total, Total> rows(rows_of_partials(piece, splits), LoopNest<1>(row, {&step}),
                                         partials);
    rows.template run_along<Reduction>(operation, rows.unsplit(rows.grid()), partials, result);
  });
}

/// The kept and the reduced dimensions of an array.
struct ReduceShapes {
  Shape kept{}, kept_strides{}, out_strides{};
  Shape reduced{}, reduced_strides{};

  /// @param mask  bit d: dimension d is reduced; the other dimensions form a row-major result
  ReduceShapes(const Shape& extents, const Shape& strides, unsigned mask) {
    const auto push = [](Shape& shape, index_t value) { shape[shape.dims++] = value; };
    for (int d = 0; d < extents.dims; ++d) {
      const bool stays = !(mask >> d & 1u);
      push(stays ? kept : reduced, extents[d]);
      push(stays ? kept_strides : reduced_strides, strides[d]);
    }
    out_strides = row_major_strides(kept);
  }

  LoopNest<2> kept_loops() const { return {kept, {&kept_strides, &out_strides}}; }
  LoopNest<1> reduced_loops() const { return {reduced, {&reduced_strides}}; }
};

}  // namespace cleave::inline v0::cuda::detail
