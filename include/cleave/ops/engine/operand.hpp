// The operands that operations accept, and which one selects the call path: Tensors are computed on
// this rank, DTensors on their mesh; traced values and values that track gradients add paths.
#pragma once

#include <type_traits>
#include <utility>

#include <cleave/async/async.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0 {

/// A tensor operand: a Tensor, a DTensor, or a traced or tracked value that stands for one.
template <class X>
concept AnyTensor = (detail::call_level<X> >= 0);

/// A number as an operand.
template <class X>
concept ScalarElement = Element<X>;

/// A tensor or a number.
template <class X>
concept AnyOperand = AnyTensor<X> || ScalarElement<X>;

/// Two operands, at least one of them a tensor.
template <class A, class B>
concept TensorAndOther =
    (AnyTensor<A> && (AnyTensor<B> || ScalarElement<B>)) || (ScalarElement<A> && AnyTensor<B>);

/// The global extents of a tensor as a Shape.
template <AnyTensor X>
constexpr Shape shape_of(const X& x) {
  return Shape(x.shape());
}

namespace detail {

/// The value inside the wrappers that track its gradients.
template <class X>
constexpr decltype(auto) innermost(const X& x) {
  if constexpr (requires { x.slot(); }) return innermost(x.value());
  else return (x);
}
template <class X>
using innermost_t = std::remove_cvref_t<decltype(innermost(std::declval<const X&>()))>;

/// Returns an operand unchanged; waits for one that a collective computes.
template <class X>
constexpr decltype(auto) waited(const X& x) {
  if constexpr (is_async_tensor<X>) return x.wait();
  else return (x);
}

/// The context of a tensor, for errors.
template <class X>
constexpr ErrorContext context_of(const X& x) {
  if constexpr (is_dtensor<innermost_t<X>>) return innermost(x).context();
  else return {.shapes = to_string(shape_of(x))};
}

/// Whether this rank knows the extents of a tensor.
template <class X>
constexpr bool knows_extents(const X& x) {
  if constexpr (is_dtensor<innermost_t<X>>) return innermost(x).mesh().is_member();
  else return true;
}

/// The first operand that is a tensor.
template <class A, class... Rest>
constexpr const auto& first_tensor(const A& x, const Rest&... rest) {
  if constexpr (AnyTensor<A>) return x;
  else return first_tensor(rest...);
}
template <class... X>
using first_tensor_t = std::remove_cvref_t<decltype(first_tensor(std::declval<const X&>()...))>;

/// The element type of the first tensor.
template <class... X>
using element_of = typename first_tensor_t<X...>::value_type;

/// The element type of a tensor, or the type of a number.
template <class X>
struct ElementOr {
  using type = X;
};
template <AnyTensor X>
struct ElementOr<X> {
  using type = typename X::value_type;
};

/// Returns a tensor, waited for if a collective computes it; a number as a Number.
template <class X>
constexpr decltype(auto) as_operand(const X& x) {
  if constexpr (ScalarElement<X>) return Number<X>{x};
  else return waited(x);
}

/// An operand's entry in Types: its element type; for a number, Number of it.
template <class X>
struct TypeEntry {
  using type = typename X::value_type;
};
template <class T>
struct TypeEntry<Number<T>> {
  using type = Number<T>;
};
template <class... X>
using types_of = Types<typename TypeEntry<X>::type...>;

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

/// The placements of an operand on a mesh of `Axes` axes.
template <class X, int Axes>
struct OperandPlacements {
  using type = replicated_t<Axes>;
};
template <class X, int Axes>
  requires is_dtensor<X>
struct OperandPlacements<X, Axes> {
  using type = typename X::placements_type;
};

}  // namespace detail

}  // namespace cleave::inline v0
