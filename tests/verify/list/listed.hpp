// An entry in the list of all operations: the element types and numbers of dimensions for which the
// operation is verified, and the function that calls it.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <cleave/ops/elementwise/registration.hpp>

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

/// The text of a call and the function that makes it: `CLEAVE_CALL_2(a, b, outer(a, b))`.
#define CLEAVE_CALL_1(x, ...) #__VA_ARGS__, [](const auto& x) { return __VA_ARGS__; }
#define CLEAVE_CALL_2(x, y, ...) \
  #__VA_ARGS__, [](const auto& x, const auto& y) { return __VA_ARGS__; }
#define CLEAVE_CALL_3(x, y, z, ...) \
  #__VA_ARGS__, [](const auto& x, const auto& y, const auto& z) { return __VA_ARGS__; }
#define CLEAVE_CALL_4(x, y, z, w, ...) \
  #__VA_ARGS__,                        \
      [](const auto& x, const auto& y, const auto& z, const auto& w) { return __VA_ARGS__; }

/// Operations that are used only as parts of another one.
template <class Whole, class... Parts>
struct PartsOf {};

namespace listing {

using Complex = std::complex<double>;
using Int = std::int64_t;

/// Why operands have no gradient.
inline constexpr const char* of_truths = "the result is a truth value";
inline constexpr const char* of_integers = "the result is an index";

/// The element types for which an elementwise operation is verified if it does not state them: of
/// each kind that it is defined on one, float only where it has a kernel of its own.
template <class Op>
constexpr auto verified_by_default() {
  if constexpr (requires { typename Op::verified; }) return typename Op::verified{};
  else if constexpr (!requires { Op::defined_on; })
    return Types<double, float, Complex, Int, bool>{};
  else if constexpr (Op::defined_on == Elements::fractions && requires { Op::row_function; })
    return Types<double, float, Complex>{};
  else if constexpr (Op::defined_on == Elements::fractions) return Types<double, Complex>{};
  else if constexpr (Op::defined_on != Elements::real) return Types<double, Int>{};
  else if constexpr (requires { Op::row_function; }) return Types<double, float>{};
  else return Types<double>{};
}

template <class Op, class... T>
detail::results_of<Op, T...> results(Types<T...>);

/// Why operands have no gradient; "" if all have one.
template <class Op, int Operands, class T, class... Rest>
constexpr const char* reason_of() {
  if constexpr (requires { Op::constant; }) return Op::constant;
  else if constexpr (std::is_same_v<decltype(results<Op>(typename Repeated<Operands, T>::type{})),
                                    Types<bool>>)
    return of_truths;
  else return "";
}

/// The entry of a line that registers an operation.
template <class Line>
constexpr auto entry_of() {
  using Op = typename Line::op;
  using Verified = decltype(verified_by_default<Op>());
  const auto call = [](const auto&... x) { return Line::call(x...); };
  return []<class... T, std::size_t... I>(Types<T...>, std::index_sequence<I...>, const auto& f) {
    auto entry = listed<Op, SameTypes<Line::operands, T...>, DimsOf<(int(I) * 0 + 2)...>>(
        Line::usage, f, reason_of<Op, Line::operands, T...>());
    entry.is_helper = Line::is_helper;
    return entry;
  }(Verified{}, std::make_index_sequence<std::size_t(Line::operands)>{}, call);
}

/// Visits the operations that the header of a topic registers, in the order of its lines.
template <class Topic, class Visit>
constexpr void each_registered(const Visit& visit) {
  const auto line = [&]<int Line>(std::integral_constant<int, Line>) {
    if constexpr (requires { typename Registered<Topic, Line>::op; })
      visit(entry_of<Registered<Topic, Line>>());
  };
  // In blocks, because clang++ folds at most 256 expressions into one.
  const auto block = [&]<int Block>(std::integral_constant<int, Block>) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (line(std::integral_constant<int, 100 * Block + I>{}), ...);
    }(std::make_integer_sequence<int, 100>{});
  };
  [&]<int... Block>(std::integer_sequence<int, Block...>) {
    (block(std::integral_constant<int, Block>{}), ...);
  }(std::make_integer_sequence<int, lines_of_topic / 100>{});
}

}  // namespace listing

}  // namespace cleave::ops
