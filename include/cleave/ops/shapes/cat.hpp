// Concatenation and repetition of arrays: cat, stack, tile.
//
// The result is sharded as the operands are: along a sharded dimension, ranks receive what their
// part of the result reads.
//
//     // y[S0,R]  = cat(dim<1>{}, a[S0,R], b[S0,R])
//     // y[S0,S1] = cat(dim<1>{}, a[S0,S1], b[S0,S1])    one exchange of both over the second axis
//     // y[S0,S1] = tile(x[S0,S1], dim<1>{}, 3)        one exchange over the second axis
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include <cleave/kernels/copy.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/shapes/reshape.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// "sum,sum->sum; avg,avg->avg; ..": the operands and the result have the same kind of Partial.
template <int Operands>
inline constexpr auto joint_partials = [] {
  std::array<char, 400> text{};
  std::size_t size = 0;
  const auto add = [&](const char* part) {
    while (*part != '\0') text[size++] = *part++;
  };
  for (int op = 0; op <= int(ReduceOp::product); ++op) {
    if (op > 0) add("; ");
    for (int i = 0; i < Operands; ++i) {
      if (i > 0) add(",");
      add(name_of(ReduceOp(op)));
    }
    add("->");
    add(name_of(ReduceOp(op)));
  }
  return text;
}();

}  // namespace detail

namespace ops {

/// Concatenates N arrays along dimension D.
template <int D, int N>
struct Cat {
  index_t extent = 0;  ///< of the result

  static constexpr const char* name = "cat";
  static constexpr const char* partials = detail::joint_partials<N>.data();
  static constexpr RuleText factors(const std::array<int, std::size_t(N)>& dims) {
    RuleText text;
    for (int i = 0; i <= N; ++i) {
      if (i > 0) text += i == N ? "->" : ",";
      text += detail::dim_letters(0, D);
      text += char('a' + dims[0] + i);
      text += detail::dim_letters(D + 1, dims[0]);
    }
    return text;
  }
  static constexpr RuleText reads(const std::array<int, std::size_t(N)>& dims) {
    RuleText pairs;
    for (int i = 0; i < N; ++i) pairs += char('a' + dims[0] + i), pairs += char('a' + dims[0] + N);
    return pairs;
  }
  static constexpr DimMap read_map(int operand, int, const OperandRef* in) {
    index_t begin = 0;
    for (int i = 0; i < operand; ++i) begin += in[i].shape[D];
    return {1, 1, -begin, -begin};
  }
  constexpr Shape extents() const { return Shape::filled(1, extent); }
  static void kernel(const auto& on, const Task& task, const auto& y, const auto&... x) {
    index_t begin = 0;
    int i = 0;
    ((place_slices(on, x, y, D, task.box->begin[D], begin + task.in_box[i].begin[D]),
      begin += task.in[i++].shape[D]),
     ...);
  }
  template <int I>
  static constexpr auto gradient(wrt<I>, const auto& g, const auto&, const auto&... x) {
    const std::array<index_t, std::size_t(N)> length{shape_of(x)[D]...};
    index_t begin = 0;
    for (std::size_t i = 0; i < std::size_t(I); ++i) begin += length[i];
    return detail::call_as(detail::like(std::get<std::size_t(I)>(std::tie(x...))),
                           Slice<D>{begin, 1, length[std::size_t(I)]}, g);
  }
};

/// Stacks N arrays along a new dimension D.
template <int D, int N>
struct Stack : Composite {
  static constexpr const char* name = "stack";
  static constexpr auto body(const auto&... x) {
    return call_op(Cat<D, N>{N}, unsqueeze(x, dim<D>{})...);
  }
  template <int I>
  static constexpr auto gradient(wrt<I>, const auto& g, const auto&...) {
    return call_op(Select<D>{{}, I}, g);
  }
};

/// Repeats x `count` times along dimension D.
template <int D>
struct Tile {
  index_t count = 1;
  index_t extent = 0;  ///< of x

  static constexpr const char* name = "tile";
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr auto reads = detail::new_extent_reads<D>;
  constexpr Shape extents() const { return Shape::filled(1, count * extent); }
  static constexpr DimMap read_map(int, int, const OperandRef*) {
    return {1, 1, 0, 0, Beyond::repeat};
  }
  static void kernel(const auto& on, const Task& task, const auto& y, const auto& x) {
    copy_periods(on, x, y, D, task.box->begin[D] - task.in_box->begin[D], task.in->shape[D]);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&) const {
    return call_op(Reduce<Sum, (1u << D)>{}, call_op(Unflatten<D, 2>{{count, extent}}, g));
  }
};

}  // namespace ops

namespace detail {

template <int D, class... R, class First, class... X>
constexpr auto cat_of(const First& first, const X&... x) {
  constexpr int count = 1 + int(sizeof...(X));
  static_assert(count <= max_operands, "cleave: cat and stack take at most 8 arrays at a time");
  static_assert(((X::dims == First::dims) && ...),
                "cleave: cat and stack require arrays with the same number of dimensions");
  static_assert((std::is_same_v<typename X::value_type, typename First::value_type> && ...),
                "cleave: cat and stack require arrays of the same element type; cast first");
  return call_op<R...>(ops::Cat<D, count>{(shape_of(first)[D] + ... + shape_of(x)[D])}, first,
                       x...);
}

}  // namespace detail

/// Concatenates up to 8 arrays along a dimension: `cat(dim<1>{}, x, y)`.
///
/// @return a new array, whose extent along D is the sum of the operands' extents
/// @collective every rank of the mesh, if an operand is sharded along D or has to be redistributed
/// @cost       along a sharded dimension, receives what the rank's part of the result reads beyond
///             its parts of the operands
/// @throws Error if extents of other dimensions differ
template <class... R, int D, AnyTensor First, AnyTensor... X>
constexpr auto cat(dim<D>, const First& first, const X&... x) {
  return detail::cat_of<detail::dim_index<First::dims>(dim<D>{}), R...>(first, x...);
}
CLEAVE_USAGE(cat, "cat(dim<0>{}, x, y)")

/// Stacks arrays of equal extents along a new dimension: `stack(dim<0>{}, x, y)`. Otherwise as cat.
template <class... R, int D, AnyTensor First, AnyTensor... X>
constexpr auto stack(dim<D>, const First& first, const X&... x) {
  constexpr int d = detail::dim_index<First::dims + 1>(dim<D>{});
  constexpr int count = 1 + int(sizeof...(X));
  static_assert(count <= max_operands, "cleave: cat and stack take at most 8 arrays at a time");
  return call_op<R...>(ops::Stack<d, count>{}, first, x...);
}
CLEAVE_USAGE(stack, "stack(dim<0>{}, x, y)")

/// Repeats x `count` times along a dimension: `tile(x, dim<0>{}, 3)`. Communicates as slice.
/// @throws Error if count is negative
template <class... R, AnyTensor X, int D>
constexpr auto tile(const X& x, dim<D>, index_t count) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  return call_op<R...>(ops::Tile<d>{detail::checked_length("tile", x, count), shape_of(x)[d]}, x);
}
CLEAVE_USAGE(tile, "tile(x, dim<0>{}, count)")

}  // namespace cleave::inline v0
