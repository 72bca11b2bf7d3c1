// Which indices a rank owns and what a global array holds, computed in the slow and obvious way, by
// cutting lists of indices into chunks. Tests take expected values from here, never from the
// library's own arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::naive {

using Indices = std::vector<index_t>;

/// All coordinates of a box of extents, row-major.
std::vector<Indices> all_indices(const Indices& extents);

/// A list cut into `parts` chunks: ceil(n / parts) elements each, while they last.
std::vector<Indices> chunks(const Indices& list, index_t parts);

/// A list cut into `parts` lists as a placement says.
std::vector<Indices> cut(const Indices& list, index_t parts, const Placement& how);

/// The indices of dimension `d` that the rank at `coordinate` owns.
Indices owned(const Layout& layout, int d, const Indices& shape, const Indices& mesh,
              const Indices& coordinate);

/// The global indices of a rank's elements, row-major as it stores them.
std::vector<Indices> elements(const Layout& layout, const Indices& shape, const Indices& mesh,
                              const Indices& coordinate);

Indices to_indices(const Shape& shape);

Shape shape_of(const Indices& values);

/// All layouts with placements from an alphabet per axis.
std::vector<Layout> layouts_over(const std::vector<std::vector<Placement>>& alphabets);

/// All layouts of `axes` axes with placements from an alphabet.
std::vector<Layout> layouts_over(int axes, const std::vector<Placement>& alphabet);

/// A small integer that depends on the global index and on the addend's coordinate.
int addend(const Indices& index, const Indices& partial_coordinate);

/// The coordinate of an addend: 0 on every axis that is not partial.
Indices partial_coordinate(const Layout& layout, const Indices& coordinate);

/// Converts an integer to any element type.
template <class T, class I>
T from_int(I i) {
  if constexpr (is_complex<T>) return T(static_cast<typename T::value_type>(i));
  else return static_cast<T>(static_cast<accumulator_t<T>>(i));
}

template <class T>
T combine(ReduceOp op, const T& a, const T& b) {
  if (op == ReduceOp::product) return T(a * b);
  if constexpr (requires { a < b; }) {
    if (op == ReduceOp::max) return a < b ? b : a;
    if (op == ReduceOp::min) return b < a ? b : a;
  }
  return T(a + b);
}

/// The value of a global element: its addends reduced axis by axis, innermost axis first.
template <class T>
T value(const Layout& layout, const Indices& mesh, const Indices& index, Indices at = {},
        int axis = 0) {
  if (axis == layout.axes) return from_int<T>(addend(index, at));
  at.push_back(0);
  T result = value<T>(layout, mesh, index, at, axis + 1);
  if (!layout[axis].is_partial()) return result;
  for (index_t i = 1; i < mesh[std::size_t(axis)]; ++i) {
    at.back() = i;
    result = combine(layout[axis].op, result, value<T>(layout, mesh, index, at, axis + 1));
  }
  if (layout[axis].op == ReduceOp::avg) result = T(result / from_int<T>(mesh[std::size_t(axis)]));
  return result;
}

}  // namespace cleave::naive
