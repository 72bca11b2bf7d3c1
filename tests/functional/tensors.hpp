// Tensors for tests of functional collectives: values that identify their origin, strided and
// contiguous, and comparisons with a function of the indices.
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/functional.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/tensor/tensor.hpp>

#include "../comm/fields.hpp"
#include "device.hpp"

namespace cleave::testing {

using Extents3 = std::array<index_t, 3>;

/// The element (i, j, k) of rank `rank`: small, never zero.
template <class T>
T cell(int rank, index_t i, index_t j, index_t k) {
  return number<T>(1 + (rank * 31 + i * 7 + j * 3 + k * 5 + i * j + j * k) % 11);
}

/// The cells of a rank on the test's device: row-major, or with reversed dimensions and gaps
/// between elements.
template <class T>
Tensor<T, 3, TestDevice> cells(int rank, const Extents3& extents, bool strided = false) {
  const auto inside = [&](const auto& wide) {
    return wide.select(3, 1).slice(1, 1, extents[1] + 1).permute({2, 1, 0});
  };
  const auto set = [&](const Tensor<T, 3>& tensor) {
    for (index_t i = 0; i < extents[0]; ++i)
      for (index_t j = 0; j < extents[1]; ++j)
        for (index_t k = 0; k < extents[2]; ++k) tensor(i, j, k) = cell<T>(rank, i, j, k);
  };
  if (!strided) {
    const Tensor<T, 3> tensor(extents);
    set(tensor);
    return tensor.to(TestDevice{});
  }
  const Tensor<T, 4> wide({extents[2], extents[1] + 1, extents[0], 2});
  wide.fill_(number<T>(77));
  set(inside(wide));
  return inside(wide.to(TestDevice{}));
}

/// The relative error allowed in a reduction: NCCL averages by multiplying each addend by 1/n in
/// the element type.
template <class T>
double tolerance(ReduceOp op, const World& world) {
  if (op != ReduceOp::avg || std::string(all_ranks(world).backend()) != "nccl") return 0;
  if constexpr (std::is_same_v<T, half>) return 2.0 / 1024;
  else return 2 * double(std::numeric_limits<kernels::real_t<T>>::epsilon());
}

/// Whether two numbers are equal, or differ by at most `tolerance` relative to the expected one.
template <class T>
bool near(const T& found, const T& expected, double tolerance) {
  if constexpr (!std::is_integral_v<T>) {
    using A = accumulator_t<T>;
    if (tolerance > 0)
      return double(std::abs(A(found) - A(expected))) <= tolerance * double(std::abs(A(expected)));
  }
  return found == expected;
}

/// "" if the tensor has these extents and value(i, j, k) everywhere; otherwise the first
/// difference.
template <class T, class Value>
std::string difference(const Tensor<T, 3, TestDevice>& tensor, const Extents3& extents, Value value,
                       double tolerance = 0) {
  if (tensor.shape() != extents) return "the extents are " + to_string(Shape(tensor.shape()));
  const Tensor<T, 3> found = tensor.to(Host{});
  for (index_t i = 0; i < extents[0]; ++i)
    for (index_t j = 0; j < extents[1]; ++j)
      for (index_t k = 0; k < extents[2]; ++k)
        if (const T expected = value(i, j, k); !near(found(i, j, k), expected, tolerance))
          return "(" + std::to_string(i) + ", " + std::to_string(j) + ", " + std::to_string(k) +
                 ") is " + text_of(found(i, j, k)) + ", not " + text_of(expected);
  return "";
}

/// Whether a tensor still holds the cells of its rank.
template <class T>
bool unmodified(const Tensor<T, 3, TestDevice>& tensor, int rank) {
  return difference(tensor, tensor.shape(),
                    [&](index_t i, index_t j, index_t k) { return cell<T>(rank, i, j, k); }) == "";
}

/// Calls f(T{}) for types of every kind and size.
template <class F>
void for_some_types(F f) {
  f(bool{});
  f(std::int64_t{});
  f(half{});
  f(float{});
  f(double{});
  f(std::complex<float>{});
}

using Line = Tensor<float, 1, TestDevice>;

/// A tensor of `count` elements that all equal the rank's number.
inline Line ranks_number(const World& world, index_t count) {
  const Line x({count});
  x.fill_(float(world.rank()));
  return x;
}

/// An element of a result, after waiting for it.
template <class Result, class... Index>
auto element(const Result& result, Index... index) {
  return functional::wait(result).to(Host{})(index...);
}

}  // namespace cleave::testing
