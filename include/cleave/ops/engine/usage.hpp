// How each operation is called, said by the compile error of a call whose operands fit no overload:
// a number where a dimension is a type, an operand too many or too few.
//
// The first parameter of these overloads requires a conversion, so any overload that fits wins.
#pragma once

#include <cleave/ops/engine/call_op.hpp>

namespace cleave {

namespace detail {

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

#define CLEAVE_USAGE(name, calls)                                                               \
  template <class... R>                                                                         \
  void name(detail::AnyFirstOperand, detail::AnyArgument = {}, detail::AnyArgument = {},        \
            detail::AnyArgument = {}, detail::AnyArgument = {}, detail::AnyArgument = {}) {     \
    static_assert(sizeof...(R) > 99, "cleave: these arguments do not fit; call it so: " calls); \
  }

}  // namespace cleave
