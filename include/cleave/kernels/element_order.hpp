// Which of two elements comes first in sorted order, on every device.
#pragma once

#include <cleave/core/config.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::inline v0::kernels {

/// Compares the elements of a line by their indices: NaNs count as largest; among equal elements
/// the lower index comes first.
template <class T>
struct ElementOrder {
  const T* line;
  index_t step;
  bool descending;

  CLEAVE_HOST_DEVICE bool operator()(index_t a, index_t b) const {
    const T &u = line[a * step], &v = line[b * step];
    if (is_less(u, v)) return !descending;
    if (is_less(v, u)) return descending;
    return a < b;
  }

 private:
  CLEAVE_HOST_DEVICE static bool is_less(const T& u, const T& v) {
    return is_nan(u) ? false : is_nan(v) || u < v;
  }
};

}  // namespace cleave::inline v0::kernels
