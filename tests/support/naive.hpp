// Which indices a rank owns and what a global array holds, computed the slow and obvious way:
// lists of indices are cut into chunks as one would by hand. Expected values of tests come from
// here, never from the library's own arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::naive {

using Indices = std::vector<index_t>;

/// All coordinates of a box of extents, row-major.
inline std::vector<Indices> all_indices(const Indices& extents) {
  std::vector<Indices> result{{}};
  for (const index_t extent : extents) {
    std::vector<Indices> longer;
    for (const Indices& head : result)
      for (index_t i = 0; i < extent; ++i) {
        longer.push_back(head);
        longer.back().push_back(i);
      }
    result = longer;
  }
  return result;
}

/// A list cut into `parts` pieces: every piece but the last non-empty ones has ceil(n / parts).
inline std::vector<Indices> chunks(const Indices& list, index_t parts) {
  std::vector<Indices> result(std::size_t(parts), Indices{});
  std::size_t size = 0;
  while (size * std::size_t(parts) < list.size()) ++size;
  for (std::size_t i = 0; i < list.size(); ++i) result[i / size].push_back(list[i]);
  return result;
}

/// The indices of dimension `d` that the rank at `coordinate` owns.
inline Indices owned(const Layout& layout, int d, const Indices& shape, const Indices& mesh,
                     const Indices& coordinate) {
  Indices list;
  for (index_t i = 0; i < shape[std::size_t(d)]; ++i) list.push_back(i);
  for (int a = 0; a < layout.axes; ++a) {
    if (!layout[a].is_shard() || layout[a].dim != d) continue;
    const Indices piece =
        chunks(list, mesh[std::size_t(a)])[std::size_t(coordinate[std::size_t(a)])];
    list = piece;
  }
  return list;
}

/// The global indices of a rank's elements, in the row-major order in which it stores them.
inline std::vector<Indices> elements(const Layout& layout, const Indices& shape,
                                     const Indices& mesh, const Indices& coordinate) {
  std::vector<Indices> lists;
  Indices extents;
  for (int d = 0; d < int(shape.size()); ++d) {
    lists.push_back(owned(layout, d, shape, mesh, coordinate));
    extents.push_back(index_t(lists.back().size()));
  }
  std::vector<Indices> result = all_indices(extents);
  for (Indices& at : result)
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = lists[d][std::size_t(at[d])];
  return result;
}

inline Indices to_indices(const Shape& shape) { return Indices(shape.begin(), shape.end()); }

inline Shape shape_of(const Indices& values) {
  Shape shape;
  for (const index_t value : values) shape[shape.dims++] = value;
  return shape;
}

/// All layouts of some axes over an alphabet.
inline std::vector<Layout> layouts_over(int axes, const std::vector<Placement>& alphabet) {
  std::vector<Layout> result;
  for (const Indices& choice : all_indices(Indices(std::size_t(axes), index_t(alphabet.size())))) {
    Layout layout;
    layout.axes = axes;
    for (int a = 0; a < axes; ++a) layout[a] = alphabet[std::size_t(choice[std::size_t(a)])];
    result.push_back(layout);
  }
  return result;
}

/// A small integer that depends on the global index and on the place of an addend.
inline int addend(const Indices& index, const Indices& partial_coordinate) {
  std::uint64_t hash = 1469598103934665603ull;
  for (const index_t i : index) hash = (hash ^ std::uint64_t(i + 1)) * 1099511628211ull;
  for (const index_t i : partial_coordinate)
    hash = (hash ^ std::uint64_t(i + 17)) * 1099511628211ull;
  return int((hash >> 33) % 9) - 4;
}

/// Where an addend stands: the coordinate with 0 on every axis that is not partial.
inline Indices partial_coordinate(const Layout& layout, const Indices& coordinate) {
  Indices result = coordinate;
  for (int a = 0; a < layout.axes; ++a)
    if (!layout[a].is_partial()) result[std::size_t(a)] = 0;
  return result;
}

/// An integer as any element type.
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

/// The value of a global element: its addends reduced axis by axis, the innermost axis first.
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
