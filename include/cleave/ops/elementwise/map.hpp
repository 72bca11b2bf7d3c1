// map: applies a function to elements, in one fused pass over any number of arrays.
#pragma once

#include <type_traits>
#include <utility>

#include <cleave/kernels/dual.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>

namespace cleave::inline v0 {

namespace detail {

template <class F>
inline constexpr bool has_partials = requires { F::partials; };

/// The derivative of f with respect to argument I: declared by f, else computed with dual numbers.
template <int I, class F>
struct DerivativeOf {
  F f;

  static constexpr bool is_stateless = detail::is_stateless<F>;

  template <class... T>
  CLEAVE_HOST_DEVICE auto operator()(const T&... x) const {
    if constexpr (requires { f.derivative(wrt<I>{}, x...); }) return f.derivative(wrt<I>{}, x...);
    else return by_dual(std::index_sequence_for<T...>{}, x...);
  }

 private:
  template <std::size_t... K, class... T>
  CLEAVE_HOST_DEVICE auto by_dual(std::index_sequence<K...>, const T&... x) const {
    return kernels::slope_of(f(kernels::dual_argument < int(K) == I > (x)...));
  }
};

/// Whether f can be differentiated with respect to argument I.
template <int I, class F, class... T>
inline constexpr bool is_differentiable = requires(const F& f, const T&... x) {
  f.derivative(wrt<I>{}, x...);
} || std::is_invocable_v<const F&, kernels::DualOr<T>...>;

}  // namespace detail

namespace ops {

/// A functor as an operation. The functor may declare how it treats partial operands in
/// `static constexpr const char* partials`, and its derivative in
/// `derivative(wrt<I>, const T&... x)`; otherwise it is called with dual numbers, if it takes them.
template <class F>
struct Map : Elementwise {
  F f;

  static constexpr bool is_stateless = detail::is_stateless<F>;

  static constexpr const char* name = "map";
  static constexpr bool takes_float8 = true;
  template <class...>
  static constexpr const char* partials_for() {
    if constexpr (detail::has_partials<F>) return static_cast<const char*>(F::partials);
    else return "";
  }
  template <class... T>
    requires std::is_invocable_v<const F&, const T&...>
  CLEAVE_HOST_DEVICE auto operator()(const T&... x) const {
    return f(x...);
  }
  template <int I, class G, class Y, class... X>
    requires detail::is_differentiable<I, F, typename detail::ElementOr<X>::type...>
  constexpr auto gradient(wrt<I>, const G& g, const Y&, const X&... x) const {
    return mul(
        g, detail::call_as(detail::Request<>{}, Map<detail::DerivativeOf<I, F>>{{}, {f}}, x...));
  }
};

}  // namespace ops

/// Applies a function to elements in one pass over memory: y[i] = f(a[i], b[i], ..).
///
///     auto y = map([](float u, float v) { return u * v + 1; }, a, b);
///
/// Operands broadcast, aligned at their last dimension: [k] and scalars along [n, k], dimensions of
/// extent 1 along the extents of other operands. A dimension that broadcasts must not be sharded.
///
/// @param f  a pure function of elements; may return another element type. If it has a member
///           `partials`, rows as in sharding_rule, the result may stay partial. It has a gradient
///           if it is generic (`[](auto u) { return u * u; }`: dual numbers), or if it has a
///           member `derivative(wrt<I>, u, v, ..)`
/// @param x  tensors on one mesh and numbers, at least one tensor
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error if the extents do not broadcast, or the meshes differ
template <class... R, class F, AnyOperand... X>
  requires(AnyTensor<X> || ...)
constexpr auto map(const F& f, const X&... x) {
  using T = std::remove_cvref_t<
      std::invoke_result_t<const F&, const typename detail::ElementOr<X>::type&...>>;
  static_assert(Element<T>, "cleave: map: the functor must return a supported element type");
  return detail::call_as(detail::Request<R...>{}, ops::Map<F>{{}, f}, x...);
}

}  // namespace cleave::inline v0
