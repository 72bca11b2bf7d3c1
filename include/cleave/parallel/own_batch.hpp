// Calls of a data-parallel module with the batch of one rank: a Tensor, or a DTensor on a mesh
// without the data-parallel axis. The call computes with this rank's replicas of the parameters.
//
//     model(x)    x on the axis: one global batch; gradients are summed over the ranks
//     model(x)    x not on it: each rank has its own batch; the gradients are averaged
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <cleave/grad/tracked.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/tree.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/parallel/sliced_mesh.hpp>

namespace cleave::inline v0::parallel {

/// Instead of a mesh: the inputs of a call are on the mesh of the parameters.
struct WholeBatch {};
inline constexpr WholeBatch whole_batch{};

/// Whether styles or functions on a mesh with this axis arrange the inputs of M or of its parts:
/// they place Tensors on that mesh.
template <class A, class M>
constexpr bool places_inputs() {
  return nn::contains<M>([]<class P>(std::type_identity<P>) {
    if constexpr (requires { typename P::hook_type::mesh_type; })
      return has_axis<typename P::hook_type::mesh_type, A>;
    else return false;
  });
}

template <class X>
inline constexpr bool has_mesh = is_dtensor<cleave::detail::innermost_t<X>>;
template <class A, class X>
constexpr bool is_on_axis() {
  if constexpr (has_mesh<X>) return has_axis<typename cleave::detail::innermost_t<X>::mesh_type, A>;
  else return false;
}

template <class First, class... Rest>
const auto& first_mesh(const First& first, const Rest&... rest) {
  if constexpr (has_mesh<First>) return cleave::detail::innermost(first).mesh();
  else return first_mesh(rest...);
}

/// The mesh on which module M computes with these inputs: WholeBatch for that of its parameters; a
/// mesh without the axis A, or NoMesh, if each rank of the axis passes its own batch.
/// @param inner  the mesh of the parameters without the axis, where Tensors are used
template <class A, class M, class Inner, class... X>
const auto& batch_mesh(const Inner& inner, const X&... x) {
  if constexpr ((is_on_axis<A, X>() || ...)) return whole_batch;
  else if constexpr ((has_mesh<X> || ...)) return first_mesh(x...);
  else if constexpr ((is_tensor<cleave::detail::innermost_t<X>> || ...) && !places_inputs<A, M>())
    return inner;
  else return whole_batch;
}

/// For each axis of a mesh, its position in the mesh On, or -1.
template <class On, class Device, class... Axes>
constexpr auto positions_in(const DeviceMesh<Device, Axes...>*) {
  return []<class... B>(const DeviceMesh<Device, B...>*) {
    constexpr auto at = [](int i) { return i < int(sizeof...(B)) ? i : -1; };
    return std::array<int, sizeof...(Axes)>{at(cleave::detail::axis_index<Axes, B...>())...};
  }(static_cast<const On*>(nullptr));
}
template <std::same_as<NoMesh> On, class Device, class... Axes>
constexpr auto positions_in(const DeviceMesh<Device, Axes...>*) {
  std::array<int, sizeof...(Axes)> none{};
  none.fill(-1);
  return none;
}

/// A DTensor X as a rank sees it on a mesh On that lacks some of its axes, on which it is
/// replicated: a DTensor on that mesh, or a Tensor for NoMesh.
template <class X, class On>
struct OwnPart {
  using Mesh = typename X::mesh_type;
  static constexpr auto there = positions_in<On>(static_cast<const Mesh*>(nullptr));
  static constexpr int axes = Mesh::axis_count;
  static constexpr int kept = [] {
    int count = 0;
    for (const int at : there) count += int(at >= 0);
    return count;
  }();
  static constexpr AxisMask lacking = [] {
    AxisMask mask = 0;
    for (int a = 0; a < axes; ++a)
      if (there[std::size_t(a)] < 0) mask |= AxisMask(1) << a;
    return mask;
  }();
  /// Whether a part can be taken once X is unsharded over these axes.
  static constexpr bool fits_without(AxisMask axes_of_shards) {
    const AxisMask sharding = X::layout.sharding_axes() | X::layout.partial_axes();
    if constexpr (!std::is_same_v<On, NoMesh>)
      if (On::axis_count != kept) return false;
    return (sharding & lacking & ~axes_of_shards) == 0;
  }

  static constexpr Layout layout = [] {
    Layout own = Layout::replicated(kept);
    for (int a = 0; a < axes; ++a)
      if (const int at = there[std::size_t(a)]; at >= 0) own[at] = X::layout[a];
    return own;
  }();
  /// A gradient's layout on X's mesh, from that on the other one: on the lacking axes a rank has an
  /// addend.
  static constexpr Layout widened(const Layout& own) {
    Layout wide = X::layout;
    for (int a = 0; a < axes; ++a) {
      const int at = there[std::size_t(a)];
      wide[a] = at >= 0 ? own[at] : Placement::partial(ReduceOp::sum);
    }
    return wide;
  }
  template <class G>
  struct Widened {
    static constexpr Layout layout = [] {
      if constexpr (is_dtensor<G>) return widened(G::layout);
      else return widened({});
    }();
  };

  static auto of(const typename X::local_type& local, const typename X::Extents& shape,
                 const On& on) {
    if constexpr (std::is_same_v<On, NoMesh>) {
      return local;
    } else {
      using Y = DTensor<typename X::value_type, X::dims, On, placements_t<OwnPart>>;
      return Y::unchecked(local, on, shape);
    }
  }
  using type = decltype(of(std::declval<const typename X::local_type&>(),
                           std::declval<const typename X::Extents&>(), std::declval<const On&>()));

  /// This rank's addend to the average over the lacking axes.
  template <class G>
  static G addend(const G& gradient, const Mesh& mesh) {
    const index_t ranks = mesh.state().size(lacking);
    if (ranks == 1) return gradient;
    return gradient * (1.0 / double(ranks));
  }
};

template <class X>
struct OwnPart<X, WholeBatch> {
  using type = X;
  static constexpr Layout widened(const Layout& layout) { return layout; }
  template <class G, class Mesh>
  static const G& addend(const G& gradient, const Mesh&) {
    return gradient;
  }
};

/// The part of a rank; its gradient is one addend of an average.
template <class On>
struct TakeOwnPart {
  static constexpr const char* name = "own_part";
  static constexpr unsigned gradient_reads = 0;
  template <class G, class Y, class X>
    requires is_dtensor<X>
  static auto gradient(wrt<0>, const G& g, const Y&, const X& x) {
    using Own = OwnPart<X, On>;
    const auto local = [&g] {
      if constexpr (is_dtensor<G>) return g.to_local();
      else return g;
    }();
    using Wide = DTensor<typename X::value_type, X::dims, typename X::mesh_type,
                         placements_t<typename Own::template Widened<G>>>;
    return Wide::unchecked(Own::addend(local, x.mesh()), x.mesh(), x.shape());
  }
};

/// A parameter or buffer for a call on the mesh `on`. @collective none
template <class P, class On>
auto own_part(const P& x, const On& on) {
  using X = tape::untracked_t<P>;
  if constexpr (!is_dtensor<X> || std::is_same_v<On, WholeBatch>) {
    return x;
  } else if constexpr (std::is_same_v<typename X::mesh_type, On>) {
    return x;
  } else if constexpr (!OwnPart<X, On>::fits_without(0)) {
    static_assert(OwnPart<X, On>::fits_without(0),
                  "cleave: a parameter that is sharded over the axis of a data-parallel module is "
                  "used with this rank's own batch; shard it by fully_shard");
    return x;
  } else if constexpr (tape::is_tracked<P>) {
    return tape::record(TakeOwnPart<On>{}, own_part(x.value(), on), x);
  } else {
    return OwnPart<X, On>::of(x.to_local(), x.shape(), on);
  }
}

/// Whether a module can be called with a batch on the mesh On. Parameters that are sharded over the
/// axis A are gathered first.
template <class A, class M, class On>
constexpr bool takes_batch_on() {
  return !nn::contains<M>([]<class P>(std::type_identity<P>) {
    if constexpr (nn::is_lazy<P> || !nn::Param<P> || std::is_same_v<On, WholeBatch>) {
      return false;
    } else if constexpr (!has_mesh<P>) {
      return false;
    } else {
      using X = cleave::detail::innermost_t<P>;
      if constexpr (std::is_same_v<typename X::mesh_type, On>) return false;
      else
        return !OwnPart<X, On>::fits_without(
            cleave::detail::is_sharded_over<P, A>() ? X::layout.sharding_axes() : 0u);
    }
  });
}

}  // namespace cleave::inline v0::parallel
