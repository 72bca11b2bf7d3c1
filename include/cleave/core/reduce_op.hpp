// The reductions that a Partial placement can be waiting for and a communicator can perform.
#pragma once

#include <concepts>
#include <cstdint>

#include <cleave/core/config.hpp>

namespace cleave {

/// A reduction as a value.
enum class ReduceOp : std::uint8_t { sum, avg, max, min, product };

/// A reduction as a type: `Partial<Sum>` is a tensor whose value is the sum over the ranks.
struct Sum {
  static constexpr ReduceOp value = ReduceOp::sum;
};
/// The arithmetic mean over the ranks of the axes that are reduced.
struct Avg {
  static constexpr ReduceOp value = ReduceOp::avg;
};
struct Max {
  static constexpr ReduceOp value = ReduceOp::max;
};
struct Min {
  static constexpr ReduceOp value = ReduceOp::min;
};
struct Product {
  static constexpr ReduceOp value = ReduceOp::product;
};

/// A type that names a reduction.
template <class Op>
concept ReductionType = requires {
  { Op::value } -> std::same_as<const ReduceOp&>;
};

constexpr const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::avg: return "avg";
    case ReduceOp::max: return "max";
    case ReduceOp::min: return "min";
    case ReduceOp::product: return "product";
  }
  return "unknown";
}

namespace detail {

template <ReduceOp Op>
struct reduction_type;
template <>
struct reduction_type<ReduceOp::sum> {
  using type = Sum;
};
template <>
struct reduction_type<ReduceOp::avg> {
  using type = Avg;
};
template <>
struct reduction_type<ReduceOp::max> {
  using type = Max;
};
template <>
struct reduction_type<ReduceOp::min> {
  using type = Min;
};
template <>
struct reduction_type<ReduceOp::product> {
  using type = Product;
};

}  // namespace detail

}  // namespace cleave
