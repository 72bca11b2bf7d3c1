// Stencils between grids: a result that is coarser or finer than the fields that it reads.
//
//     coarsen(2, 2)   element (i, j) of the result reads a field around (2 i, 2 j)
//     refine(2, 2)    around (floor(i / 2), floor(j / 2))
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <numeric>
#include <type_traits>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/placement/dim_map.hpp>

namespace cleave::inline v0 {

/// How far a stencil moves in a field from one element of the result to the next: num / den.
struct Stride {
  int dims = 1;  ///< 1: also the same in all dimensions
  int num[max_dims] = {1}, den[max_dims] = {1};

  friend constexpr bool operator==(const Stride&, const Stride&) = default;

  /// Element i of the result reads the field around floor(num * i / den). @return without a reach
  constexpr DimMap map(int d) const {
    const int at = dims == 1 ? 0 : d;
    if (at >= dims) return {};
    return {num[at], den[at], 0, 0};
  }
  /// Whether it is one of fields with that many dimensions.
  constexpr bool is_valid(int field_dims) const {
    for (int d = 0; d < dims; ++d)
      if (num[d] < 1 || den[d] < 1) return false;
    return dims == 1 || dims == field_dims;
  }
};

/// The result has every n-th element of a dimension, or that many for n elements: one number for
/// all dimensions, or one per dimension.
///
///     struct Restrict : Stencil {
///       static constexpr auto stride = coarsen(2);
///       constexpr auto operator()(const auto& u) const {
///         return 0.25 * u(-1) + 0.5 * u(0) + 0.25 * u(1);  // around element 2 i
///       }
///     };
template <std::convertible_to<int>... N>
constexpr Stride coarsen(N... of_dim) {
  static_assert(sizeof...(N) >= 1 && int(sizeof...(N)) <= max_dims);
  Stride stride{int(sizeof...(N))};
  int d = 0;
  ((stride.num[d] = of_dim, stride.den[d++] = 1), ...);
  return stride;
}

/// The result has n elements for each element of the field: one number for all dimensions, or one
/// per dimension. `u(0)` is the element floor(i / n), `u.index(d) % n` the place in it.
///
///     struct Interpolate : Stencil {
///       static constexpr auto stride = refine(2);
///       constexpr auto operator()(const auto& u) const {
///         return 0.5 * (u(0) + u(u.index(0) % 2));  // every second element lies between two
///       }
///     };
template <std::convertible_to<int>... N>
constexpr Stride refine(N... of_dim) {
  Stride stride = coarsen(of_dim...);
  std::swap(stride.num, stride.den);
  return stride;
}

namespace detail {

template <class S>
concept declares_stride = requires { S::stride; };

/// The stride of a stencil in its operand I: one for all fields, or an array of one per operand.
template <class S, std::size_t I>
constexpr Stride declared_stride() {
  if constexpr (!declares_stride<S>) return {};
  else if constexpr (std::is_convertible_v<decltype(S::stride), Stride>) return S::stride;
  else return S::stride[I];
}

/// The number of elements of the result, in each dimension, after which places in refined fields
/// repeat.
template <class S, std::size_t... I>
constexpr std::array<int, std::size_t(max_dims)> periods_of(std::index_sequence<I...>) {
  std::array<int, std::size_t(max_dims)> periods{};
  for (int d = 0; d < max_dims; ++d) {
    periods[std::size_t(d)] = 1;
    ((periods[std::size_t(d)] =
          std::lcm(periods[std::size_t(d)], int(declared_stride<S, I>().map(d).den))),
     ...);
  }
  return periods;
}

}  // namespace detail

}  // namespace cleave::inline v0
