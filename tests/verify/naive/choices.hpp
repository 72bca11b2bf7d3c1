#pragma once

#include "../list/elementwise.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::Where) {
  return by_element([](const Elements& x) { return x[0] != Number64(0) ? x[1] : x[2]; });
}
template <class To>
Naive naive_of(ops::Cast<To>) {
  return by_element([](const Elements& x) { return x[0]; });
}
/// The functor used in the list of operations.
template <class F>
Naive naive_of(const ops::Map<F>&) {
  return by_element([](const Elements& x) { return x[0] * x[1] + x[0]; });
}

}  // namespace cleave::testing
