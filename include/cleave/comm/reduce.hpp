// Elementwise reductions over ranks: the arithmetic of all_reduce and reduce_scatter wherever
// cleave itself reduces.
//
// Operands are combined in the order given, ((a0 + a1) + a2) + .., so that a result has the same
// bits in every run. 16-bit types are accumulated in float and rounded once. Sums and products of
// integers wrap. max and min propagate NaNs. Bools: sum and max are `or`, product and min are
// `and`.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include <cleave/comm/linear_range.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/arithmetic.hpp>
#include <cleave/tensor/streaming.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::detail {

/// The reduction of one block: `first` combines two operands into the accumulator, `next` one
/// more, `last` rounds to the element type after a division by `ranks` (1: none).
///
/// The accumulator never overlaps an operand; `last` may write where an operand was read.
struct ReduceKernel {
  void (*first)(void* accumulator, const void* a, const void* b, index_t count);
  void (*next)(void* accumulator, const void* a, index_t count);
  void (*last)(const void* accumulator, void* result, index_t count, int ranks);
  index_t accumulator_bytes;  ///< of one of the `parts`
  int parts;                  ///< numbers per element: 2 for complex numbers treated as pairs
};

template <class T, class Op>
struct ReduceLoops {
  using A = accumulator_t<T>;
  using Fold = kernels::Fold<Op>;

  // Loops of a known length without aliases: vectorised at -O2, too.
  static constexpr index_t run = 64;

  static void first_run(A* __restrict sum, const T* x, const T* y, index_t count) {
    for (index_t i = 0; i < count; ++i) sum[i] = Fold::combine(A(x[i]), A(y[i]));
  }
  static void next_run(A* __restrict sum, const T* x, index_t count) {
    for (index_t i = 0; i < count; ++i) sum[i] = Fold::combine(sum[i], A(x[i]));
  }
  static void mean_run(const A* __restrict sum, T* __restrict out, index_t count, A ranks) {
    for (index_t i = 0; i < count; ++i) out[i] = T(sum[i] / ranks);
  }

  static void first(void* accumulator, const void* a, const void* b, index_t count) {
    auto* sum = static_cast<A*>(accumulator);
    const auto* x = static_cast<const T*>(a);
    const auto* y = static_cast<const T*>(b);
    index_t i = 0;
    for (; i + run <= count; i += run) first_run(sum + i, x + i, y + i, run);
    first_run(sum + i, x + i, y + i, count - i);
  }

  static void next(void* accumulator, const void* a, index_t count) {
    auto* sum = static_cast<A*>(accumulator);
    const auto* x = static_cast<const T*>(a);
    index_t i = 0;
    for (; i + run <= count; i += run) next_run(sum + i, x + i, run);
    next_run(sum + i, x + i, count - i);
  }

  static void last(const void* accumulator, void* result, index_t count, int ranks) {
    const auto* sum = static_cast<const A*>(accumulator);
    auto* out = static_cast<T*>(result);
    if constexpr (std::is_floating_point_v<A>) {
      if (ranks > 1) {
        index_t i = 0;
        for (; i + run <= count; i += run) mean_run(sum + i, out + i, run, A(ranks));
        return mean_run(sum + i, out + i, count - i, A(ranks));
      }
    }
    if constexpr (std::is_same_v<T, A>) std::memcpy(out, sum, std::size_t(count) * sizeof(T));
    else
      for (index_t i = 0; i < count; ++i) out[i] = T(sum[i]);
  }

  static constexpr ReduceKernel kernel(int parts) {
    return {first, next, last, index_t(sizeof(A)), parts};
  }
};

// Templates constrained to one type: loops of all element types are compiled where elements are
// reduced, not wherever this file is included.

/// The kernel of an operation for elements of type T. Integers are added and multiplied as unsigned
/// (wrapping is defined), complex numbers are added as pairs.
/// @pre for Max and Min, the type has an order
template <class Op>
struct ReduceKernelOf {
  template <class T>
  ReduceKernel operator()() const {
    constexpr bool orders = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
    if constexpr (is_complex<T> && orders) return {};
    else if constexpr (is_complex<T> && std::is_same_v<Op, Sum>)
      return ReduceLoops<typename T::value_type, Op>::kernel(2);
    else if constexpr (orders) return ReduceLoops<T, Op>::kernel(1);
    else return ReduceLoops<kernels::wrapping_t<T>, Op>::kernel(1);
  }
};

template <std::same_as<DType> Type>
ReduceKernel reduce_kernel(Type type, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: return visit_dtype(type, ReduceKernelOf<Sum>{});
    case ReduceOp::max: return visit_dtype(type, ReduceKernelOf<Max>{});
    case ReduceOp::min: return visit_dtype(type, ReduceKernelOf<Min>{});
    case ReduceOp::product: return visit_dtype(type, ReduceKernelOf<Product>{});
  }
  return {};
}

/// result[i] = operands[0][i] op operands[1][i] op .., for elements [begin, end) in row-major
/// order. An average divides by the number of operands.
///
/// @pre equal extents and element types; `require_reduction` holds; `result` overlaps no operand,
///      or is the same view as one
template <std::same_as<ReduceOp> Op>
void reduce_range(Op op, std::span<const ConstView> operands, const View& result, index_t begin,
                  index_t end) {
  if (begin >= end) return;
  if (operands.size() == 1) {
    if (operands[0].data != result.data) copy_range(operands[0], result, begin, end);
    return;
  }
  const ReduceKernel kernel = reduce_kernel(result.dtype, op);
  const int divisor = op == ReduceOp::avg ? int(operands.size()) : 1;
  const index_t step = block_bytes / (kernel.accumulator_bytes * kernel.parts);
  alignas(64) std::byte accumulator[block_bytes];
  alignas(64) std::byte packed[2][block_bytes];
  const auto dense = [&](std::size_t r, index_t at, index_t count, void* scratch) {
    if (operands[r].contiguous()) return element_at(operands[r], at);
    pack_range(operands[r], at, count, scratch);
    return static_cast<const void*>(scratch);
  };
  const bool in_place = result.contiguous() && std::size_t(result.bytes()) < streaming_array_bytes;
  for (; begin < end; begin += step) {
    const index_t count = step < end - begin ? step : end - begin;
    const index_t numbers = count * kernel.parts;
    kernel.first(accumulator, dense(0, begin, count, packed[0]), dense(1, begin, count, packed[1]),
                 numbers);
    for (std::size_t r = 2; r < operands.size(); ++r)
      kernel.next(accumulator, dense(r, begin, count, packed[0]), numbers);
    void* out = in_place ? element_at(result, begin) : packed[0];
    kernel.last(accumulator, out, numbers, divisor);
    if (!in_place) unpack_range(packed[0], result, begin, count);
  }
}

}  // namespace cleave::detail

namespace cleave {

/// The same, with the views' device as a type.
template <std::same_as<Host> Device>
void reduce_range(Device, ReduceOp op, std::span<const ConstView> operands, const View& result,
                  index_t begin, index_t end) {
  detail::reduce_range(op, operands, result, begin, end);
}

}  // namespace cleave
