// Operands under layouts given as values: the addends of every rank, and the global array that they
// represent, computed naively.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "graph_run.hpp"
#include "naive/operation.hpp"
#include "numbers.hpp"

namespace cleave::testing {

/// A contiguous local tensor.
inline Held local_of(DType type, const Numbers& numbers) {
  Held x;
  x.dtype = type;
  x.shape = x.extents = naive::shape_of(numbers.shape);
  const auto block = redistribution::allocate<Host>(type, x.extents);
  x.strides = block.view.strides;
  x.storage = block.storage;
  x.data = block.view.data;
  for (std::size_t i = 0; i < numbers.values.size(); ++i) store(type, x.data, i, numbers.values[i]);
  return x;
}

/// The elements of this rank, row-major.
inline std::vector<Number64> local_elements(const Held& x) {
  std::vector<Number64> result;
  for (const naive::Indices& index : naive::all_indices(naive::to_indices(x.extents))) {
    index_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * x.strides[int(d)];
    result.push_back(load(x.dtype, x.data, offset));
  }
  return result;
}

/// The addend of a rank to an element: a small number. With a single partial maximum or minimum,
/// some addends are -inf or inf, the candidates of a rank without elements.
inline Number64 addend(DType type, Domain domain, const Layout& layout, naive::Indices index,
                       const naive::Indices& at, int operand) {
  index.push_back(operand);
  const int n = naive::addend(index, at);
  if (domain == Domain::classes) return std::abs(n) % 4;
  if (domain == Domain::positive)
    return n == 0 ? Number64(is_integer(type) || type == DType::boolean ? 1 : 0.5)
                  : Number64(std::abs(n));
  if (domain == Domain::quarters) return rounded(type, n / 4.0);
  if (domain == Domain::unit) return n / 16.0;
  if (domain == Domain::chances) return (std::abs(n) % 7 + 1) / 64.0;
  if (domain == Domain::above_one) return rounded(type, std::abs(n) + 1.5);
  if (domain == Domain::dominant) {
    const bool is_diagonal = index[index.size() - 2] == index[index.size() - 3];
    const double size = is_diagonal ? 1 + std::abs(n) / 16.0 : n / 128.0;
    return rounded(type, is_complex_type(type) ? Number64(size, size / 4) : size);
  }
  int partials = 0;
  for (int a = 0; a < layout.axes; ++a) partials += layout[a].is_partial();
  for (int a = 0; a < layout.axes; ++a) {
    if (partials != 1 || at[std::size_t(a)] == 0 || (n & 1)) continue;
    const bool is_bool = type == DType::boolean;
    const double most = std::numeric_limits<double>::infinity();
    if (layout[a].op == ReduceOp::max) return is_bool ? 0 : -most;
    if (layout[a].op == ReduceOp::min) return is_bool ? 1 : most;
  }
  return is_complex_type(type) ? Number64(n, 1 - n) : rounded(type, n);
}

/// The value of an element: its addends reduced axis by axis, innermost axis first.
inline Number64 reduced_value(DType type, Domain domain, const Layout& layout,
                              const naive::Indices& mesh, const naive::Indices& index, int operand,
                              naive::Indices at = {}) {
  const int axis = int(at.size());
  if (axis == layout.axes) return addend(type, domain, layout, index, at, operand);
  at.push_back(0);
  Number64 result = reduced_value(type, domain, layout, mesh, index, operand, at);
  if (!layout[axis].is_partial()) return result;
  for (index_t i = 1; i < mesh[std::size_t(axis)]; ++i) {
    at.back() = i;
    result = combined(layout[axis].op, type, result,
                      reduced_value(type, domain, layout, mesh, index, operand, at));
  }
  return layout[axis].op == ReduceOp::avg ? result / double(mesh[std::size_t(axis)]) : result;
}

/// An operand on this rank, and its global array.
struct Placed {
  Held held;
  Numbers global;
};

inline Placed placed(DType type, Domain domain, const Layout& layout, const naive::Indices& shape,
                     const MeshState& mesh, int operand) {
  Placed x;
  const naive::Indices extents = naive::to_indices(mesh.extents());
  const naive::Indices here = naive::to_indices(mesh.coordinate());
  x.global = Numbers(shape);
  for (const naive::Indices& index : naive::all_indices(shape))
    x.global.at(index) = reduced_value(type, domain, layout, extents, index, operand);
  Numbers own(naive::Indices(shape.size()));
  for (std::size_t d = 0; d < shape.size(); ++d)
    own.shape[d] = index_t(naive::owned(layout, int(d), shape, extents, here).size());
  own.values.clear();
  const naive::Indices at = naive::partial_coordinate(layout, here);
  for (const naive::Indices& index : naive::elements(layout, shape, extents, here))
    own.values.push_back(addend(type, domain, layout, index, at, operand));
  x.held = local_of(type, own);
  x.held.shape = naive::shape_of(shape);
  x.held.layout = layout;
  return x;
}

/// An array under a layout without partials.
inline Held scattered(DType type, const Numbers& global, const Layout& layout,
                      const MeshState& mesh) {
  const naive::Indices extents = naive::to_indices(mesh.extents());
  const naive::Indices here = naive::to_indices(mesh.coordinate());
  Numbers own(naive::Indices(global.shape.size()));
  for (std::size_t d = 0; d < global.shape.size(); ++d)
    own.shape[d] = index_t(naive::owned(layout, int(d), global.shape, extents, here).size());
  own.values.clear();
  for (const naive::Indices& index : naive::elements(layout, global.shape, extents, here))
    own.values.push_back(global.at(index));
  Held x = local_of(type, own);
  x.shape = naive::shape_of(global.shape);
  x.layout = layout;
  return x;
}

/// Compares the value on this rank. @return an error message; empty if all is well
/// @collective every rank of the mesh
inline std::string difference(const Held& found, const Numbers& expected, const MeshState& mesh,
                              double tolerance) {
  const Layout whole = found.layout.with_partials_as(Placement::replicate());
  const Held x = GraphRun::moved(found, whole, mesh);
  if (naive::to_indices(x.shape) != expected.shape)
    return "the result has extents " + to_string(x.shape);
  const std::vector<Number64> own = local_elements(x);
  const auto elements = naive::elements(whole, expected.shape, naive::to_indices(mesh.extents()),
                                        naive::to_indices(mesh.coordinate()));
  if (own.size() != elements.size())
    return "this rank has " + std::to_string(own.size()) + " elements";
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Number64 wanted = rounded(x.dtype, expected.at(elements[i]));
    if (!close(own[i], wanted, tolerance))
      return "an element is " + std::to_string(own[i].real()) + " + " +
             std::to_string(own[i].imag()) + "i, not " + std::to_string(wanted.real()) + " + " +
             std::to_string(wanted.imag()) + "i";
  }
  return "";
}

/// The placements to test for a tensor on one axis.
inline std::vector<Placement> placements_of(DType type, Domain domain, int dims) {
  std::vector<Placement> result{Placement::replicate()};
  for (int d = 0; d < dims; ++d) result.push_back(Placement::shard(d));
  for (const ReduceOp op :
       {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min, ReduceOp::product}) {
    const bool orders = op == ReduceOp::max || op == ReduceOp::min;
    if (orders && is_complex_type(type)) continue;
    if (op == ReduceOp::avg && (is_integer(type) || type == DType::boolean)) continue;
    if (domain == Domain::classes && !orders) continue;
    result.push_back(Placement::partial(op));
  }
  return result;
}

/// Points at which a dimension is cut into parts of very different extents: ranks in even places
/// have nothing, or the first has all but one index, the second that one, and the others nothing.
inline Placement cuts_at(int d, index_t extent, index_t parts, bool is_first_empty) {
  std::vector<index_t> points{0};
  for (index_t left = extent, part = 0; part < parts; ++part) {
    index_t own = left > 1 ? left - 1 : left;
    if (is_first_empty) own = part % 2 == 0 ? 0 : (left + 1) / 2;
    if (part + 1 == parts) own = left;
    points.push_back(points.back() + own);
    left -= own;
  }
  return Placement::cuts(d, detail::number_of_points(points));
}

/// The ways of cutting to test for a tensor on one axis of two ranks or more.
inline std::vector<Placement> cuts_of(const naive::Indices& shape, index_t parts) {
  std::vector<Placement> result{Placement::replicate()};
  for (int d = 0; d < int(shape.size()); ++d) {
    const index_t extent = shape[std::size_t(d)];
    for (const Placement& cut :
         {Placement::block_cyclic(d, 1), cuts_at(d, extent, parts, true), Placement::balanced(d),
          Placement::shard(d), Placement::owned(1, d), cuts_at(d, extent, parts, false),
          Placement::block_cyclic(d, 2)})
      result.push_back(cut);
  }
  return result;
}

/// The layouts to test for a tensor on a mesh: every way of cutting on every axis.
inline std::vector<Layout> layouts_of_cuts(const naive::Indices& shape, const Shape& mesh) {
  std::vector<std::vector<Placement>> alphabets;
  for (const index_t parts : mesh) alphabets.push_back(cuts_of(shape, parts));
  std::vector<Layout> result = naive::layouts_over(alphabets);
  std::erase_if(result, [](const Layout& layout) { return !detail::cuts_come_first(layout); });
  return result;
}

}  // namespace cleave::testing
