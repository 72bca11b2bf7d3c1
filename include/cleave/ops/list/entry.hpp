// How an operation stands in the list of all operations: with the element types and numbers of
// dimensions that it is verified with, and the function that calls it.
#pragma once

#include <complex>
#include <cstdint>
#include <utility>

#include <cleave/ops/operation.hpp>

namespace cleave::ops {

/// Element types that an operation is verified with: a Types per row, with an entry per operand.
template <class... Row>
struct TypeRows {};

namespace listing {

template <int Operands, class T, class... Rest>
struct Repeated : Repeated<Operands - 1, T, T, Rest...> {};
template <class T, class... Rest>
struct Repeated<0, T, Rest...> {
  using type = Types<Rest...>;
};

}  // namespace listing

/// Rows in which all operands have one element type.
template <int Operands, class... T>
using SameTypes = TypeRows<typename listing::Repeated<Operands, T>::type...>;

/// Numbers of dimensions of the operands.
template <int... D>
using DimsOf = std::integer_sequence<int, D...>;

/// An operation, and the function that calls it.
///
/// @tparam Operands  how many arguments of the call are operands of Op, the first ones
template <class Op, class Rows, class Dims, class Call, int Operands>
struct Listed {
  using op = Op;
  using rows = Rows;
  using dims = Dims;
  static constexpr int operands = Operands;

  const char* usage;     ///< how the call is written; after a ';', in which case
  Call call;
  const char* constant;  ///< why there are operands without a gradient; "" where there are none
  Op made{};             ///< of operations that are made of others: with the attributes of the call
};

template <class Op, class Rows, class Dims, int Operands = int(Dims::size()), class Call>
constexpr Listed<Op, Rows, Dims, Call, Operands> listed(const char* usage, const Call& call,
                                                        const char* constant = "",
                                                        const Op& made = Op{}) {
  return {usage, call, constant, made};
}

/// Operations that mean something as parts of another one only.
template <class Whole, class... Parts>
struct PartsOf {};

namespace listing {

using Complex = std::complex<double>;
using Int = std::int64_t;

inline constexpr const char* steps = "constant between its jumps";
inline constexpr const char* of_integers = "the result is an index";

}  // namespace listing

}  // namespace cleave::ops
