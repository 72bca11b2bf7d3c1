// Dimensions of a tensor as arguments: `sum(x, dim<1>{})`.
#pragma once

#include <array>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave::inline v0 {

/// One or more dimensions; negative ones count from the end.
template <int... D>
struct dim {};

/// All dimensions: the default of reductions.
struct every_dim {};

namespace detail {

/// The dimensions as a mask: bit d stands for dimension d. 0 if a dimension is named twice.
template <int Rank, int... D>
constexpr unsigned dim_mask(dim<D...>) {
  static_assert(((D >= -Rank && D < Rank) && ...), "cleave: the tensor has no such dimension");
  unsigned mask = 0;
  bool twice = false;
  ((twice = twice || (mask >> (D < 0 ? D + Rank : D) & 1u), mask |= 1u << (D < 0 ? D + Rank : D)),
   ...);
  return twice ? 0 : mask;
}

template <class D>
inline constexpr bool is_dim = false;
template <int... D>
inline constexpr bool is_dim<dim<D...>> = true;

/// The mask of a `dim` or of `every_dim`, for a tensor of type X.
template <class X, class D>
constexpr unsigned checked_mask() {
  if constexpr (std::is_same_v<D, every_dim>) {
    return (1u << X::dims) - 1u;
  } else if constexpr (!is_dim<D>) {
    static_assert(is_dim<D>,
                  "cleave: dimensions are types: write dim<0>{}, as in sum(x, dim<0>{})");
    return 0;
  } else {
    constexpr unsigned mask = dim_mask<X::dims>(D{});
    static_assert(mask != 0, "cleave: dim names one or more dimensions, each once");
    return mask;
  }
}

/// The index of a dimension, counted from the front.
template <int Rank, int D>
constexpr int dim_index(dim<D>) {
  static_assert(D >= -Rank && D < Rank, "cleave: the tensor has no such dimension");
  return D < 0 ? D + Rank : D;
}

/// "b": the letter of dimension 1.
constexpr RuleText letter_of(int d) { return dim_letters(d, d + 1); }

/// "adc": letters of `dims` dimensions, with a new letter for dimension `at`.
constexpr RuleText letters_with(int dims, int at) {
  return joined(dim_letters(0, at), char('a' + dims), dim_letters(at + 1, dims));
}

/// "abc->adc": dimension At of the result has a new extent.
template <int At>
constexpr RuleText new_extent_factors(const std::array<int, 1>& dims) {
  return factors_text(dim_letters(0, dims[0]), letters_with(dims[0], At));
}

/// "bd": dimension At of the result reads dimension At of the operand, which has another extent.
template <int At>
constexpr RuleText new_extent_reads(const std::array<int, 1>& dims) {
  return joined(letter_of(At), char('a' + dims[0]));
}

/// "bb": dimension d of the result reads dimension d of the operand, which has the same extent.
constexpr RuleText same_extent_reads(int d) { return joined(letter_of(d), char('a' + d)); }

/// "abc->ac": removes the dimensions of the mask.
template <unsigned Mask>
constexpr RuleText reduction_factors(const std::array<int, 1>& dims) {
  return factors_text(dim_letters(0, dims[0]), dim_letters(0, dims[0], Mask));
}

}  // namespace detail

}  // namespace cleave::inline v0
