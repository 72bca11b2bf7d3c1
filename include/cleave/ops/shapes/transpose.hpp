// Permuting and adding dimensions. Results are views of the local elements; placements change in
// the type. There is no communication and no copy; partials stay partial.
//
//     // y[S1,R]   = transpose(x[S0,R])
//     // y[S0,S2]  = unsqueeze(x[S0,S1], dim<1>)
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <cleave/core/reduce_op.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>

namespace cleave::inline v0 {

namespace ops {

template <class By, unsigned Mask>
struct Reduce;

/// Dimension i of the result is dimension D[i] of the operand.
template <int... D>
struct Permute {
  static constexpr std::array<int, sizeof...(D)> order{D...};
  static constexpr const char* name = "permute";
  static constexpr const char* partials = moves_elements;
  static constexpr RuleText factors = [] {
    RuleText permuted;
    for (const int d : order) permuted += char('a' + d);
    return detail::factors_text(detail::dim_letters(0, int(order.size())), permuted);
  }();
  static void view(const Task& task) {
    task.out->data = task.in->data;
    for (std::size_t i = 0; i < order.size(); ++i) task.strides[i] = task.in->strides[order[i]];
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return permute(g, dim<place_of(int(I))...>{});
    }(std::index_sequence_for<std::integral_constant<int, D>...>{});
  }

 private:
  static constexpr int place_of(int d) {
    for (std::size_t i = 0; i < order.size(); ++i)
      if (order[i] == d) return int(i);
    return -1;
  }
};

/// Adds dimensions, those of the mask in the result, along which the elements broadcast.
template <unsigned Mask>
struct BroadcastDims {
  static constexpr int added = std::popcount(Mask);
  static constexpr const char* name = "broadcast_dims";
  static constexpr const char* partials = moves_elements;
  std::array<index_t, std::size_t(added > 0 ? added : 1)> extent{};  // bytes that a trace can keep

  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::dim_letters(0, dims[0] + added, Mask),
                                detail::dim_letters(0, dims[0] + added));
  }
  constexpr Shape extents() const {
    Shape shape(extent);
    shape.dims = added;
    return shape;
  }
  static void view(const Task& task) {
    task.out->data = task.in->data;
    for (int d = 0, from = 0; d < task.out->dims; ++d)
      task.strides[d] = Mask >> d & 1u ? 0 : task.in->strides[from++];
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) {
    return call_op(Reduce<Sum, Mask>{}, g);
  }
};

}  // namespace ops

namespace detail {

/// Dimension d after a and b are exchanged.
constexpr int exchanged(int d, int a, int b) { return d == a ? b : d == b ? a : d; }

template <int A, int B, class... R, class X, int... D>
constexpr auto exchange_dims(const X& x, std::integer_sequence<int, D...>) {
  return call_op<R...>(ops::Permute<exchanged(D, A, B)...>{}, x);
}

}  // namespace detail

/// Permutes dimensions: dimension i of the result is dimension `D[i]` of x,
/// `permute(x, dim<2, 0, 1>{})`.
///
/// @return a view of the local elements
template <class... R, AnyTensor X, int... D>
constexpr auto permute(const X& x, dim<D...> order) {
  static_assert(sizeof...(D) == std::size_t(X::dims) &&
                    detail::dim_mask<X::dims>(order) == (1u << X::dims) - 1u,
                "cleave: permute must name every dimension once");
  return call_op<R...>(ops::Permute<(D < 0 ? D + X::dims : D)...>{}, x);
}
CLEAVE_USAGE(permute, "permute(x, dim<1, 0>{})")

/// Exchanges two dimensions, those of a matrix by default: `transpose(x, dim<0, 2>{})`.
///
/// @return a view of the local elements
template <class... R, AnyTensor X, int A = 0, int B = 1>
constexpr auto transpose(const X& x, dim<A, B> = {}) {
  constexpr int a = detail::dim_index<X::dims>(dim<A>{}), b = detail::dim_index<X::dims>(dim<B>{});
  return detail::exchange_dims<a, b, R...>(x, std::make_integer_sequence<int, X::dims>{});
}
CLEAVE_USAGE(transpose, "transpose(x), transpose(x, dim<0, 1>{})")

/// Inserts a dimension of extent 1 before dimension D (D == dims appends it), e.g. to broadcast [n]
/// along the columns of [n, k]: `unsqueeze(x, dim<1>{}) * y`.
///
/// @return a view of the local elements
template <class... R, AnyTensor X, int D>
constexpr auto unsqueeze(const X& x, dim<D>) {
  constexpr int at = detail::dim_index<X::dims + 1>(dim<D>{});
  return call_op<R...>(ops::BroadcastDims<(1u << at)>{{1}}, x);
}
CLEAVE_USAGE(unsqueeze, "unsqueeze(x, dim<0>{})")

/// Broadcasts x along the dimensions of the mask, to the extents and the placements of `like`,
/// whose partials count as replicated. There is no copy or communication; replicas are sliced.
///
/// @return a view of the local elements
template <unsigned Mask, AnyTensor X, AnyTensor Like>
constexpr auto broadcast_dims(const X& x, const Like& like) {
  ops::BroadcastDims<Mask> op;
  const Shape shape = shape_of(like);
  std::size_t next = 0;
  for (int d = 0; d < Like::dims; ++d)
    if (Mask >> d & 1u) op.extent[next++] = shape[d];
  return detail::call_as(detail::like(like), op, x);
}

}  // namespace cleave::inline v0
