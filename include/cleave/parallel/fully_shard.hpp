// fully_shard: shards parameters, gradients and optimizer state over an axis of the mesh.
//
//     const auto model = requires_grad(fully_shard(gpt, mesh, dp{}, "blocks.*"_path));
//
// The parameters of each chosen module form a group; the remaining parameters form another one. One
// all-gather unshards a group before it is used, and it is resharded afterwards; in backward the
// same happens again if gradients read it. One reduce-scatter reduces its gradients. While a group
// computes, the next one is prefetched.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/nn/place.hpp>
#include <cleave/nn/tree.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/parallel/module_number.hpp>
#include <cleave/parallel/separate_members.hpp>
#include <cleave/parallel/sharded_module.hpp>
#include <cleave/parallel/sliced_mesh.hpp>

namespace cleave::inline v0 {

/// Whether to reshard parameters after forward: true frees the unsharded parameters, false keeps
/// them until backward. A number n reshards them to n neighbouring ranks of the axis, such as those
/// of a node, which all-gather them among themselves in backward.
class Reshard {
 public:
  template <std::integral T>
  constexpr Reshard(T after_forward)
      : is_all_(std::is_same_v<T, bool> && after_forward),
        ranks_(std::is_same_v<T, bool> ? 1 : index_t(after_forward)) {}

  /// The number of neighbours that share the unsharded parameters. @param all  ranks of the axis
  constexpr index_t keepers(index_t all) const { return is_all_ ? all : std::min(all, ranks_); }

 private:
  bool is_all_;
  index_t ranks_;
};

/// Mixed precision, resharding and prefetching of a fully sharded module.
///
/// @tparam Compute  element type in which parameters are gathered, and to which floating-point
///                  inputs are cast; void: that of the stored parameters
/// @tparam Reduce   element type in which gradients are reduced over ranks; void: as gathered
/// @tparam Output   element type to which the results of groups are cast; void: no cast
template <class Compute = void, class Reduce = void, class Output = void>
struct FullyShardOptions {
  using compute_type = Compute;
  using reduce_type = Reduce;
  using output_type = Output;

  Reshard reshard_after_forward = true;
  bool prefetch = true;  ///< all-gather the next group while one computes
};

namespace parallel {

template <class X>
inline constexpr bool is_options = false;
template <class... T>
inline constexpr bool is_options<FullyShardOptions<T...>> = true;

/// The dimension to shard over an axis so that an all-gather involves this axis only: the first
/// that no axis shards; else the first that only earlier axes shard, whose parts are divided
/// further; else -1.
constexpr int dim_to_shard(const Layout& layout, int dims, int axis) {
  const auto is_free = [&](int d, int from) { return layout.sharding_axes(d) >> from == 0; };
  for (int d = 0; d < dims; ++d)
    if (is_free(d, 0)) return d;
  for (int d = 0; d < dims; ++d)
    if (is_free(d, axis)) return d;
  return -1;
}

/// The layout of a parameter before sharding; Replicate if it is not on a mesh.
template <class X, class Mesh>
constexpr Layout layout_before() {
  if constexpr (is_dtensor<X>) return X::layout;
  else return Layout::replicated(Mesh::axis_count);
}

template <class X, int Axis, class Mesh>
struct LayoutAfter {
  static constexpr Layout layout = [] {
    Layout after = layout_before<X, Mesh>();
    const int dim = dim_to_shard(after, X::dims, Axis);
    if (dim >= 0) after[Axis] = Placement::shard(dim);
    return after;
  }();
};

template <class X, class Mesh, class... P>
auto place_as(const X& x, const Mesh& mesh, Placements<P...>) {
  return nn::detail::place_parameter(x, mesh, P{}...);
}

/// Shards a parameter over the axis; it stays Replicate there if no dimension can be sharded.
template <int Axis, class P, class Mesh>
auto shard_parameter(const P& parameter, const Mesh& mesh) {
  using X = tape::untracked_t<P>;
  constexpr Layout before = layout_before<X, Mesh>();
  static_assert(!before[Axis].shards(),
                "cleave: fully_shard: a parameter is sharded on this axis already");
  static_assert(!before.has_partial(), "cleave: fully_shard: a parameter is Partial");
  return place_as(parameter, mesh, placements_t<LayoutAfter<X, Axis, Mesh>>{});
}

/// The parameters of a group, without those of groups inside it.
struct GroupTypes {
  int parameters = 0;  ///< that the axis shards
  DType element = DType::float32;
  bool is_mixed = false;
};
template <class M, class A>
constexpr void add_types(GroupTypes& types) {
  if constexpr (nn::Param<M>) {
    if constexpr (cleave::detail::is_sharded_over<M, A>()) {
      constexpr DType element = dtype_of<typename M::value_type>();
      if (types.parameters++ == 0) types.element = element;
      types.is_mixed = types.is_mixed || types.element != element;
    }
  } else if constexpr (!is_fully_sharded<M>) {
    nn::detail::each_part_type<M>(
        [&]<class Part>(const char*, Part*) { add_types<Part, A>(types); });
  }
}
template <class M, class A>
constexpr GroupTypes group_types() {
  GroupTypes types;
  add_types<M, A>(types);
  return types;
}

template <class T, class Otherwise>
using type_or = std::conditional_t<std::is_void_v<T>, Otherwise, T>;

/// Makes parameter groups of modules whose parameters are sharded over the axis A.
template <class A, class Mesh, class Inner, class Options>
struct MakeGroups {
  Mesh mesh;
  Inner inner;
  Options options;
  std::shared_ptr<GroupOrder> order;
  static constexpr int axis = Mesh::template index_of<A>();

  /// Makes groups of the modules at the paths, and of the remaining parameters of m.
  template <class... Paths, class M>
  auto all(const M& m) const {
    auto parts = chosen<M, 0, Paths...>(m);
    if constexpr (group_types<decltype(parts), A>().parameters > 0) return group(parts);
    else return parts;
  }

 private:
  /// Makes one group of the module. @collective every rank of the mesh
  template <class M>
  auto group(const M& m) const {
    constexpr GroupTypes types = group_types<M, A>();
    static_assert(types.parameters > 0,
                  "cleave: fully_shard: a chosen module has no parameter that the axis can shard");
    static_assert(!types.is_mixed,
                  "cleave: fully_shard: the parameters of a group must have one element type; put "
                  "modules of other types into groups of their own");
    using T = element_t<types.element>;
    using C = type_or<typename Options::compute_type, T>;
    using R = type_or<typename Options::reduce_type, C>;
    using Group = ShardedGroup<typename Mesh::device_type, T, C, R>;
    const auto group = std::make_shared<Group>(mesh, axis, order);
    static_cast<void>(map_own(m, [&](const auto& x) {
      using X = std::remove_cvref_t<decltype(x)>;
      Layout whole = X::layout;
      whole[axis] = Placement::replicate();
      group->layout.add(local_shape(whole, Shape(x.shape()), mesh.extents(), mesh.coordinate()),
                        X::layout[axis].dim);
      return x;
    }));
    group->allocate();
    group->keep_among(options.reshard_after_forward.keepers(group->layout.ranks()));
    std::size_t i = 0;
    auto sharded = map_own(m, [&](const auto& x) {
      using X = std::remove_cvref_t<decltype(x)>;
      const auto local =
          X::local_type::adopt(group->part(i++), x.to_local().shape(), group->storage());
      local.copy_(x.to_local());
      return X::unchecked(local, x.mesh(), x.shape());
    });
    return FullySharded<decltype(sharded), Group, A, Options, Inner>(std::move(sharded), group,
                                                                     inner);
  }

  /// Makes groups of the chosen modules at and below a node of the tree.
  template <class Root, int Node, class... Paths, class M>
  auto chosen(const M& m) const {
    constexpr auto choice = nn::choose(nn::tree_of<Root>, {Paths::text...});
    if constexpr (!nn::is_touched(choice, nn::tree_of<Root>, Node)) {
      return m;
    } else if constexpr (nn::Wrapper<M>) {
      return m.rewrap(chosen<Root, Node, Paths...>(static_cast<const typename M::wrapped&>(m)));
    } else {
      const auto parts = nn::map_parts(m, [this](const auto& part, auto k) {
        return this->template chosen<Root, nn::child(nn::tree_of<Root>, Node, decltype(k)::value),
                                     Paths...>(part);
      });
      if constexpr (choice.entry[std::size_t(Node)] >= 0) return group(parts);
      else return parts;
    }
  }

  /// Replaces each parameter of the module's own group that the axis shards by f(value).
  template <class M, class F>
  static auto map_own(const M& m, const F& f) {
    return map_group(m, [&f](const auto& x) {
      using X = std::remove_cvref_t<decltype(x)>;
      if constexpr (!cleave::detail::is_sharded_over<X, A>()) return x;
      else if constexpr (tape::is_tracked<X>) return requires_grad(f(x.value()));
      else return f(x);
    });
  }
};

template <class P>
inline constexpr bool is_path = false;
template <char... C>
inline constexpr bool is_path<nn::Path<C...>> = true;

template <class A, class... Paths, class M, class Mesh, class Inner, class Options>
auto in_groups(const M& m, const Mesh& mesh, const Inner& inner, const Options& options) {
  const auto sharded = nn::map_tensors(
      m, [&](const auto& x) { return shard_parameter<Mesh::template index_of<A>()>(x, mesh); },
      [&](const auto& x) {
        if constexpr (is_dtensor<std::remove_cvref_t<decltype(x)>>) return x;
        else return nn::detail::place_as_asked(x, mesh);
      });
  const auto order = std::make_shared<GroupOrder>();
  order->prefetches = options.prefetch;
  order->module_number = next_module_number(mesh.state());
  const MakeGroups<A, Mesh, Inner, Options> make{mesh, inner, options, order};
  auto grouped = make.template all<Paths...>(sharded);
  nn::visit_wrappers(grouped, [&](const auto& part) {
    if constexpr (is_fully_sharded<std::remove_cvref_t<decltype(part)>>) order->add(part.group);
  });
  return grouped;
}

template <class M, class... Paths>
constexpr bool are_chosen() {
  constexpr auto choice = nn::choose(nn::tree_of<M>, {Paths::text...});
  constexpr bool is_plain =
      !nn::contains<M>([]<class P>(std::type_identity<P>) { return is_fully_sharded<P>; });
  static_assert(
      is_plain,
      "cleave: fully_shard: the module, or a part of it, is fully sharded already; to shard "
      "over several axes, flatten them into one");
  static_assert(choice.unmatched < 0,
                "cleave: fully_shard: a path leads to no module; elements of a std::vector are *");
  static_assert(choice.twice < 0, "cleave: fully_shard: two paths lead to one module");
  return is_plain && choice.unmatched < 0 && choice.twice < 0;
}
template <class M, class Mesh, class A, class... Paths>
constexpr bool is_ready_for_groups() {
  constexpr bool fits = match_mesh<M, Mesh, A>() != MeshMatch::none;
  static_assert(
      fits,
      "cleave: fully_shard: a parameter is on another mesh; pass the mesh of the "
      "parameters, or slices of one mesh: mesh[tp{}] for the parameters, mesh[dp{}] here");
  constexpr bool has_paths = (is_path<Paths> && ...);
  static_assert(has_paths,
                "cleave: fully_shard: options come first, then paths, which are constants: "
                "\"blocks.*\"_path");
  if constexpr (fits && has_paths) return are_chosen<M, Paths...>();
  else return false;
}

}  // namespace parallel

/// Shards the parameters of a module over an axis of the mesh; each group of parameters is
/// all-gathered where it is used.
///
/// A parameter is sharded along its first dimension that no axis shards, else along the first that
/// only earlier axes shard, else it stays Replicate on the axis. A Lazy is initialised in its
/// placement, a Tensor is taken from the mesh's first rank; other axes keep their placements, or
/// get Replicate. Buffers that are not on a mesh become Replicate.
///
/// @tparam A      the axis of the mesh, over which the parameters must be Replicate
/// @tparam Paths  of the modules that form separate groups: `"blocks.*"_path`; the remaining
///                parameters form one group of the whole module
/// With a slice `mesh[dp{}]`, parameters on another slice, such as `mesh[tp{}]`, move to the mesh
/// of both. For the meaning of gradients in calls with a rank's own batch see `replicate`.
///
/// @collective   every rank of the world; with a slice, every rank of the mesh that it belongs to
/// @throws Error  if two parameters share elements, or are on another mesh
template <class M, class Device, Axis... Axes, Axis A, class... T, class... Paths>
auto fully_shard(const M& m, const DeviceMesh<Device, Axes...>& mesh, A,
                 const FullyShardOptions<T...>& options, Paths...) {
  if constexpr (!parallel::is_ready_for_groups<M, DeviceMesh<Device, Axes...>, A, Paths...>()) {
    return m;
  } else {
    parallel::require_separate_members("fully_shard", m);
    return parallel::on_common_mesh<A>(
        "fully_shard", m, mesh, [&](const auto& on_slices, const auto& common, const auto& inner) {
          return parallel::in_groups<A, Paths...>(on_slices, common, inner, options);
        });
  }
}
/// The same without options, and the same over the only axis of a mesh, for example `mesh[dp{}]`.
template <class M, class Device, Axis... Axes, class... Rest>
auto fully_shard(const M& m, const DeviceMesh<Device, Axes...>& mesh, Rest... rest) {
  using First = std::tuple_element_t<0, std::tuple<Rest..., void>>;
  if constexpr (Axis<First>) {
    return [&]<class A, class... Paths>(A axis, Paths... paths) {
      return fully_shard(m, mesh, axis, FullyShardOptions<>{}, paths...);
    }(rest...);
  } else {
    constexpr bool is_clear = sizeof...(Axes) == 1;
    static_assert(is_clear,
                  "cleave: fully_shard: the mesh has several axes; name the one over which "
                  "parameters are sharded: fully_shard(m, mesh, dp{})");
    if constexpr (is_clear) return fully_shard(m, mesh, Axes{}..., rest...);
  }
}

}  // namespace cleave::inline v0
