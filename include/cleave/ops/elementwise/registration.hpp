// Registration of elementwise operations. One line makes, of an operation's struct, all that users
// call, the error for operands that fit no overload, and the entry in the list of operations, from
// which its verification and its row in the documentation follow:
//
//     CLEAVE_UNARY(activations, gelu, Gelu)     gelu(x), gelu<Placements<..>>(x), gelu(out(y), x),
//                                               gelu_(x)
//     CLEAVE_BINARY(powers, hypot, Hypot)       hypot(a, b), .. with numbers as operands
//     CLEAVE_OPERATOR(arithmetic, add, Add, +)  add(a, b), .. and a + b
//     CLEAVE_TERNARY(clamp_lerp, clamp, Clamp, "(x, low, high)")
//     CLEAVE_UNARY_WITH(activations, elu, Elu, "elu(a), elu(a, alpha)")
//                                               elu(x, 0.5), elu_(x, 0.5)
//     CLEAVE_HELPER(powers, TimesLog, 2)        detail::TimesLog, which only gradients call
//
// The struct states what verification cannot know: `verified`, the element types if not those of
// list/listed.hpp, and `constant`, why it has no gradient unless its result is a bool.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

namespace ops {

/// An entry in the list of operations. A topic is the tag of one header, in which lines are unique.
template <class Topic, int Line>
struct Registered;
inline constexpr int lines_of_topic = 600;  ///< entries in later lines would not be found

namespace topics {
struct arithmetic;
struct unary_arithmetic;
struct comparisons;
struct functions;
struct powers;
struct trigonometry;
struct activations;
struct rounding;
struct clamp_lerp;
struct reductions;
}  // namespace topics

/// Why an operation has no gradient.
inline constexpr const char* piecewise_constant = "piecewise constant";

/// Element types for which operations are verified.
using RealComplexWhole = Types<double, float, std::complex<double>, std::int64_t>;

}  // namespace ops

namespace detail {

/// `add_(x, y)` for x = add(x, y); numbers are converted to the element type of x.
template <class Op>
struct InPlace {
  template <AnyTensor X, AnyOperand... Y>
  constexpr const X& operator()(const X& x, const Y&... y) const {
    return pointwise(Op{}, Out<X>{x}, x, y...);
  }
};

/// Whether P.. are leading attributes of an operation of numbers.
template <class Op, class... P>
concept AttributesOf =
    (std::is_arithmetic_v<P> && ...) && requires(const P&... p) { Op{{}, double(p)...}; };

/// `elu(x, alpha)`: an operation on one tensor with numbers as attributes.
template <class Op, class... R, AnyTensor X, class... P>
  requires AttributesOf<Op, P...>
constexpr auto with_attributes(const X& x, const P&... p) {
  return pointwise<R...>(Op{{}, double(p)...}, x);
}
template <class Op, class... R, class Y, AnyTensor X, class... P>
  requires AttributesOf<Op, P...>
constexpr const Y& with_attributes(const Out<Y>& y, const X& x, const P&... p) {
  return pointwise<R...>(Op{{}, double(p)...}, y, x);
}
template <class Op, class... A>
inline constexpr bool takes_attributes = false;
template <class Op, AnyTensor X, class... P>
inline constexpr bool takes_attributes<Op, X, P...> = AttributesOf<Op, P...>;
template <class Op, class Y, class... A>
inline constexpr bool takes_attributes<Op, Out<Y>, A...> = takes_attributes<Op, A...>;

template <class Op>
struct InPlaceWith {
  template <AnyTensor X, class... P>
    requires AttributesOf<Op, P...>
  constexpr const X& operator()(const X& x, const P&... p) const {
    return with_attributes<Op>(Out<X>{x}, x, p...);
  }
};

}  // namespace detail

#define CLEAVE_LISTED(topic, Op, operands_, text, is_helper_, call_) \
  template <>                                                        \
  struct ops::Registered<ops::topics::topic, __LINE__> {             \
    static_assert(__LINE__ < ops::lines_of_topic);                   \
    using op = Op;                                                   \
    static constexpr int operands = operands_;                       \
    static constexpr const char* usage = text;                       \
    static constexpr bool is_helper = is_helper_;                    \
    static constexpr auto call(const auto&... x) { return call_; }   \
  };

/// The forms besides the function.
#define CLEAVE_REGISTER(topic, function, Op, operands, usage, text, call_) \
  inline constexpr detail::InPlace<ops::Op> function##_;                   \
  CLEAVE_USAGE_ERROR(function, usage)                                      \
  CLEAVE_LISTED(topic, ops::Op, operands, text, false, call_)

#define CLEAVE_ELEMENTWISE(topic, function, Op, operands, usage, text, call_) \
  template <class... R, class... A>                                           \
    requires detail::ArgumentsOf<operands, A...>                              \
  constexpr decltype(auto) function(const A&... a) {                          \
    return detail::pointwise<R...>(ops::Op{}, a...);                          \
  }                                                                           \
  CLEAVE_REGISTER(topic, function, Op, operands, usage, text, call_)

#define CLEAVE_UNARY(topic, function, Op) \
  CLEAVE_ELEMENTWISE(topic, function, Op, 1, #function "(a)", #function "(x)", function(x...))
#define CLEAVE_BINARY(topic, function, Op) \
  CLEAVE_ELEMENTWISE(topic, function, Op, 2, #function "(a, b)", #function "(a, b)", function(x...))
#define CLEAVE_TERNARY(topic, function, Op, names) \
  CLEAVE_ELEMENTWISE(topic, function, Op, 3, #function names, #function names, function(x...))

#define CLEAVE_OPERATOR(topic, function, Op, symbol)                                               \
  CLEAVE_ELEMENTWISE(topic, function, Op, 2, #function "(a, b)", "a " #symbol " b", (x symbol...)) \
  template <class A, TensorAndOther<A> B>                                                          \
  constexpr auto operator symbol(const A& a, const B& b) {                                         \
    return function(a, b);                                                                         \
  }

#define CLEAVE_UNARY_WITH(topic, function, Op, usage)        \
  template <class... R, class... A>                          \
    requires(detail::takes_attributes<ops::Op, A...>)        \
  constexpr decltype(auto) function(const A&... a) {         \
    return detail::with_attributes<ops::Op, R...>(a...);     \
  }                                                          \
  inline constexpr detail::InPlaceWith<ops::Op> function##_; \
  CLEAVE_USAGE_ERROR(function, usage)                        \
  CLEAVE_LISTED(topic, ops::Op, 1, #function "(x)", false, function(x...))

#define CLEAVE_HELPER(topic, Op, operands) \
  CLEAVE_LISTED(topic, detail::Op, operands, detail::Op::name, true, call_op(op{}, x...))

}  // namespace cleave::inline v0
