// How a caller names a reduction: by a type (`Sum{}`), a value (`ReduceOp::sum`) or a word ("sum").
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include <cleave/comm/require_reduction.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/reduce_op.hpp>

namespace cleave::functional {

/// A type whose values name a reduction.
template <class Op>
concept Reduction = ReductionType<Op> || std::same_as<Op, ReduceOp> ||
                    std::convertible_to<const Op&, std::string_view>;

/// The reduction of that name, in lower or upper case.
/// @throws Error for an unknown name
inline ReduceOp reduction_named(std::string_view name, const char* operation) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  std::string known;
  for (const ReduceOp op :
       {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min, ReduceOp::product}) {
    const std::string_view candidate = name_of(op);
    bool same = name.size() == candidate.size();
    for (std::size_t i = 0; same && i < name.size(); ++i) same = small(name[i]) == candidate[i];
    if (same) return op;
    known += (known.empty() ? "" : ", ") + std::string(candidate);
  }
  throw Error(operation, "unknown reduction '" + std::string(name) + "'; use one of " + known);
}

namespace detail {

/// @throws Error for an unknown name
template <Reduction Op>
ReduceOp value_of(const Op& op, const char* operation) {
  if constexpr (ReductionType<Op>) return Op::value;
  else if constexpr (std::same_as<Op, ReduceOp>) return op;
  else return reduction_named(op, operation);
}

/// Requires that elements T support the reduction: at compile time if `Op` is a type.
/// @throws Error if they do not
template <Element T, Reduction Op>
void require_reduction(ReduceOp value, const char* operation) {
  if constexpr (ReductionType<Op>) {
    constexpr bool ordered = Op::value == ReduceOp::max || Op::value == ReduceOp::min;
    static_assert(!(ordered && is_complex<T>), "cleave: complex numbers have no order");
    static_assert(!(Op::value == ReduceOp::avg && std::is_integral_v<T>),
                  "cleave: averages of integers and bools are not defined");
  }
  cleave::detail::require_reduction(operation, dtype_of<T>(), value);
}

}  // namespace detail

}  // namespace cleave::functional
