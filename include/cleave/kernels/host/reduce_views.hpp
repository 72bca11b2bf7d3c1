// Elementwise reductions of views: the arithmetic of all_reduce and reduce_scatter wherever
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
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/tensor/linear_range.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::detail {

/// The reduction of one block: of two operands by `both`; of more by `first`, which combines two of
/// them into the accumulator, `next` for each other one but the last, and `last`. The result is
/// divided by `ranks` (1: not) and rounded to the element type.
///
/// The accumulator overlaps no operand. The result may be an operand.
struct ReduceKernel {
  void (*both)(const void* a, const void* b, void* result, index_t count, int ranks);
  void (*first)(void* accumulator, const void* a, const void* b, index_t count);
  void (*next)(void* accumulator, const void* a, index_t count);
  void (*last)(const void* accumulator, const void* a, void* result, index_t count, int ranks);
  index_t accumulator_bytes;  ///< of one of the `parts`
  int parts;  ///< numbers per element: 2 for complex numbers treated as pairs, bytes of bits
};

template <class T, class Op>
struct ReduceLoops {
  using A = accumulator_t<T>;
  using Fold = kernels::Fold<Op>;

  // Loops of a known length without aliases: vectorised at -O2, too.
  static constexpr index_t run = 64;

  template <class X>
  static void combine_run(A* __restrict sum, const X* x, const T* y, index_t count) {
    for (index_t i = 0; i < count; ++i) sum[i] = Fold::combine(A(x[i]), A(y[i]));
  }
  static void next_run(A* __restrict sum, const T* x, index_t count) {
    for (index_t i = 0; i < count; ++i) sum[i] = Fold::combine(sum[i], A(x[i]));
  }
  static void mean_run(A* __restrict sum, index_t count, A ranks) {
    for (index_t i = 0; i < count; ++i) sum[i] = A(sum[i] / ranks);
  }
  static void store_run(const A* __restrict sum, T* __restrict out, index_t count) {
    if constexpr (std::is_same_v<T, A>) std::memcpy(out, sum, std::size_t(count) * sizeof(T));
    else
      for (index_t i = 0; i < count; ++i) out[i] = T(sum[i]);
  }

  /// Calls f(begin, length) for the runs of a block.
  template <class F>
  static void in_runs(index_t count, F f) {
    index_t i = 0;
    for (; i + run <= count; i += run) f(i, run);
    if (i < count) f(i, count - i);
  }

  /// result = x op y, by way of a run in the L1 cache, since `result` may be an operand.
  template <class X>
  static void finish(const X* x, const T* y, T* result, index_t count, int ranks) {
    in_runs(count, [&](index_t i, index_t length) {
      alignas(64) A sum[run];
      combine_run(sum, x + i, y + i, length);
      if constexpr (std::is_floating_point_v<A>)
        if (ranks > 1) mean_run(sum, length, A(ranks));
      store_run(sum, result + i, length);
    });
  }

  static void both(const void* a, const void* b, void* result, index_t count, int ranks) {
    finish(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(result), count,
           ranks);
  }
  static void last(const void* accumulator, const void* a, void* result, index_t count, int ranks) {
    finish(static_cast<const A*>(accumulator), static_cast<const T*>(a), static_cast<T*>(result),
           count, ranks);
  }
  static void first(void* accumulator, const void* a, const void* b, index_t count) {
    auto* sum = static_cast<A*>(accumulator);
    const auto* x = static_cast<const T*>(a);
    const auto* y = static_cast<const T*>(b);
    in_runs(count, [&](index_t i, index_t length) { combine_run(sum + i, x + i, y + i, length); });
  }
  static void next(void* accumulator, const void* a, index_t count) {
    auto* sum = static_cast<A*>(accumulator);
    const auto* x = static_cast<const T*>(a);
    in_runs(count, [&](index_t i, index_t length) { next_run(sum + i, x + i, length); });
  }

  static constexpr ReduceKernel kernel(int parts) {
    // `last` does what `both` does if the accumulator has the type of the elements
    constexpr auto at_last = [] {
      if constexpr (std::is_same_v<T, A>) return &both;
      else return &last;
    }();
    return {both, first, next, at_last, index_t(sizeof(A)), parts};
  }
};

// Templates constrained to one type: loops of all element types are compiled where elements are
// reduced, not wherever this file is included.

/// The kernel of an operation for elements of type T. Integers are added and multiplied as unsigned
/// (wrapping is defined), complex numbers are added as pairs.
/// @pre for Max and Min, the type has an order; it is no float of 8 bits
template <class Op>
struct ReduceKernelOf {
  template <class T>
  ReduceKernel operator()() const {
    constexpr bool orders = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
    if constexpr (is_float8<T> || (is_complex<T> && orders)) return {};
    else if constexpr (is_complex<T> && std::is_same_v<Op, Sum>)
      return ReduceLoops<typename T::value_type, Op>::kernel(2);
    else if constexpr (orders) return ReduceLoops<T, Op>::kernel(1);
    else return ReduceLoops<kernels::wrapping_t<T>, Op>::kernel(1);
  }
};

/// Of the bytes of elements, which may have any type.
template <class Op>
ReduceKernel bitwise_kernel(DType type) {
  return ReduceLoops<std::uint8_t, Op>::kernel(int(size_of(type)));
}

template <std::same_as<DType> Type>
ReduceKernel reduce_kernel(Type type, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: return visit_dtype(type, ReduceKernelOf<Sum>{});
    case ReduceOp::max: return visit_dtype(type, ReduceKernelOf<Max>{});
    case ReduceOp::min: return visit_dtype(type, ReduceKernelOf<Min>{});
    case ReduceOp::product: return visit_dtype(type, ReduceKernelOf<Product>{});
    case ReduceOp::band: return bitwise_kernel<BitAnd>(type);
    case ReduceOp::bor: return bitwise_kernel<BitOr>(type);
    case ReduceOp::bxor: return bitwise_kernel<BitXor>(type);
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
  const bool in_place = result.contiguous();
  for (; begin < end; begin += step) {
    const index_t count = step < end - begin ? step : end - begin;
    const index_t numbers = count * kernel.parts;
    void* const out = in_place ? element_at(result, begin) : packed[0];
    const void* const a = dense(0, begin, count, packed[0]);
    const void* const b = dense(1, begin, count, packed[1]);
    if (operands.size() == 2) {
      kernel.both(a, b, out, numbers, divisor);
    } else {
      kernel.first(accumulator, a, b, numbers);
      for (std::size_t r = 2; r + 1 < operands.size(); ++r)
        kernel.next(accumulator, dense(r, begin, count, packed[0]), numbers);
      const void* const last = dense(operands.size() - 1, begin, count, packed[0]);
      kernel.last(accumulator, last, out, numbers, divisor);
    }
    if (!in_place) unpack_range(packed[0], result, begin, count);
  }
}

}  // namespace cleave::inline v0::detail

namespace cleave::inline v0 {

/// The same, with the views' device as a type.
template <std::same_as<Host> Device>
void reduce_range(Device, ReduceOp op, std::span<const ConstView> operands, const View& result,
                  index_t begin, index_t end) {
  detail::reduce_range(op, operands, result, begin, end);
}

}  // namespace cleave::inline v0
