// Matrices whose elements encode their position, on the test's device.
#pragma once

#include <array>

#include "device.hpp"

namespace cleave::testing {

/// Element (i, j) is scale · ((i · columns + j) mod 50).
template <class T>
Tensor<T, 2, TestDevice> table(index_t rows, index_t columns, T scale = 1) {
  const Tensor<T, 2> result({rows, columns});
  for (index_t i = 0; i < rows * columns; ++i) result.data()[i] = scale * T(i % 50);
  return result.to(TestDevice{});
}

/// Whether a tensor, with any strides, equals that table.
template <class T>
bool is_table(const Tensor<T, 2, TestDevice>& tensor, index_t rows, index_t columns, T scale = 1) {
  if (tensor.shape() != std::array<index_t, 2>{rows, columns}) return false;
  const Tensor<T, 2> found = tensor.to(Host{});
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j)
      if (found(i, j) != scale * T((i * columns + j) % 50)) return false;
  return true;
}

}  // namespace cleave::testing
