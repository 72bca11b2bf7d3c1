#pragma once

#include "../list/elementwise.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::Clamp) {
  return by_element([](const Elements& x) {
    return Number64(std::fmin(std::fmax(re(x[0]), re(x[1])), re(x[2])));
  });
}
inline Naive naive_of(detail::ClampShare<0>) {
  return by_element([](const Elements& x) {
    return Number64(re(x[1]) <= re(x[0]) && re(x[0]) <= re(x[2]) ? 1 : 0);
  });
}
inline Naive naive_of(ops::Lerp) {
  return by_element([](const Elements& x) { return (1.0 - x[2]) * x[0] + x[2] * x[1]; });
}
template <class T>
Naive naive_of(ops::Addcmul<T>) {
  return by_element([](const Elements& x) { return x[0] + 3.0 * x[1] * x[2]; });
}
template <class T>
Naive naive_of(ops::Addcdiv<T>) {
  return by_element([](const Elements& x) { return x[0] + 3.0 * x[1] / x[2]; },
                    {Domain::any, Domain::any, Domain::positive});
}

}  // namespace cleave::testing
