// An entry in the list of all operations: the element types and numbers of dimensions for which the
// operation is verified, and the function that calls it.
#pragma once

#include <complex>
#include <cstdint>
#include <utility>

#include <cleave/ops/engine/operation.hpp>

namespace cleave::ops {

/// Element types for which an operation is verified: a Types per row, with an entry per operand.
template <class... Row>
struct TypeRows {};

namespace listing {

template <int Operands, class T, class... Rest>
struct Repeated : Repeated<Operands - 1, T, T, Rest...> {};
template <class T, class... Rest>
struct Repeated<0, T, Rest...> {
  using type = Types<Rest...>;
};

/// Why operands have no gradient.
inline constexpr const char* of_truths = "the result is a truth value";

}  // namespace listing

/// Rows in which all operands have one element type.
template <int Operands, class... T>
using SameTypes = TypeRows<typename listing::Repeated<Operands, T>::type...>;

/// Numbers of dimensions of the operands.
template <int... D>
using DimsOf = std::integer_sequence<int, D...>;

/// An operation, and the function that calls it.
///
/// @tparam Operands  the number of leading arguments of the call that are operands of Op
template <class Op, class Rows, class Dims, class Call, int Operands>
struct Listed {
  using op = Op;
  using rows = Rows;
  using dims = Dims;
  static constexpr int operands = Operands;

  const char* usage;  ///< the text of the call; after a ';', the case it shows
  Call call;
  const char* constant;  ///< why some operands have no gradient; "" if all have one
  Op made{};             ///< for composites: the operation with the attributes of the call
  bool is_helper = false;
};

template <class Op, class Rows, class Dims, int Operands = int(Dims::size()), class Call>
constexpr Listed<Op, Rows, Dims, Call, Operands> listed(const char* usage, const Call& call,
                                                        const char* constant = "",
                                                        const Op& made = Op{}) {
  return {usage, call, constant, made};
}

/// An elementwise operation that only gradients call: it is verified like the others, but is not
/// for users, so it has no row in docs/ops.md.
template <class Op, class Rows, class Dims>
constexpr auto helper(const char* constant = "") {
  auto entry = listed<Op, Rows, Dims>(
      Op::name, [](const auto&... x) { return call_op(Op{}, x...); }, constant);
  entry.is_helper = true;
  return entry;
}

/// Operations that are used only as parts of another one.
template <class Whole, class... Parts>
struct PartsOf {};

namespace listing {

using Complex = std::complex<double>;
using Int = std::int64_t;

inline constexpr const char* steps = "piecewise constant";
inline constexpr const char* of_integers = "the result is an index";

}  // namespace listing

}  // namespace cleave::ops
