// A mesh and one of its axes, to which a parallel style is applied.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/nn/parameter_placements.hpp>
#include <cleave/nn/place.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The placements of X with P on axis A. If they differ from those of X, Partial on other axes
/// becomes Replicate, because Partial cannot be requested.
template <class X, int A, class P>
constexpr Layout layout_on_axis() {
  using Traits = PlacementTraits<P>;
  static_assert(Traits::valid && Traits::fits(X::dims),
                "cleave: a style shards a dimension that the tensor does not have");
  Layout layout = X::layout;
  if (layout[A] == Traits::value(X::dims)) return layout;
  layout = layout.with_partials_as(Placement::replicate());
  layout[A] = Traits::value(X::dims);
  return layout;
}
template <class X, int A, class P>
struct LayoutOnAxis {
  static constexpr Layout layout = layout_on_axis<X, A, P>();
};
template <class X, int A, class P>
using on_axis = placements_t<LayoutOnAxis<X, A, P>>;

/// Whether X is a tensor on a mesh that is sharded over the axis A.
template <class X, class A>
constexpr bool is_sharded_over() {
  using Value = innermost_t<X>;
  if constexpr (is_dtensor<Value>)
    return Value::layout[Value::mesh_type::template index_of<A>()].shards();
  else return false;
}

template <class T>
inline constexpr bool is_types = false;
template <class... T>
inline constexpr bool is_types<Types<T...>> = true;

template <int I, class... T>
using nth = std::tuple_element_t<std::size_t(I), std::tuple<T...>>;

}  // namespace detail

/// Redistributes x to P on one axis of its mesh; returns x if it has this placement already.
///
/// @collective every rank of the mesh, unless x is returned
template <Axis A, AnyTensor X, class P>
auto bring(const X& x, A, P) {
  using V = detail::innermost_t<X>;
  using To = detail::on_axis<V, V::mesh_type::template index_of<A>(), P>;
  if constexpr (std::is_same_v<To, typename V::placements_type>) return x;
  else return redistribute(x, To{});
}

/// A mesh and one of its axes.
template <class Mesh, Axis A>
struct Along {
  using mesh_type = Mesh;
  using axis = A;
  static constexpr int index = Mesh::template index_of<A>();

  explicit Along(Mesh on, A = {}) : mesh(std::move(on)) {}

  Mesh mesh;

  /// Places a parameter with P on this axis. On other axes it keeps its placements, or gets
  /// Replicate if it is not on a mesh yet.
  /// @collective every rank of the world
  template <nn::Param X, class P>
  auto place(const X& x, P p) const {
    using V = detail::innermost_t<X>;
    if constexpr (!is_dtensor<V>) {
      using Whole = DTensor<typename X::value_type, X::dims, Mesh, replicated_t<Mesh::axis_count>>;
      return placed(x, detail::on_axis<Whole, index, P>{});
    } else if constexpr (!std::is_same_v<typename V::mesh_type, Mesh>) {
      static_assert(std::is_same_v<typename V::mesh_type, Mesh>,
                    "cleave: the parameters are on another mesh than the style's");
      return x;
    } else if constexpr (!V::layout[index].is_replicate()) {
      static_assert(V::layout[index].is_replicate(),
                    "cleave: a parameter is sharded along this axis already");
      return x;
    } else if constexpr (tape::is_tracked<X>) {
      return requires_grad(place(x.value(), p));
    } else {
      return bring(x, A{}, p);
    }
  }

  /// Places the parameters and buffers of a module that are not on a mesh yet, as Replicate.
  /// @collective every rank of the world
  template <class M>
  auto rest(const M& m) const {
    const auto one = [&](const auto& x) {
      if constexpr (is_dtensor<detail::innermost_t<std::remove_cvref_t<decltype(x)>>>) return x;
      else return nn::place(x, mesh);
    };
    return nn::map_tensors(m, one, one);
  }

  /// Places the parameters of a layer as a Cut says.
  /// @collective every rank of the world
  template <class M, class Input, class... P>
  auto cut(const M& m, nn::Cut<Input, P...> how) const {
    if constexpr (nn::Wrapper<M>) {
      return m.rewrap(cut(static_cast<const typename M::wrapped&>(m), how));
    } else {
      static_assert(nn::MembersOf<M>::value.size == int(sizeof...(P)),
                    "cleave: a Cut has a placement of the input, then one per member");
      return nn::map_parts(m, [&](const auto& x, auto i) {
        using X = std::remove_cvref_t<decltype(x)>;
        if constexpr (nn::Param<X>) return place(x, detail::nth<decltype(i)::value, P...>{});
        else return x;
      });
    }
  }

 private:
  template <class X, class... P>
  auto placed(const X& x, Placements<P...>) const {
    return nn::place(x, mesh, P{}...);
  }
};
template <class Device, Axis A>
Along(DeviceMesh<Device, A>) -> Along<DeviceMesh<Device, A>, A>;

}  // namespace cleave::inline v0
