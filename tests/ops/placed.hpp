// DTensors on the test's device under any placements, with known addends, and their comparison with
// naively computed arrays.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/dtensor/dtensor.hpp>

#include "device.hpp"
#include "each_placements.hpp"
#include "function_ref.hpp"
#include "naive.hpp"
#include "ranks.hpp"

namespace cleave::testing {

using namespace cleave::axes;

/// A global array of the naive reference.
template <class T>
struct Array {
  naive::Indices shape;
  std::vector<T> values;

  explicit Array(naive::Indices extents) : shape(std::move(extents)) {
    index_t n = 1;
    for (const index_t e : shape) n *= e;
    values.resize(std::size_t(n));
  }
  typename std::vector<T>::reference at(const naive::Indices& index) {
    return values[offset(index)];
  }
  T at(const naive::Indices& index) const { return values[offset(index)]; }

 private:
  std::size_t offset(const naive::Indices& index) const {
    index_t n = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) n = n * shape[d] + index[d];
    return std::size_t(n);
  }
};

/// Makes an array of the given shape with f(index) at every index.
template <class T>
Array<T> array_of(const naive::Indices& shape, FunctionRef<T(const naive::Indices&)> f) {
  Array<T> result(shape);
  for (const naive::Indices& index : naive::all_indices(shape)) result.at(index) = T(f(index));
  return result;
}

template <class T>
T element(int value) {
  if constexpr (is_complex<T>)
    return T(typename T::value_type(value), typename T::value_type(1 - value));
  else if constexpr (std::is_unsigned_v<T>) return T(value + 4);
  else return T(float(value));
}

/// The addend of a rank at an index; it also depends on the operand's number.
template <class T>
T addend(naive::Indices index, const naive::Indices& at, int operand) {
  index.push_back(operand);
  return element<T>(naive::addend(index, at));
}

/// The value of a global element under a layout: addends reduced, innermost axis first.
template <class T>
T value(const Layout& layout, const naive::Indices& mesh, const naive::Indices& index, int operand,
        naive::Indices at = {}, int axis = 0) {
  if (axis == layout.axes) return addend<T>(index, at, operand);
  at.push_back(0);
  T result = value<T>(layout, mesh, index, operand, at, axis + 1);
  if (!layout[axis].is_partial()) return result;
  for (index_t i = 1; i < mesh[std::size_t(axis)]; ++i) {
    at.back() = i;
    result = naive::combine(layout[axis].op, result,
                            value<T>(layout, mesh, index, operand, at, axis + 1));
  }
  if (layout[axis].op == ReduceOp::avg)
    result = T(result / element<T>(int(mesh[std::size_t(axis)])));
  return result;
}

/// The global array of a tensor with the addends of `operand`.
template <class T>
Array<T> expected(const Layout& layout, const naive::Indices& mesh, const naive::Indices& shape,
                  int operand) {
  return array_of<T>(
      shape, [&](const naive::Indices& index) { return value<T>(layout, mesh, index, operand); });
}
template <class X>
Array<typename X::value_type> expected(const X& x, int operand) {
  return expected<typename X::value_type>(X::layout, naive::to_indices(x.mesh().extents()),
                                          naive::to_indices(Shape(x.shape())), operand);
}

/// The local part of that tensor on the rank at a coordinate of a mesh.
template <class T, int Rank>
Tensor<T, Rank, TestDevice> held(const Layout& layout, const Shape& shape, const Shape& mesh,
                                 const Shape& coordinate, int operand) {
  const naive::Indices at = naive::partial_coordinate(layout, naive::to_indices(coordinate));
  const auto elements = naive::elements(layout, naive::to_indices(shape), naive::to_indices(mesh),
                                        naive::to_indices(coordinate));
  const Tensor<T, Rank> local(to_array<Rank>(local_shape(layout, shape, mesh, coordinate)));
  for (std::size_t i = 0; i < elements.size(); ++i)
    local.data()[i] = addend<T>(elements[i], at, operand);
  return local.to(TestDevice{});
}

/// A DTensor of element type T and placements P with the addends of `operand`.
template <class T, class P, class Mesh, std::size_t Rank>
auto placed(const Mesh& mesh, const std::array<index_t, Rank>& shape, int operand) {
  using X = DTensor<T, int(Rank), Mesh, P>;
  return X::unchecked(
      held<T, int(Rank)>(X::layout, Shape(shape), mesh.extents(), mesh.coordinate(), operand), mesh,
      shape);
}

/// Calls f(); failures in it are reported with the text.
inline void about(const std::string& text, FunctionRef<void()> f) {
  INFO(text);
  f();
}

/// A layout and a shape, for these texts.
inline std::string described(const Layout& layout, const Shape& shape) {
  return to_string(layout) + " of " + to_string(shape);
}
template <class X>
std::string described(const X& x) {
  return described(X::layout, Shape(x.shape()));
}

/// Whether two elements are equal, or floats that differ by at most `share` of their size.
template <class T>
bool alike(const T& a, const T& b, double share) {
  if constexpr (std::is_floating_point_v<T> || is_complex<T>)
    if (double(std::abs(a - b)) <= share * double(std::abs(b))) return true;
  return a == b;
}

/// Checks the local part of the rank at a coordinate of a mesh.
template <class T, int Rank>
void check_held(const Layout& layout, const Shape& shape, const Shape& mesh,
                const Shape& coordinate, const Tensor<T, Rank, TestDevice>& local,
                const Array<T>& array, double share) {
  CAPTURE(to_string(layout));
  REQUIRE(naive::to_indices(shape) == array.shape);
  const auto elements =
      naive::elements(layout, array.shape, naive::to_indices(mesh), naive::to_indices(coordinate));
  REQUIRE(index_t(elements.size()) == local.size());
  const auto dense = local.clone().to(Host{});
  index_t wrong = 0;
  for (std::size_t i = 0; i < elements.size(); ++i)
    wrong += !alike(dense.data()[i], array.at(elements[i]), share);
  CHECK(wrong == 0);
}

/// Checks every local element against the array, after resolving partials.
///
/// @param share  relative error allowed in floats
template <class X, class T>
void check_equal(const X& x, const Array<T>& array, double share = 0) {
  static_assert(std::is_same_v<typename X::value_type, T>);
  const Shape shape(x.shape());
  const Shape &mesh = x.mesh().extents(), &coordinate = x.mesh().coordinate();
  if constexpr (X::layout.has_partial()) {
    Layout everywhere;
    everywhere.axes = X::layout.axes;
    check_held(everywhere, shape, mesh, coordinate, x.full_tensor(), array, share);
  } else {
    check_held(X::layout, shape, mesh, coordinate, x.to_local(), array, share);
  }
}

/// Whether averages of small integers over the partial axes are exact.
template <class X>
bool exact_averages(const X& x) {
  for (int a = 0; a < X::layout.axes; ++a)
    if (X::layout[a] == Placement::partial(ReduceOp::avg))
      if (const index_t n = x.mesh().extents()[a]; n & (n - 1)) return false;
  return true;
}

/// Whether a DTensor has these placements.
template <class X, class... P>
inline constexpr bool lies = std::is_same_v<typename X::placements_type, Placements<P...>>;

}  // namespace cleave::testing
