// parallelize_module: applies a plan of parallel styles to a module; the placements of the
// parameters are part of the resulting type.
//
//     const auto model = parallelize_module(gpt, mesh, tp{},
//         on("blocks.*.mlp.up"_path, ColwiseParallel{}), on("blocks.*.mlp.down"_path,
//         RowwiseParallel{}));
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/parallel/parallelize_plan.hpp>
#include <cleave/parallel/styles.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The random state of this rank of a mesh's world.
template <class Mesh>
RandomState& random_state_of(const Mesh& mesh) {
  return cleave::detail::RankDraws::of(mesh.state().world()->state()).state;
}

/// Whether a module has parameters or buffers that are (OnMesh), or are not, on a mesh.
template <class M, bool OnMesh>
constexpr bool has_tensors() {
  return nn::contains<M>([]<class P>(std::type_identity<P>) {
    if constexpr (nn::is_buffer<P>) return has_tensors<decltype(P::value), OnMesh>();
    else if constexpr (nn::Param<P>) return is_dtensor<innermost_t<P>> == OnMesh;
    else return false;
  });
}

/// Applies a plan: the styles of the parts of a module before the style of the module.
template <class M, class Al, class... E>
struct PlanWalk {
  static constexpr const auto& tree = nn::tree_of<M>;
  static constexpr const auto& choice = PlanFor<M, typename Al::axis, E...>::choice;

  const Al& along;
  const std::tuple<E...>& entries;

  template <int Node, bool LeavesParameters, class X>
  auto at(const X& x) const {
    constexpr int entry = choice.entry[std::size_t(Node)];
    if constexpr (entry >= 0)
      return styled_by(std::get<std::size_t(entry)>(entries).style, inside<Node>(x));
    else if constexpr (nn::is_touched(choice, tree, Node)) return inside<Node>(x);
    else if constexpr (LeavesParameters) return x;
    else return rest(x);
  }

 private:
  template <class Style, class X>
  auto styled_by(const Style& style, const X& x) const {
    constexpr bool is_style = std::is_invocable_v<const Style&, const X&, const Al&>;
    static_assert(is_style,
                  "cleave: an entry of the plan is not a style: a style is called with a module "
                  "and the mesh with its axis, (const auto& m, const auto& along) -> module, such "
                  "as ColwiseParallel{}");
    if constexpr (is_style) return rest(style(x, along));
    else return x;
  }
  template <class X>
  auto rest(const X& x) const {
    if constexpr (has_tensors<X, false>()) return along.rest(x);
    else return x;
  }
  /// Applies the plan to the parts of a module; leaves parameters to the module's style, if any.
  template <int Node, class X>
  auto inside(const X& x) const {
    if constexpr (nn::Wrapper<X>) {
      return x.rewrap(inside<Node>(static_cast<const typename X::wrapped&>(x)));
    } else if constexpr (nn::Inner<X>) {
      return nn::map_parts(x, [&](const auto& part, auto i) {
        constexpr bool is_styled = choice.entry[std::size_t(Node)] >= 0;
        return at<nn::child(tree, Node, decltype(i)::value), is_styled>(part);
      });
    } else {
      return x;
    }
  }
};

}  // namespace detail

/// Applies the styles of a plan to a module, along one axis of the mesh. Other parameters, and
/// buffers, become Replicate on the whole mesh; those that are on a mesh already do not change.
///
/// Uninitialised parameters get the same elements as on one device, in whatever order styles
/// initialise them. A style is applied to a module after the styles of its parts.
///
/// @param entries  `on("a.*.b"_path, style)`; without any, all parameters become Replicate
/// @collective     every rank of the world
template <nn::Struct M, class Device, Axis... Axes, Axis A, class... P, class... S>
auto parallelize_module(const M& m, const DeviceMesh<Device, Axes...>& mesh, A,
                        On<P, S>... entries) {
  using Checked = detail::PlanFor<M, A, On<P, S>...>;
  if constexpr (!Checked::is_right) {
    Checked::explain();
    return m;
  } else {
    using Al = Along<DeviceMesh<Device, Axes...>, A>;
    const Al along{mesh};
    const std::tuple<On<P, S>...> all(std::move(entries)...);
    const M numbered = nn::with_draws(m, detail::random_state_of(mesh));
    return detail::PlanWalk<M, Al, On<P, S>...>{along, all}.template at<0, false>(numbered);
  }
}
/// Applies one style to the module itself. The axis may be omitted for a mesh of one axis, for
/// example `mesh[tp{}]`, with a plan too.
template <nn::Struct M, class Device, Axis... Axes, class First, class... Rest>
  requires(!Axis<First> || !(is_plan_entry<Rest> && ...))
auto parallelize_module(const M& m, const DeviceMesh<Device, Axes...>& mesh, First first,
                        Rest... rest) {
  if constexpr (!Axis<First>) {
    constexpr bool is_clear = sizeof...(Axes) == 1;
    static_assert(is_clear,
                  "cleave: parallelize_module: the mesh has several axes; name the one along which "
                  "the styles apply: parallelize_module(m, mesh, tp{}, ..)");
    if constexpr (is_clear) return parallelize_module(m, mesh, Axes{}..., first, rest...);
  } else {
    constexpr bool is_plan = sizeof...(Rest) == 1;
    static_assert(is_plan,
                  "cleave: parallelize_module: a plan consists of on(path, style), or of "
                  "one style for the module itself; styles(a, b) combines several");
    if constexpr (is_plan)
      return parallelize_module(m, mesh, first, On<nn::Path<>, Rest>{std::move(rest)}...);
  }
}
template <nn::Struct M, class Device, Axis... Axes>
auto parallelize_module(const M& m, const DeviceMesh<Device, Axes...>& mesh) {
  return parallelize_module(m, mesh, detail::nth<0, Axes...>{});
}

}  // namespace cleave::inline v0
