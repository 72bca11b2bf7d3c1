// arange and eye: consecutive numbers and identity matrices. Every rank makes its own part.
#pragma once

#include <string>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/tensor/strided_copy.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

namespace detail {

template <class T>
constexpr void require_countable() {
  static_assert(!is_complex<T> && !std::is_same_v<T, bool>,
                "cleave: arange requires a real or integer element type");
}

/// first, first + 1, ..
template <class T, class Device>
Tensor<T, 1, Device> counted(index_t first, index_t count) {
  require_countable<T>();
  const Tensor<T, 1> numbers({count});
  for (index_t i = 0; i < count; ++i) numbers.data()[i] = T(accumulator_t<T>(first + i));
  return numbers.to(Device{});
}

constexpr index_t count_between(index_t begin, index_t end) {
  if (end < begin)
    throw Error("arange", "the end " + std::to_string(end) + " is less than the begin " +
                              std::to_string(begin));
  return end - begin;
}

/// Sets the elements of a local matrix that are on the diagonal of the global matrix.
/// @param box  the global indices of the local matrix
template <class T, class Device>
void set_diagonal(const Tensor<T, 2, Device>& x, const Box& box, const T& value) {
  const index_t begin = box.begin[0] > box.begin[1] ? box.begin[0] : box.begin[1];
  const index_t end = box.end[0] < box.end[1] ? box.end[0] : box.end[1];
  if (end <= begin) return;
  const index_t rows = x.strides()[0], columns = x.strides()[1];
  T* const first = x.data() + (begin - box.begin[0]) * rows + (begin - box.begin[1]) * columns;
  strided_fill(
      Device{},
      View{first, dtype_of<T>(), Shape::filled(1, end - begin), Shape::filled(1, rows + columns)},
      value);
}

}  // namespace detail

/// The numbers begin, begin + 1, .., end - 1: `arange<float>(0, 8, mesh, Shard<0>{})`.
///
/// @collective none
/// @throws Error if `end` is less than `begin`
template <Element T, class Mesh, class... P>
  requires is_device_mesh<Mesh>
auto arange(index_t begin, index_t end, const Mesh& mesh, P... placements) {
  const auto x = detail::make_empty<T>({detail::count_between(begin, end)}, mesh, placements...);
  using X = std::remove_const_t<decltype(x)>;
  using Device = typename X::device_type;
  if constexpr (X::layout.is_box()) {
    const Box box = x.local_box();
    return X::unchecked(detail::counted<T, Device>(begin + box.begin[0], box.extent(0)), mesh,
                        x.shape(), x.actual_layout());
  } else {
    detail::require_countable<T>();
    const Tensor<T, 1> numbers(x.to_local().shape());
    x.each_local_box([&](const Box& box, const Box& local) {
      numbers[local].copy_(detail::counted<T, Host>(begin + box.begin[0], box.extent(0)));
    });
    return X::unchecked(numbers.to(Device{}), mesh, x.shape(), x.actual_layout());
  }
}
/// The numbers 0, 1, .., end - 1: `arange<float>(8, mesh, Shard<0>{})`.
template <Element T, class Mesh, class... P>
  requires is_device_mesh<Mesh>
auto arange(index_t end, const Mesh& mesh, P... placements) {
  return arange<T>(0, end, mesh, placements...);
}
/// The same in local tensors.
template <Element T, class Device = Host>
auto arange(index_t begin, index_t end) {
  return detail::counted<T, Device>(begin, detail::count_between(begin, end));
}
template <Element T, class Device = Host>
auto arange(index_t end) {
  return arange<T, Device>(0, end);
}

/// The identity matrix: `eye<double>(8, mesh, Shard<0>{})`.
///
/// @collective none
/// @throws Error if the extent is negative
template <Element T, class Mesh, class... P>
  requires is_device_mesh<Mesh>
auto eye(index_t extent, const Mesh& mesh, P... placements) {
  const auto x = zeros<T>({extent, extent}, mesh, placements...);
  x.each_local_box([&](const Box& box, const Box& local) {
    detail::set_diagonal(x.to_local()[local], box, T(1));
  });
  return x;
}
/// The same in a local tensor.
template <Element T, class Device = Host>
auto eye(index_t extent) {
  const Tensor<T, 2, Device> x({extent, extent});
  x.fill_(T(0));
  detail::set_diagonal(x, Box::of(Shape(x.shape())), T(1));
  return x;
}

}  // namespace cleave::inline v0
