// What every function of tensors has besides itself: CLEAVE_USAGE(sum, "sum(x), sum(x, dim<0>{})")
//
// - a target, `sum(out(y), x, dim<0>{})`. The result is copied to it, since a function may consist
//   of several operations; elementwise functions and `matmul` have overloads that write to it;
// - the compile error of a call whose operands fit no overload, which says how to call it: a number
//   where a dimension is a type, an operand too many or too few. The first parameter requires a
//   conversion, so any overload that fits wins.
#pragma once

#include <cleave/ops/engine/call_op.hpp>

namespace cleave::inline v0 {

template <class Y>
struct Out;

namespace detail {

/// Copies the result of a function of A.. to a target. @see into.hpp
template <class... A, class Y, class Result>
constexpr const Y& copy_to(const Out<Y>& y, const char* name, const Result& result);

/// Takes a tensor, by conversion.
struct AnyFirstOperand {
  template <AnyTensor X>
  AnyFirstOperand(const X&) {}
};

/// Takes anything, and may be left out.
struct AnyArgument {
  AnyArgument() = default;
  template <class X>
  AnyArgument(const X&) {}
};

}  // namespace detail

#define CLEAVE_USAGE(name, calls)                                        \
  template <class... R, class Y, class... A>                             \
  constexpr const Y& name(const Out<Y>& y, const A&... a) {              \
    return detail::copy_to<A...>(y, #name, name<R...>(a...));            \
  }                                                                      \
  template <auto Attribute, class... R, class Y, class... A>             \
  constexpr const Y& name(const Out<Y>& y, const A&... a) {              \
    return detail::copy_to<A...>(y, #name, name<Attribute, R...>(a...)); \
  }                                                                      \
  CLEAVE_USAGE_ERROR(name, calls)

/// The error alone, for functions that take targets themselves.
#define CLEAVE_USAGE_ERROR(name, calls)                                                         \
  template <class... R>                                                                         \
  void name(detail::AnyFirstOperand, detail::AnyArgument = {}, detail::AnyArgument = {},        \
            detail::AnyArgument = {}, detail::AnyArgument = {}, detail::AnyArgument = {}) {     \
    static_assert(sizeof...(R) > 99, "cleave: these arguments do not fit; call it so: " calls); \
  }

}  // namespace cleave::inline v0
