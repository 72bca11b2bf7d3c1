// What operations accept: DTensors, and scalars next to them.
#pragma once

#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave {

/// A DTensor, or a Tensor, which operations refuse with a sentence.
template <class X>
concept AnyTensor = is_dtensor<X> || is_tensor<X>;

/// A number next to a DTensor.
template <class X>
concept ScalarElement = Element<X>;

namespace detail {

/// A number as an operand: the same on every rank, without dimensions.
template <class T>
struct ScalarOperand {
  using value_type = T;
  static constexpr int dims = 0;
  T value;
};

template <class X>
inline constexpr bool is_scalar_operand = false;
template <class T>
inline constexpr bool is_scalar_operand<ScalarOperand<T>> = true;

/// The mesh type of the first DTensor.
template <class... X>
struct MeshOf {
  using type = void;
};
template <class First, class... Rest>
struct MeshOf<First, Rest...> : MeshOf<Rest...> {};
template <class T, int Rank, class Mesh, class P, class... Rest>
struct MeshOf<DTensor<T, Rank, Mesh, P>, Rest...> {
  using type = Mesh;
};

template <class Mesh, class X>
constexpr bool on_mesh() {
  if constexpr (is_dtensor<X>) return std::is_same_v<typename X::mesh_type, Mesh>;
  else return true;
}

/// The placements of an operand on a mesh of `axes` axes.
template <class X>
constexpr Layout operand_layout(int axes) {
  if constexpr (is_dtensor<X>) {
    return X::layout;
  } else {
    Layout layout;
    layout.axes = axes;
    return layout;
  }
}

}  // namespace detail

}  // namespace cleave
