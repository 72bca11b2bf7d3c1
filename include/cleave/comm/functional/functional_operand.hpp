// What functional collectives take: a local tensor, or the result of another collective, for which
// they wait.
#pragma once

#include <type_traits>

#include <cleave/comm/async.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::functional::detail {

/// The tensor of an argument.
template <class X>
struct Argument {
  static_assert(sizeof(X*) == 0,
                "cleave: functional collectives take a local Tensor or the result of another one; "
                "redistribute a DTensor, and pass value() of a tensor that tracks gradients: "
                "neither gradients nor traces pass through functional collectives");
  using type = Tensor<float, 1>;
  static type of(const X&);
};
template <class T, int Rank, class Device>
struct Argument<Tensor<T, Rank, Device>> {
  using type = Tensor<T, Rank, Device>;
  static const type& of(const type& x) { return x; }
};
template <class X>
struct Argument<Async<X>> {
  using type = typename Argument<X>::type;
  static const type& of(const Async<X>& x) { return x.wait(); }
};

template <class X>
using tensor_t = typename Argument<X>::type;

/// @throws what the collective threw of which x is the result
template <class X>
decltype(auto) tensor_of(const X& x) {
  return Argument<X>::of(x);
}

template <class X>
inline constexpr bool is_argument = is_tensor<X>;
template <class X>
inline constexpr bool is_argument<Async<X>> = is_tensor<X>;

}  // namespace cleave::functional::detail
