// The largest or smallest elements along a dimension, and the order of all elements: topk, argsort.
//
//     // values[S0], indices[S0] = topk(x[S0], dim<1>{}, 5)
//     // values[S0], indices[S0] = topk(x[S1], dim<1>{}, 5)     an all-to-all of x first
#pragma once

#include <array>
#include <string>
#include <tuple>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/ordered_indices.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/indices/gather_scatter.hpp>
#include <cleave/ops/shapes/slice.hpp>

namespace cleave::inline v0 {

/// Which elements come first.
enum class Order { descending, ascending };

namespace ops {

/// The indices of the first `count` elements in order along dimension D, which is not sharded.
template <int D>
struct OrderedIndices {
  index_t count = 0;
  Order order = Order::descending;

  using result = index_t;
  static constexpr const char* name = "topk";
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    RuleText letters = detail::letter_of(D);
    letters += char('a' + dims[0]);
    return letters;
  }
  constexpr Shape extents() const { return Shape::filled(1, count); }
  void kernel(const auto& on, const Task&, const kernels::Strided<index_t>& y,
              const auto& x) const {
    ordered_indices(on, x, D, order == Order::descending, y);
  }
};

}  // namespace ops

namespace detail {

template <class X, int D>
constexpr int ordered_dim() {
  static_assert(!is_complex<typename X::value_type>, "cleave: complex numbers have no order");
  return dim_index<X::dims>(dim<D>{});
}

}  // namespace detail

/// The `count` largest elements along a dimension, or the smallest, in order, and their indices:
/// `const auto [values, indices] = topk(x, dim<1>{}, 5)`. Of equal elements the lower index comes
/// first; NaNs count as largest.
///
/// @return     a std::tuple of values and int64 indices; the selected elements receive gradients
/// @collective every rank of the mesh, if x is Partial, or the dimension is sharded: x is
///             redistributed, by an all-to-all if another dimension can be sharded instead
/// @throws Error if count is negative or exceeds the extent
template <AnyTensor X, int D>
constexpr auto topk(const X& x, dim<D>, index_t count, Order order = Order::descending) {
  constexpr int d = detail::ordered_dim<X, D>();
  const index_t extent = shape_of(x)[d];
  if (count < 0 || (count > extent && detail::knows_extents(x)))
    throw Error("topk",
                "the count must be between 0 and " + std::to_string(extent) +
                    ", the extent of dimension " + std::to_string(d) + ", not " +
                    std::to_string(count),
                detail::context_of(x));
  const auto whole = call_op(ops::Whole<d>{}, x);
  const auto indices = call_op(ops::OrderedIndices<d>{count, order}, whole);
  return std::tuple{gather(whole, dim<d>{}, indices), indices};
}
CLEAVE_USAGE(topk, "topk(x, dim<0>{}, count), topk(x, dim<0>{}, count, order)")

/// The indices that sort the elements along a dimension: `argsort(x, dim<1>{}, Order::descending)`;
/// gather(x, dim<1>{}, indices) is sorted. Otherwise as topk.
template <class... R, AnyTensor X, int D>
constexpr auto argsort(const X& x, dim<D>, Order order = Order::ascending) {
  constexpr int d = detail::ordered_dim<X, D>();
  return call_op<R...>(ops::OrderedIndices<d>{shape_of(x)[d], order}, x);
}
CLEAVE_USAGE(argsort, "argsort(x, dim<0>{}), argsort(x, dim<0>{}, order)")

}  // namespace cleave::inline v0
