// Shapes as text.
#pragma once

#include <string>

#include <cleave/core/shape.hpp>

namespace cleave::inline v0 {

CLEAVE_INLINE std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.dims; ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

}  // namespace cleave::inline v0
