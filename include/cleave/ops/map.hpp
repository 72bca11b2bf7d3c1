// f applied to elements: one fused pass over any number of arrays.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/call.hpp>

namespace cleave {

/// The operation of a map over operands with these numbers of dimensions. F is the functor if it
/// has a member `partials`, void otherwise: all other functors share one rule per shape of call.
template <class F, int... Dims>
struct Map {};

namespace detail {

template <class F>
inline constexpr bool has_partials = requires { F::partials; };

/// The letters of operands whose last dimensions are aligned: "abc,bc,->abc".
template <int... Dims>
constexpr RuleText aligned_factors() {
  int most = 0;
  ((most = Dims > most ? Dims : most), ...);
  RuleText text;
  const auto letters = [&](int dims) {
    for (int d = most - dims; d < most; ++d) text += char('a' + d);
  };
  bool first = true;
  ((first ? void() : void(text += ','), first = false, letters(Dims)), ...);
  text += '-';
  text += '>';
  letters(most);
  return text;
}

}  // namespace detail

/// Any dimension may be sharded, in all operands that have it. What a functor does with partial
/// operands is its own to say, in `static constexpr const char* partials`. @see sharding_rule
template <class F, int... Dims>
struct sharding_rule<Map<F, Dims...>> {
  static constexpr RuleText factors = detail::aligned_factors<Dims...>();
  static constexpr const char* partials = [] {
    if constexpr (detail::has_partials<F>) return static_cast<const char*>(F::partials);
    else return "";
  }();
  static constexpr bool broadcasts = true;
};

namespace detail {

template <AnyTensor X>
const X& as_operand(const X& x) {
  return x;
}
template <ScalarElement X>
ScalarOperand<X> as_operand(const X& x) {
  return {x};
}

/// The local extents of the result, and an operand as the kernel takes it for them.
template <class T, int Rank, class Device>
void read_extents(const CallFrame& call, int operand, const Tensor<T, Rank, Device>& x,
                  Shape& extents) {
  for (int d = 0; d < Rank; ++d)
    if (!call.repeats(operand, d)) extents[extents.dims - Rank + d] = x.shape()[std::size_t(d)];
}
template <class T>
void read_extents(const CallFrame&, int, const ScalarOperand<T>&, Shape&) {}

template <class T, int Rank, class Device>
kernels::Strided<const T> aligned(const CallFrame& call, int operand,
                                  const Tensor<T, Rank, Device>& x, const Shape& extents) {
  kernels::Strided<const T> view{x.data(), extents, Shape::filled(extents.dims, 0)};
  for (int d = 0; d < Rank; ++d)
    if (!call.repeats(operand, d))
      view.strides[extents.dims - Rank + d] = x.strides()[std::size_t(d)];
  return view;
}
template <class T>
kernels::Scalar<T> aligned(const CallFrame&, int, const ScalarOperand<T>& x, const Shape&) {
  return {x.value};
}

/// What a rank contributes to a map; typed by elements, like every kernel.
template <class Result, int... I, class F, class... Local>
Result map_local(std::integer_sequence<int, I...>, const CallFrame& call, const F& f,
                 const Local&... x) {
  using Device = typename Result::device_type;
  Shape extents = Shape::filled(Result::dims, 1);
  (read_extents(call, I, x, extents), ...);
  const Result out(to_array<Result::dims>(extents));
  map_elements(kernels::On<Device>{}, f, kernels::write(out), aligned(call, I, x, extents)...);
  return out;
}

template <class Request, class F, class... X>
auto map_operands(const char* name, const F& f, const X&... x) {
  using T = std::remove_cvref_t<std::invoke_result_t<const F&, const typename X::value_type&...>>;
  static_assert(Element<T>, "cleave: the function of a map returns no element of a tensor");
  using Op = Map<std::conditional_t<has_partials<F>, F, void>, X::dims...>;
  using Call = Call<Op, Request, X...>;
  using Result = Tensor<T, Call::dims, typename Call::Device>;
  const Call call(name, x...);
  return call.run(
      [&](const auto&... local) {
        return map_local<Result>(std::make_integer_sequence<int, int(sizeof...(X))>{}, call, f,
                                 local...);
      },
      x...);
}

template <class Request, class F, class... X>
auto map_named(const char* name, const F& f, const X&... x) {
  return map_operands<Request>(name, f, as_operand(x)...);
}

}  // namespace detail

/// y[i] = f(a[i], b[i], ..): one pass over memory, whatever f does.
///
///     auto y = map([](float u, float v) { return u * v + 1; }, a, b);
///
/// Operands are aligned at their last dimension: [k] and scalars repeat along [n, k], and so does
/// a dimension of extent 1. Where such a dimension would be sharded for the others' sake, it has
/// to be replicated.
///
/// @param f  a pure function of elements; may return another element type. If it has a member
///           `partials`, rows as in sharding_rule, the result may stay partial
/// @param x  DTensors on one mesh and numbers, at least one DTensor
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error if extents do not fit, or the meshes differ
template <class... R, class F, class... X>
  requires((AnyTensor<X> || ...) && ((AnyTensor<X> || ScalarElement<X>) && ...))
auto map(const F& f, const X&... x) {
  return detail::map_named<detail::Request<R...>>("map", f, x...);
}

}  // namespace cleave
