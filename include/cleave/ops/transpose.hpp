// Other orders and numbers of dimensions: views of the local elements, placements change in the
// type. Nothing is communicated or copied, partials stay partial.
//
//     // y[S1,R]   = transpose(x[S0,R])
//     // y[S0,S2]  = unsqueeze(x[S0,S1], dim<1>)
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/dim.hpp>
#include <cleave/ops/operand.hpp>

namespace cleave {

namespace detail {

/// The layout after dimension order[i] has become dimension i.
template <std::size_t Rank>
constexpr Layout permuted(Layout layout, const std::array<int, Rank>& order) {
  const Layout before = layout;
  for (int a = 0; a < layout.axes; ++a)
    for (std::size_t i = 0; i < Rank; ++i)
      if (before[a].is_shard(order[i])) layout[a] = Placement::shard(int(i));
  return layout;
}

template <class X>
constexpr void require_dtensor() {
  static_assert(is_dtensor<X>,
                "cleave: operations take DTensors; distribute_tensor makes one of a Tensor");
}

template <class X, int... D>
auto permute_dtensor(const X& x) {
  constexpr std::array<int, sizeof...(D)> order{D...};
  using P = placements_t<permuted(X::layout, order).packed(), X::placements_type::size>;
  typename X::Extents shape{};
  for (std::size_t i = 0; i < order.size(); ++i) shape[i] = x.shape()[std::size_t(order[i])];
  return DTensor<typename X::value_type, X::dims, typename X::mesh_type, P>(
      x.local().permute(order), x.mesh(), shape);
}

/// 0, 1, .., with a and b exchanged.
constexpr int exchanged(int d, int a, int b) { return d == a ? b : d == b ? a : d; }

template <int A, int B, class X, int... D>
auto exchange_dims(const X& x, std::integer_sequence<int, D...>) {
  return permute_dtensor<X, exchanged(D, A, B)...>(x);
}

}  // namespace detail

/// Dimension i of the result is dimension `D[i]` of x: `permute(x, dim<2, 0, 1>{})`.
///
/// @return shares the local elements
template <AnyTensor X, int... D>
auto permute(const X& x, dim<D...> order) {
  detail::require_dtensor<X>();
  static_assert(sizeof...(D) == std::size_t(X::dims) &&
                    detail::dim_mask<X::dims>(order) == (1u << X::dims) - 1u,
                "cleave: permute names every dimension once");
  return detail::permute_dtensor<X, (D < 0 ? D + X::dims : D)...>(x);
}

/// Two dimensions exchanged, those of a matrix by default: `transpose(x, dim<0, 2>{})`.
///
/// @return shares the local elements
template <AnyTensor X, int A = 0, int B = 1>
auto transpose(const X& x, dim<A, B> = {}) {
  detail::require_dtensor<X>();
  constexpr int a = detail::dim_index<X::dims>(dim<A>{}), b = detail::dim_index<X::dims>(dim<B>{});
  return detail::exchange_dims<a, b>(x, std::make_integer_sequence<int, X::dims>{});
}

/// A new dimension of extent 1 before dimension D (D == dims appends it), e.g. to repeat [n]
/// along the columns of [n, k]: `unsqueeze(x, dim<1>{}) * y`.
///
/// @return shares the local elements
template <AnyTensor X, int D>
auto unsqueeze(const X& x, dim<D>) {
  detail::require_dtensor<X>();
  constexpr int rank = X::dims + 1;
  constexpr int at = detail::dim_index<rank>(dim<D>{});
  constexpr Layout layout = [] {
    Layout result = X::layout;
    for (int a = 0; a < result.axes; ++a)
      if (result[a].is_shard() && result[a].dim >= at)
        result[a] = Placement::shard(result[a].dim + 1);
    return result;
  }();
  std::array<index_t, std::size_t(rank)> shape{};
  for (int d = 0; d < rank; ++d)
    shape[std::size_t(d)] = d == at ? 1 : x.shape()[std::size_t(d < at ? d : d - 1)];
  using P = placements_t<layout.packed(), X::placements_type::size>;
  return DTensor<typename X::value_type, rank, typename X::mesh_type, P>(x.local().unsqueeze(at),
                                                                         x.mesh(), shape);
}

}  // namespace cleave
