// Places modules on one device or on a mesh.
#pragma once

#include <type_traits>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/nn/lazy.hpp>
#include <cleave/nn/map_parts.hpp>

namespace cleave::inline v0::nn {

namespace detail {

template <class X, class Mesh, class... P>
auto place_parameter(const X& x, const Mesh& mesh, P... placements) {
  if constexpr (is_lazy<X>) return make(x, mesh, placements...);
  else if constexpr (tape::is_tracked<X>)
    return requires_grad(place_parameter(x.value(), mesh, placements...));
  else if constexpr (is_tensor<X>) return distribute_tensor(x, mesh, placements...);
  else if constexpr (std::is_same_v<typename X::mesh_type, Mesh>)
    return x.redistribute(placements...);
  else return x.redistribute(mesh, placements...);
}

template <class>
constexpr Replicate replicate_on() {
  return {};
}

/// Without placements, every axis is Replicate.
template <class X, class Device, Axis... A, class... P>
auto place_as_asked(const X& x, const DeviceMesh<Device, A...>& mesh, P... placements) {
  if constexpr (sizeof...(P) > 0) return place_parameter(x, mesh, placements...);
  else return place_parameter(x, mesh, replicate_on<A>()...);
}

}  // namespace detail

/// Places the parameters of a module, or one parameter, on a mesh: pass one placement per axis, or
/// none for Replicate on all axes. Buffers become Replicate.
///
/// A Lazy is initialised in its placement; a Tensor is taken from the mesh's first rank; a DTensor
/// is redistributed, and shares its storage if nothing changes.
/// @collective every rank of the world
template <class M, class Device, Axis... A, class... P>
auto place(const M& m, const DeviceMesh<Device, A...>& mesh, P... placements) {
  static_assert(sizeof...(P) == 0 || sizeof...(P) == sizeof...(A),
                "cleave: place takes one placement per mesh axis, or none");
  return map_tensors(
      m, [&](const auto& x) { return detail::place_as_asked(x, mesh, placements...); },
      [&](const auto& x) { return detail::place_as_asked(x, mesh); });
}

/// Assigns the next draws of a state to the uninitialised parameters of a module, as if they were
/// initialised now: they may later be initialised in any order.
template <class M>
M with_draws(const M& m, RandomState& state) {
  const auto one = [&state](const auto& x) {
    auto y = x;
    if constexpr (is_lazy<std::remove_cvref_t<decltype(x)>>)
      if (!y.draw && y.initializer.kind != Initializer::Kind::constant)
        y.draw = cleave::detail::take_draws(state);
    return y;
  };
  return map_tensors(m, one, one);
}

/// Initialises the module on one device: every Lazy becomes a Tensor. A state equal to that of a
/// mesh's ranks gives the same numbers.
template <class M>
  requires(!is_lazy<M>)
auto make(const M& m, RandomState& state) {
  const auto one = [&state](const auto& x) {
    if constexpr (is_lazy<std::remove_cvref_t<decltype(x)>>) return make(x, state);
    else return x;
  };
  return map_tensors(m, one, one);
}

}  // namespace cleave::inline v0::nn
