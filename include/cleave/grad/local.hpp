// Conversions between global and local values with tracked gradients: to_local, from_local,
// full_tensor, local_map.
//
// The library does not know how a rank uses its local elements, and so not what the gradient of its
// part means: the gradient of a replicated value may be equal on all ranks, or one term of a sum
// over ranks. The caller therefore states the placements of the gradient; omitting them where they
// matter does not compile.
#pragma once

#include <cleave/dtensor/from_local.hpp>
#include <cleave/grad/tracked.hpp>

namespace cleave {

namespace ops {

/// The local elements of a value; `P` are the placements of its gradient.
template <class P>
struct ToLocal {
  static constexpr const char* name = "to_local";
  static constexpr unsigned gradient_reads = 0;
  template <class G, class Y, class T, int Rank, class Mesh, class Q>
  static auto gradient(wrt<0>, const G& g, const Y&, const DTensor<T, Rank, Mesh, Q>& x) {
    return DTensor<T, Rank, Mesh, P>::unchecked(g, x.mesh(), x.shape());
  }
};

/// Local elements as parts of a global value; a rank's gradient is its part of the global gradient.
struct FromLocal {
  static constexpr const char* name = "from_local";
  static constexpr unsigned gradient_reads = 0;
  template <class G, class Y, class X>
    requires is_dtensor<G>
  static auto gradient(wrt<0>, const G& g, const Y&, const X&) {
    return g.local();
  }
};

}  // namespace ops

namespace tape {

/// Whether every axis shards a value: then each element, and its gradient, has one owner.
template <class X>
constexpr bool has_owners() {
  return X::layout.sharding_axes() == (1u << X::layout.axes) - 1u;
}

}  // namespace tape

/// The elements that this rank holds, as a local tensor that tracks gradients.
///
/// @tparam P  the placements of the gradient (`grad_placements` in PyTorch): Partial<> on axes
///            where each rank computes one term of a sum
/// @collective none; in backward, every rank of the mesh, if the gradient must be redistributed
template <class X, class... P>
  requires is_dtensor<X>
auto to_local(const Tracked<X>& x, Placements<P...>) {
  static_assert(sizeof...(P) == std::size_t(X::mesh_type::axis_count),
                "cleave: to_local takes exactly one placement of the gradient per mesh axis");
  using Gradient = normalized_t<Placements<P...>, X::dims>;
  return tape::record(ops::ToLocal<Gradient>{}, x.value().local(), x);
}
template <class X, PlacementType... P>
  requires(is_dtensor<X> && sizeof...(P) > 0)
auto to_local(const Tracked<X>& x, P...) {
  return to_local(x, Placements<P...>{});
}
/// The same for a value that every axis shards; its gradient has the same placements.
template <class X>
  requires is_dtensor<X>
auto to_local(const Tracked<X>& x) {
  static_assert(tape::has_owners<X>(),
                "cleave: to_local: state the placements of the gradient, one per mesh axis; of a "
                "value that is not sharded, it may be Replicate or Partial<Sum>");
  return to_local(x, typename X::placements_type{});
}

/// Makes one global value of local tensors that track gradients. @see from_local
///
/// @collective every rank of the mesh
template <class X, class Mesh, class... P>
  requires is_tensor<X>
auto from_local(const Tracked<X>& local, const Mesh& mesh, Placements<P...> placements) {
  return tape::record(ops::FromLocal{}, from_local(local.value(), mesh, placements), local);
}
template <class X, class Mesh, PlacementType... P>
  requires(is_tensor<X> && is_device_mesh<Mesh>)
auto from_local(const Tracked<X>& local, const Mesh& mesh, P...) {
  return from_local(local, mesh, Placements<P...>{});
}

/// The whole value on every rank. All ranks must use it in the same way, so that its gradient is
/// the same on every rank.
///
/// @collective every rank of the mesh
template <class X>
  requires is_dtensor<X>
auto full_tensor(const Tracked<X>& x) {
  constexpr auto everywhere = placements_t<0, X::mesh_type::axis_count>{};
  return to_local(redistribute(x, everywhere), everywhere);
}
template <class X>
  requires is_dtensor<X>
auto full_tensor(const X& x) {
  return x.full_tensor();
}

/// A value with the placements of its gradient, for `local_map`.
template <class X, class P>
struct WithGradient {
  const X& value;
};
template <class X, PlacementType... P>
WithGradient<X, Placements<P...>> with_gradient(const X& x, P...) {
  return {x};
}

namespace tape {

template <class X>
  requires is_dtensor<X>
const auto& local_of(const X& x) {
  return x.local();
}
template <class X>
auto local_of(const Tracked<X>& x) {
  return to_local(x);
}
template <class X, class P>
auto local_of(const WithGradient<X, P>& x) {
  return to_local(x.value, P{});
}

template <class X>
const X& global_of(const X& x) {
  return x;
}
template <class X, class P>
const X& global_of(const WithGradient<X, P>& x) {
  return x.value;
}

}  // namespace tape

/// Calls a function of local tensors with the local parts of DTensors.
///
///     auto y = local_map(f, Placements<Shard<0>>{}, x, with_gradient(w, Partial<Sum>{}));
///
/// @param f    takes the local tensors, returns this rank's part of the result
/// @tparam Out the placements of the result
/// @param x    DTensors on one mesh, tracked or not; for a tracked one that is not sharded on every
///             axis, `with_gradient` states the placements of its gradient
/// @collective every rank of the mesh
/// @throws Error if the parts do not form a global value
template <class F, class... Out, class First, class... Rest>
auto local_map(const F& f, Placements<Out...> placements, const First& x, const Rest&... rest) {
  return from_local(f(tape::local_of(x), tape::local_of(rest)...), tape::global_of(x).mesh(),
                    placements);
}

}  // namespace cleave
