// The reductions that a Partial placement can have pending and a communicator can perform.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include <cleave/core/config.hpp>

namespace cleave::inline v0 {

/// A reduction as a value. Partial placements have the first five; those of bits are only for
/// functional collectives of integers and bools.
enum class ReduceOp : std::uint8_t { sum, avg, max, min, product, band, bor, bxor };

namespace detail {

template <ReduceOp Op>
struct ReductionBy {
  static constexpr ReduceOp value = Op;
};

}  // namespace detail

/// A reduction as a type: `Partial<Sum>` is a tensor whose value is the sum over the ranks.
struct Sum : detail::ReductionBy<ReduceOp::sum> {};
/// The arithmetic mean over the ranks of the axes that are reduced.
struct Avg : detail::ReductionBy<ReduceOp::avg> {};
struct Max : detail::ReductionBy<ReduceOp::max> {};
struct Min : detail::ReductionBy<ReduceOp::min> {};
struct Product : detail::ReductionBy<ReduceOp::product> {};
/// `&`, `|` and `^` of the bits of integers and bools.
struct BitAnd : detail::ReductionBy<ReduceOp::band> {};
struct BitOr : detail::ReductionBy<ReduceOp::bor> {};
struct BitXor : detail::ReductionBy<ReduceOp::bxor> {};

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
    case ReduceOp::band: return "band";
    case ReduceOp::bor: return "bor";
    case ReduceOp::bxor: return "bxor";
  }
  return "unknown";
}

namespace detail {

constexpr bool is_bitwise(ReduceOp op) { return op > ReduceOp::product; }

/// Those that a Partial can have pending, in the order of ReduceOp.
using Reductions = std::tuple<Sum, Avg, Max, Min, Product>;

template <ReduceOp Op>
using reduction_type = std::tuple_element_t<std::size_t(Op), Reductions>;

static_assert([]<std::size_t... I>(std::index_sequence<I...>) {
  return ((std::tuple_element_t<I, Reductions>::value == ReduceOp(I)) && ...);
}(std::make_index_sequence<std::tuple_size_v<Reductions>>{}));

}  // namespace detail

}  // namespace cleave::inline v0
