// The placements to which parallel styles redistribute the inputs and results of modules.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/grad/local.hpp>
#include <cleave/parallel/module_axis.hpp>
#include <cleave/parallel/prepared.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The placements of a Tensor on a mesh, from one placement or Placements<..>.
template <class Mesh, class P>
struct LayoutOn {
  static_assert(Mesh::axis_count == 1,
                "cleave: on a mesh of several axes the layout of a Tensor is Placements<..>, one "
                "placement per axis");
  using type = Placements<P>;
};
template <class Mesh, class... P>
struct LayoutOn<Mesh, Placements<P...>> {
  static_assert(sizeof...(P) == std::size_t(Mesh::axis_count),
                "cleave: the layout of a Tensor has exactly one placement per mesh axis");
  using type = Placements<P...>;
};

/// This rank's part of a value; the gradient of a tracked value has the same placements.
template <class X>
auto part_of(const X& x) {
  const auto whole = resolve(x);
  if constexpr (tape::is_tracked<X>)
    return to_local(whole, typename innermost_t<decltype(whole)>::placements_type{});
  else return whole.to_local();
}

/// A value with the placement `Want` on the axis, or unchanged for None; if `Local`, this rank's
/// part of it. `Given` are the placements of a Tensor. Values that are not tensors are unchanged.
template <class Want, class Given, bool Local, class Al, class X>
auto arranged(const Al& along, const X& x) {
  if constexpr (!AnyTensor<X>) {
    return x;
  } else if constexpr (is_tensor<innermost_t<X>> && !std::is_same_v<Given, nn::None>) {
    using Lies = typename LayoutOn<typename Al::mesh_type, Given>::type;
    return arranged<Want, nn::None, Local>(along, from_local(x, along.mesh, Lies{}));
  } else if constexpr (!is_dtensor<innermost_t<X>>) {
    static_assert(std::is_same_v<Want, nn::None> || !is_tensor<innermost_t<X>>,
                  "cleave: a style is given a Tensor; state its layout by input_layouts or "
                  "output_layouts of the style, or place it (distribute_tensor, from_local)");
    return x;
  } else if constexpr (!std::is_same_v<Want, nn::None>) {
    return arranged<nn::None, nn::None, Local>(along, bring(x, typename Al::axis{}, Want{}));
  } else if constexpr (Local) {
    return part_of(x);
  } else {
    return x;
  }
}

/// Arranges several values. @see arranged
///
/// @tparam Wanted  Types of a placement or None, one per value
/// @tparam Given   Types of layouts or None, one per value
/// @tparam Strict  whether more values are an error
template <class Wanted, class Given, bool Local, bool Strict>
struct Layouts;
template <class... P, class... G, bool Local, bool Strict>
struct Layouts<Types<P...>, Types<G...>, Local, Strict> {
  static_assert(
      sizeof...(P) == sizeof...(G),
      "cleave: a style must name the layouts of Tensors for all of its layouts, or for none");
  static constexpr int count = int(sizeof...(P));

  template <class Al, class... X>
  static auto of(const Al& along, const X&... x) {
    constexpr int n = int(sizeof...(X));
    constexpr bool fits = Strict ? n == count : n >= count;
    static_assert(fits,
                  "cleave: a module and its style differ in the numbers of inputs or results");
    if constexpr (fits) return all(std::index_sequence_for<X...>{}, along, x...);
    else return std::tuple<X...>(x...);
  }

 private:
  template <std::size_t... I, class Al, class... X>
  static auto all(std::index_sequence<I...>, const Al& along, const X&... x) {
    return std::tuple<decltype(one<int(I)>(along, x))...>{one<int(I)>(along, x)...};
  }
  template <int I, class Al, class X>
  static auto one(const Al& along, const X& x) {
    if constexpr (I >= count) return x;
    else return arranged<nth<I, P..., void>, nth<I, G..., void>, Local>(along, x);
  }
};

/// Any number of values with unchanged placements; if `Local`, this rank's parts of them.
template <bool Local>
struct AnyLayouts {
  template <class Al, class... X>
  static auto of(const Al& along, const X&... x) {
    return std::tuple<decltype(arranged<nn::None, nn::None, Local>(along, x))...>{
        arranged<nn::None, nn::None, Local>(along, x)...};
  }
};

/// The layout of the first input or the only result; G are the placements of a Tensor.
template <class P, class G = nn::None, bool Local = false>
using FirstLayout = Layouts<Types<P>, Types<G>, Local, false>;

/// The hook of a style.
///
/// @tparam In   Layouts or AnyLayouts of the inputs
/// @tparam Out  the same of the result, which is one value or a tuple of several
template <class Al, class In, class Out>
struct LayoutHook {
  using axis = typename Al::axis;
  using mesh_type = typename Al::mesh_type;

  Al along;

  template <class... X>
  auto inputs(const X&... x) const {
    return In::of(along, x...);
  }
  template <class Y>
  auto output(const Y& y) const {
    return std::get<0>(Out::of(along, y));
  }
  template <class... Y>
  auto output(const std::tuple<Y...>& y) const {
    return std::apply([&](const auto&... value) { return Out::of(along, value...); }, y);
  }
};

template <class In, class Out, class M, class Al>
auto with_layouts(M m, const Al& along) {
  return Prepared<M, LayoutHook<Al, In, Out>>(std::move(m), {along});
}

}  // namespace detail

/// For user-defined styles: the module with its first input redistributed to P on the style's axis,
/// and its result to Q; nn::None{} leaves either unchanged.
///
///     [](const auto& m, const auto& along) {
///       return prepared(along.cut(m, nn::Cut<Replicate, Shard<0>>{}), along, Replicate{},
///       nn::None{});
///     }
template <class M, class Mesh, class A, class P, class Q>
auto prepared(M m, const Along<Mesh, A>& along, P, Q) {
  return detail::with_layouts<detail::FirstLayout<P>, detail::FirstLayout<Q>>(std::move(m), along);
}

}  // namespace cleave::inline v0
