// Modules on one device and on a mesh.
#pragma once

#include <type_traits>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/nn/lazy.hpp>
#include <cleave/nn/map.hpp>

namespace cleave::nn {

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

/// Every axis Replicate where nothing else is said.
template <class X, class Device, Axis... A, class... P>
auto place_as_asked(const X& x, const DeviceMesh<Device, A...>& mesh, P... placements) {
  if constexpr (sizeof...(P) > 0) return place_parameter(x, mesh, placements...);
  else return place_parameter(x, mesh, replicate_on<A>()...);
}

}  // namespace detail

/// The module, or a parameter, with its parameters on a mesh: one placement per axis, or none for
/// Replicate on all. Buffers become Replicate.
///
/// What is Lazy is made where it lies; a Tensor is taken from the mesh's first rank; what is on a
/// mesh already is redistributed, and shares its storage where nothing changes.
/// @collective every rank of the world
template <class M, class Device, Axis... A, class... P>
auto place(const M& m, const DeviceMesh<Device, A...>& mesh, P... placements) {
  static_assert(sizeof...(P) == 0 || sizeof...(P) == sizeof...(A),
                "cleave: place takes one placement per mesh axis, or none");
  return map_tensors(
      m, [&](const auto& x) { return detail::place_as_asked(x, mesh, placements...); },
      [&](const auto& x) { return detail::place_as_asked(x, mesh); });
}

/// The module whose parameters that are not initialised yet know their places among the draws of a
/// state, as if they were made now: they may be made in any order.
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

/// The module on one device: what is Lazy becomes a Tensor. With a state that starts as a mesh's,
/// the same numbers.
template <class M>
  requires(!is_lazy<M>)
auto make(const M& m, RandomState& state) {
  const auto one = [&state](const auto& x) {
    if constexpr (is_lazy<std::remove_cvref_t<decltype(x)>>) return make(x, state);
    else return x;
  };
  return map_tensors(m, one, one);
}

}  // namespace cleave::nn
