// One pass over contiguous arrays of equal length on the host, some of which are updated.
#pragma once

#include <tuple>
#include <vector>

#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

/// Calls step(a[i], b[i], ..) for all i, or step.row(n, a, b, ..) if the step has that.
///
/// @param step    changes the elements of the arrays that are not const
/// @param arrays  of n elements each; arrays that are changed overlap no other
template <class Step, class... T>
[[gnu::noinline]]  // inlined, the compiler forgets that the arrays do not overlap
void update_elements(On<Host>, const char*, const Step& step, index_t n, T* __restrict... arrays) {
  if constexpr (requires { step.row(n, arrays...); }) {
    step.row(n, arrays...);
  } else {
    const Step own = step;  // in registers: no array overlaps it
    for (index_t i = 0; i < n; ++i) own(arrays[i]...);
  }
}

/// The same for many groups of arrays.
/// @param groups  the number of elements of a group's arrays, and the arrays
template <class Step, class... T>
void update_groups(On<Host>, const char* operation, const Step& step,
                   const std::vector<std::tuple<index_t, T*...>>& groups) {
  for (const auto& group : groups)
    std::apply([&](index_t n,
                   T*... arrays) { update_elements(On<Host>{}, operation, step, n, arrays...); },
               group);
}

/// *sum += f(element), over n contiguous elements.
/// @param f  an element -> double
template <class F, class T>
void add_elements(On<Host>, const char*, const F& f, index_t n, const T* elements, double* sum) {
  double total = 0;
  for (index_t i = 0; i < n; ++i) total += f(elements[i]);
  *sum += total;
}

}  // namespace cleave::inline v0::kernels
