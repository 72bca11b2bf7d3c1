// Categories drawn with given weights, on a GPU: the same as on the host, draw by draw.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/cuda/fused_rows.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/ordered_indices_cuda.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/report_wrong_index.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/kernels/weight_sums.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// A weight in double. @return NaN for a number that cannot be a weight
template <class T>
CLEAVE_HOST_DEVICE double weight_of(const T& element) {
  const double weight{accumulator_t<T>(element)};
  return kernels::is_weight(weight) ? weight : std::numeric_limits<double>::quiet_NaN();
}

/// One level of sums, a group per thread. The host's order of additions: packs are loaded at once,
/// but added one by one.
///
/// @param below   the weights, or the level below
/// @param groups  array 0 is the level below, array 1 `sums`, array 2 the index of the group's
///                first number
/// @param n       numbers per row of the level below
/// @see   kernels::WeightSums
template <bool Weights, class T>
__global__ void weight_sums_kernel(RowArray<const T> below, double* sums, Loops<3> groups,
                                   std::uint32_t steps, index_t n) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = groups.at(step);
  below.data += at.offset[0];
  constexpr int V = pack_width<T>();
  double sum = 0;
  for (int i = 0; i < kernels::WeightSums::group; i += V) {
    const Pack<T, V> pack = below.template load<V>(i, n - at.offset[2]);  // zeros beyond the end
    for (int k = 0; k < V; ++k)
      if constexpr (Weights) sum += weight_of(pack.values[k]);
      else sum += pack.values[k];
  }
  sums[at.offset[1]] = sum;
}

/// One draw per thread.
/// @param draws  array 0 is `out`, array 1 the weights of the row, array 2 the row, array 3 the
///               number of the draw in its row
/// @param stored how many sums a row has
/// @param first  the global index of row 0
template <class T>
__global__ void draw_categories_kernel(const T* weights, index_t step_of_weights,
                                       const double* sums, kernels::WeightSums levels,
                                       index_t stored, RandomState state, index_t first,
                                       index_t per_row, index_t* out, Loops<4> draws,
                                       std::uint32_t steps, WrongIndexReport wrong) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = draws.at(step);
  const index_t row = first + at.offset[2];
  sums += at.offset[2] * stored, weights += at.offset[1];
  index_t category = 0;
  if (*sums > 0) {
    const auto bits = state.bits(row * per_row + at.offset[3]);
    const auto weight = [&](index_t j) { return weight_of(weights[j * step_of_weights]); };
    category = levels.find(sums, weight, kernels::unit_interval<double>(bits[0], bits[1]));
  } else {
    wrong(row);
  }
  out[at.offset[0]] = category;
}

/// The exponential variates of categories; NaN, which is in order behind all numbers, for those
/// that cannot be drawn.
/// @param loops  array 0 is the weights, array 1 the variates: [rows, n], row-major
/// @param first  the global index of row 0
template <class T>
__global__ void draw_times_kernel(const T* weights, double* times, index_t n, RandomState state,
                                  index_t first, Loops<2> loops, std::uint32_t steps,
                                  WrongIndexReport wrong) {
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const double weight = weight_of(weights[at.offset[0]]);
  if (!kernels::is_weight(weight)) wrong(first + at.offset[1] / n);
  const auto bits = state.bits(first * n + at.offset[1]);
  times[at.offset[1]] =
      weight > 0 ? kernels::exponential(bits, weight) : std::numeric_limits<double>::quiet_NaN();
}

/// Reports rows of which a category was drawn that cannot be, a row per thread.
/// @param last          of each row, the category of the last draw
/// @param step_of_rows  stride of `last`
template <class Time>
__global__ void check_draws_kernel(const Time* times, index_t n, const index_t* last,
                                   index_t step_of_rows, index_t rows, index_t first,
                                   WrongIndexReport wrong) {
  const index_t row = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const Time time = times[row * n + last[row * step_of_rows]];
  if (time != time) wrong(first + row);
}

}  // namespace cuda::detail

namespace kernels {

/// The categories that the host would draw, in the order of the current stream.
///
/// @param weights  [rows, categories]
/// @param out      [rows, draws]
/// @param row      the global index of row 0
/// @return nothing: of a row with invalid weights the draws are unspecified, and the next wait for
///         the device throws
/// @cost   with replacement, a launch per level of sums, that is per factor of 32 in the number of
///         categories, and one for the draws; reads the weights once, and takes memory for 1/31 of
///         them in double. Without, three launches, a sort of all weights of all rows (@see
///         ordered_indices), and memory for them in double
/// @throws Error if a launch fails, or there is no memory
template <class T>
std::optional<std::string> multinomial_rows(On<Cuda>, const Strided<const T>& weights, index_t row,
                                            const RandomState& state, bool replacement,
                                            const Strided<index_t>& out) {
  using namespace cuda::detail;
  if (out.extents.product() == 0) return {};
  const index_t rows = out.extents[0], draws = out.extents[1], n = weights.extents[1];
  const auto two = [](index_t a, index_t b) { return Shape(std::array<index_t, 2>{a, b}); };
  const WrongIndexReport wrong(
      {"multinomial", 0, 0,
       replacement ? "weights must be finite and not negative, and one of them positive"
                   : "weights must be finite and not negative, and as many positive as are drawn"});
  const WeightSums levels(n);
  const index_t stored = replacement ? levels.start(0) : n;
  const auto memory = allocate_bytes(Cuda{}, std::size_t(rows * stored) * sizeof(double));
  auto* const numbers = static_cast<double*>(memory.get());
  if (!replacement) {
    const Strided<const double> times{numbers, two(rows, n), two(n, 1)};
    in_pieces(LoopNest<2>(times.extents, {&weights.strides, &times.strides}),
              [&](const LoopNest<2>& piece) {
                const Loops<2> loops(piece);
                cuda::launch_steps("multinomial", draw_times_kernel<T>, loops.size(), 1,
                                   weights.data, numbers, n, state, row, loops, loops.size(),
                                   wrong);
              });
    ordered_indices(On<Cuda>{}, times, 1, false, out);
    cuda::launch_steps("multinomial", check_draws_kernel<double>, rows, 1, times.data, n,
                       out.data + (draws - 1) * out.strides[1], out.strides[0], rows, row, wrong);
    return {};
  }
  const auto sum = [&](auto of_weights, const auto& below, int level) {
    using B = std::remove_cvref_t<decltype(*below.data)>;
    constexpr int group = WeightSums::group, width = pack_width<B>();
    const Shape groups = two(rows, levels.size(level));
    const Shape from = two(below.strides[0], group * below.strides[1]), to = two(stored, 1);
    const Shape first = two(0, group);
    in_pieces(LoopNest<3>(groups, {&from, &to, &first}), [&](const LoopNest<3>& piece) {
      const Loops<3> loops(piece);
      cuda::launch_steps("multinomial", weight_sums_kernel<decltype(of_weights)::value, B>,
                         loops.size(), 1, row_array<width>(below, 1, piece, 0),
                         numbers + levels.start(level), loops, loops.size(), below.extents[1]);
    });
  };
  sum(std::true_type{}, weights, 1);
  for (int level = 2; level <= levels.top(); ++level) {
    const double* const below = numbers + levels.start(level - 1);
    sum(std::false_type{},
        Strided<const double>{below, two(rows, levels.size(level - 1)), two(stored, 1)}, level);
  }
  const Shape of_row = two(weights.strides[0], 0), by_row = two(1, 0), by_draw = two(0, 1);
  in_pieces(LoopNest<4>(out.extents, {&out.strides, &of_row, &by_row, &by_draw}),
            [&](const LoopNest<4>& piece) {
              const Loops<4> loops(piece);
              cuda::launch_steps("multinomial", draw_categories_kernel<T>, loops.size(), 1,
                                 weights.data, weights.strides[1], numbers, levels, stored, state,
                                 row, draws, out.data, loops, loops.size(), wrong);
            });
  return {};
}

}  // namespace kernels

}  // namespace cleave::inline v0
