// Conversions between global and local values with tracked gradients: to_local, from_local,
// distribute_tensor, full_tensor, local_map.
//
// The library does not know how a rank uses its local elements, and so not what the gradient of its
// part means: the gradient of a replicated value may be equal on all ranks, or one term of a sum
// over ranks. The caller therefore states the placements of the gradient; omitting them where they
// matter does not compile.
#pragma once

#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/grad/addend.hpp>
#include <cleave/grad/tracked.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>

namespace cleave::inline v0 {

namespace ops {

/// The local elements of a value; `P` are the placements of its gradient.
template <class P>
struct ToLocal {
  static constexpr const char* name = "to_local";
  static constexpr unsigned gradient_reads = 0;
  template <class G, class Y, class T, int Rank, class Mesh, class Q>
  static auto gradient(wrt<0>, const G& g, const Y&, const DTensor<T, Rank, Mesh, Q>& x) {
    return DTensor<T, Rank, Mesh, P>::unchecked(g, x.mesh(), x.shape(), x.actual_layout());
  }
};

/// Local elements as parts of a global value, or as addends. @see tape::addend_gradient
template <bool Extreme, bool Product>
struct FromLocal {
  static constexpr const char* name = "from_local";
  static constexpr unsigned gradient_reads = Extreme || Product ? 1 : 0;  // the result
  template <class G, class Y, class X>
    requires is_dtensor<G>
  static auto gradient(wrt<0>, const G& g, const Y& y, const X& x) {
    if (!y.mesh().is_member()) return zeros_like(x);
    return tape::addend_gradient<Extreme, Product>(g.to_local(), y.to_local(), y.actual_layout(),
                                                   y.shape(), y.mesh().state());
  }
};

/// A whole array as the parts that the ranks of a mesh own.
struct DistributeTensor {
  static constexpr const char* name = "distribute_tensor";
  static constexpr unsigned gradient_reads = 0;
  template <class G, class Y, class X>
    requires is_dtensor<G>
  static auto gradient(wrt<0>, const G& g, const Y&, const X& x) {
    constexpr auto everywhere = replicated_t<G::mesh_type::axis_count>{};
    const auto whole = g.redistribute(everywhere).to_local().to(typename X::device_type{});
    return whole.shape() == x.shape() ? whole : zeros_like(x);
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
  static_assert(!tape::nonlinear_ops(layout_of<Gradient, X::dims>).any(),
                "cleave: to_local: a gradient adds up; it may be Shard, Replicate, Partial<Sum> or "
                "Partial<Avg>");
  return tape::record(ops::ToLocal<Gradient>{}, x.value().to_local(), x);
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

namespace tape {

/// Records that y was made of `local`.
template <class Y, class X>
Tracked<Y> made_of(const Y& y, const Tracked<X>& local) {
  constexpr NonlinearOps pending = nonlinear_ops(Y::layout);
  return record(ops::FromLocal<pending.extreme, pending.product>{}, y, local);
}

}  // namespace tape

/// Makes one global value of local tensors that track gradients, in all forms of `from_local`.
///
/// The gradient of a rank's tensor is its part of the global gradient; where the value is Partial,
/// the derivative with respect to this rank's addend (see addend.hpp). With `run_check`, replicas
/// have the gradient of the value that replaced them.
///
/// @collective every rank of the mesh; in backward too, if an axis is Partial by max, min or
///             product, or if the gradient must be redistributed
/// @cost       in backward two all-reduces for each max, min or product, and one for each other
///             reduction that comes before one of these. These ops keep the local elements until
///             then; sums and averages keep nothing and do not communicate.
template <class X, class Mesh, class... P>
  requires is_tensor<X>
auto from_local(const Tracked<X>& local, const Mesh& mesh, Placements<P...> placements,
                FromLocalOptions options = {}) {
  return tape::made_of(from_local(local.value(), mesh, placements, options), local);
}
template <class X, class Mesh, class... P>
  requires is_tensor<X>
auto from_local(const Tracked<X>& local, const Mesh& mesh, Placements<P...> placements,
                const std::array<index_t, std::size_t(X::dims)>& shape,
                FromLocalOptions options = {}) {
  return tape::made_of(from_local(local.value(), mesh, placements, shape, options), local);
}

/// Distributes a tensor that tracks gradients, in all forms of `distribute_tensor`.
///
/// The ranks are assumed to pass the same array: in backward each receives the gradient of the
/// whole array. A rank outside the mesh, and one whose tensor was ignored because it has other
/// extents, receives zeros. To make a leaf whose gradient is placed as the array, distribute first:
/// `requires_grad(distribute_tensor(..))`.
/// @collective every rank of the mesh, in backward too
/// @cost       in backward an all-gather of the gradient over the sharding axes
template <class X, class Mesh, class... P>
auto distribute_tensor(const Tracked<X>& x, const Mesh& mesh, Placements<P...> placements) {
  const auto y = distribute_tensor(x.value(), mesh, placements);
  if constexpr (is_dtensor<X>) return x;
  else return tape::record(ops::DistributeTensor{}, y, x);
}

/// The whole value on every rank. All ranks must use it in the same way, so that its gradient is
/// the same on every rank.
///
/// @collective every rank of the mesh
template <class X>
  requires is_dtensor<X>
auto full_tensor(const Tracked<X>& x) {
  constexpr auto everywhere = replicated_t<X::mesh_type::axis_count>{};
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
  return x.to_local();
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

}  // namespace cleave::inline v0
