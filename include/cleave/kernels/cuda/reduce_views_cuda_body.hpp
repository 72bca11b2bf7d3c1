// The kernels behind collectives that reduce views in device memory.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/loops.hpp>
#include <cleave/kernels/cuda/map_nest.hpp>
#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/reduce_views_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

/// The addresses of the operands, one per rank: usually passed as kernel parameters.
struct Operands {
  static constexpr int max_few = 64;
  const void* few[max_few] = {};
  const void* const* many = nullptr;  ///< in device memory, if there are more than `max_few`
  int count = 0;

  template <class T>
  __device__ const T* at(int rank) const {
    return static_cast<const T*>(many != nullptr ? many[rank] : few[rank]);
  }
};

/// to[i] = part.few[i]: the addresses are kernel parameters, which a graph keeps.
template <class Address>
__global__ void store_addresses(Operands part, Address* to) {
  if (int(threadIdx.x) < part.count) to[threadIdx.x] = part.few[threadIdx.x];
}

/// The number of contiguous elements that a thread combines per step.
template <class T>
inline constexpr int combine_width = pack_width<T>() < 8 ? pack_width<T>() : 8;

template <class Op, class A, class T, int V>
__device__ void combine_packs(Pack<A, V>& sum, const Pack<T, V>& next) {
  for (int k = 0; k < V; ++k)
    sum.values[k] = kernels::Fold<Op>::combine(sum.values[k], A(next.values[k]));
}

template <class A, class T, int V>
__device__ void combine_packs(ReduceOp op, Pack<A, V>& sum, const Pack<T, V>& next) {
  if constexpr (is_complex<T>) return combine_packs<Product>(sum, next);
  else if (op == ReduceOp::product) combine_packs<Product>(sum, next);
  else if (op == ReduceOp::max) combine_packs<Max>(sum, next);
  else if (op == ReduceOp::min) combine_packs<Min>(sum, next);
  else if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::band) combine_packs<BitAnd>(sum, next);
    else if (op == ReduceOp::bor) combine_packs<BitOr>(sum, next);
    else if (op == ReduceOp::bxor) combine_packs<BitXor>(sum, next);
    else combine_packs<Sum>(sum, next);
  } else combine_packs<Sum>(sum, next);
}

/// One kernel for all reductions of a type, aligned or not, as collectives need all of them.
///
/// @param loops  array 0 is `result`, array 1 is any operand; a step is a run
/// @param cols   elements of the innermost loop
/// @param packed whether full runs are packs in all arrays
template <class T>
__global__ void combine_kernel(ReduceOp op, Operands operands, Loops<2> loops, std::uint32_t steps,
                               index_t cols, bool packed, T* result) {
  using A = accumulator_t<T>;
  constexpr int width = combine_width<T>, ahead = 4;  // operands that are loaded together
  const std::uint32_t step = blockIdx.x * blockDim.x + threadIdx.x;
  if (step >= steps) return;
  const auto at = loops.at(step);
  const index_t left = cols - index_t(at.inner) * width;
  const Run<width> in{packed, loops.strides[1][0] / width, left};

  Pack<A, width> sum;
  Pack<T, width> next[ahead];
  next[0] = in.load(operands.at<T>(0) + at.offset[1]);
  for (int k = 0; k < width; ++k) sum.values[k] = A(next[0].values[k]);
  for (int rank = 1; rank < operands.count; rank += ahead) {
    for (int i = 0; i < ahead; ++i)
      if (rank + i < operands.count) next[i] = in.load(operands.at<T>(rank + i) + at.offset[1]);
    for (int i = 0; i < ahead; ++i)
      if (rank + i < operands.count) combine_packs(op, sum, next[i]);
  }
  for (int k = 0; k < width; ++k) {
    if constexpr (std::is_floating_point_v<A>) {
      if (op == ReduceOp::avg) sum.values[k] /= A(operands.count);
    }
    next[0].values[k] = T(sum.values[k]);
  }
  Run<width>{packed, loops.strides[0][0] / width, left}.store(result + at.offset[0], next[0]);
}

template <class T>
void combine_nest(ReduceOp op, const Operands& operands, std::span<const void* const> data,
                  const LoopNest<2>& nest, void* destination) {
  constexpr int width = combine_width<T>;
  auto* result = static_cast<T*>(destination);
  bool packed = nest.inner_is_dense() && packs_serve<width>(nest, 0, Elements<T>{result});
  for (const void* operand : data)
    packed = packed && packs_serve<width>(nest, 1, Elements<T>{static_cast<const T*>(operand)});
  in_pieces(nest, [&](const LoopNest<2>& piece) {
    const Loops<2> loops(piece, width);
    const std::uint32_t steps = loops.size();
    launch_steps("reduce_range", combine_kernel<T>, steps, 1, op, operands, loops, steps,
                 piece.extents[piece.inner()], packed, result);
  });
}

/// The same for a run-time element type: sums and products of signed integers are computed as
/// unsigned ones (both wrap), sums of complex numbers as pairs, bools as the integers 0 and 1.
template <std::same_as<Cuda> Device>
void combine_nest(Device, ReduceOp op, DType type, const Operands& operands,
                  std::span<const void* const> data, LoopNest<2> nest, void* destination) {
  const bool ordered = op == ReduceOp::max || op == ReduceOp::min;
  visit_dtype(type, [&]<class T>() {
    if constexpr (is_float8<T>) {  // refused before
    } else if constexpr (std::is_same_v<T, bool>) {
      const bool any = op == ReduceOp::sum || op == ReduceOp::max;
      const ReduceOp of_bytes = cleave::detail::is_bitwise(op) ? op
                                : any                          ? ReduceOp::max
                                                               : ReduceOp::min;
      combine_nest<std::uint8_t>(of_bytes, operands, data, nest, destination);
    } else if constexpr (is_complex<T>) {
      if (op == ReduceOp::product) return combine_nest<T>(op, operands, data, nest, destination);
      nest.split_elements(2);
      combine_nest<typename T::value_type>(op, operands, data, nest, destination);
    } else {
      if (ordered) combine_nest<T>(op, operands, data, nest, destination);
      else combine_nest<kernels::wrapping_t<T>>(op, operands, data, nest, destination);
    }
  });
}

/// Whether two views have the same memory layout. @pre equal extents
inline bool equal_strides(const Shape& extents, const Shape& a, const Shape& b) {
  for (int d = 0; d < extents.dims; ++d)
    if (extents[d] != 1 && a[d] != b[d]) return false;
  return true;
}

/// Computes all elements of `result`. @pre at least two operands
template <std::same_as<Cuda> Device>
void combine_views(Device device, ReduceOp op, std::span<const ConstView> views,
                   const View& result) {
  std::vector<ConstView> operands(views.begin(), views.end());
  std::vector<std::shared_ptr<void>> kept;  // until the kernel is enqueued
  bool alike = true;
  for (const ConstView& view : operands)
    alike = alike && equal_strides(result.extents, view.strides, operands[0].strides);
  if (!alike) {
    for (ConstView& view : operands) {
      if (!view.contiguous()) {
        kept.push_back(allocate_bytes(Cuda{}, std::size_t(view.bytes())));
        const View dense = View::dense(kept.back().get(), view.dtype, view.extents);
        strided_copy(Cuda{}, view, dense);
        view = dense;
      }
      view.strides = row_major_strides(view.extents);
    }
  }

  std::vector<const void*> data;
  for (const ConstView& view : operands) data.push_back(view.data);
  Operands table;
  table.count = int(data.size());
  if (table.count <= Operands::max_few) {
    for (int r = 0; r < table.count; ++r) table.few[r] = data[std::size_t(r)];
  } else {
    kept.push_back(allocate_bytes(Cuda{}, data.size() * sizeof(const void*)));
    auto** const addresses = static_cast<const void**>(kept.back().get());
    for (int begin = 0; begin < table.count; begin += Operands::max_few) {
      Operands part;
      part.count = std::min(Operands::max_few, table.count - begin);
      std::copy_n(data.begin() + begin, part.count, part.few);
      launch("reduce_range", store_addresses<const void*>, dim3(1), dim3(Operands::max_few), part,
             addresses + begin);
    }
    table.many = addresses;
  }

  const LoopNest<2> nest(result.extents, {&result.strides, &operands[0].strides});
  combine_nest(device, op, result.dtype, table, data, nest, result.data);
}

/// Calls visit(box) for boxes that together cover elements [begin, end) in row-major order.
template <class Visit>
void for_boxes(Box box, int dim, index_t begin, index_t end, const Visit& visit) {
  if (begin >= end) return;
  if (dim == box.dims()) return visit(box);
  index_t row = 1;
  for (int d = dim + 1; d < box.dims(); ++d) row *= box.extent(d);
  const auto part = [&](index_t first, index_t last, index_t from, index_t to) {
    Box inside = box;
    inside.begin[dim] = first;
    inside.end[dim] = last;
    for_boxes(inside, dim + 1, from, to, visit);
  };
  const index_t first = (begin + row - 1) / row, last = end / row;  // whole rows
  if (first > last) return part(last, first, begin - last * row, end - last * row);
  if (begin < first * row) part(first - 1, first, begin - (first - 1) * row, row);
  if (first < last) part(first, last, 0, row);
  if (last * row < end) part(last, last + 1, 0, end - last * row);
}

}  // namespace cuda::detail

template <std::same_as<Cuda> Device>
void reduce_range(Device, ReduceOp op, std::span<const ConstView> operands, const View& result,
                  index_t begin, index_t end) {
  if (begin >= end) return;
  const auto reduce = [&](std::span<const ConstView> from, const View& to) {
    if (from.size() > 1) cuda::detail::combine_views(Device{}, op, from, to);
    else if (from[0].data != to.data) strided_copy(Cuda{}, from[0], to);
  };
  if (begin == 0 && end == result.size()) return reduce(operands, result);

  bool dense = result.contiguous();
  for (const ConstView& operand : operands) dense = dense && operand.contiguous();
  std::vector<ConstView> parts(operands.begin(), operands.end());
  const Shape flat(std::array<index_t, 1>{result.size()});
  const auto flattened = [&](const auto& view) {
    auto copy = view;
    copy.extents = flat;
    copy.strides = Shape::filled(1, 1);
    return copy;
  };
  const Box whole = Box::of(dense ? flat : result.extents);
  cuda::detail::for_boxes(whole, 0, begin, end, [&](const Box& box) {
    for (std::size_t r = 0; r < parts.size(); ++r)
      parts[r] = (dense ? flattened(operands[r]) : operands[r])[box];
    reduce(parts, (dense ? flattened(result) : result)[box]);
  });
}

}  // namespace cleave::inline v0
