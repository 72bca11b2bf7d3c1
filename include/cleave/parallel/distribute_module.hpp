// distribute_module: a function of the user places the parameters of each module of a tree.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/parallel/parallelize_module.hpp>
#include <cleave/parallel/prepared.hpp>

namespace cleave::inline v0 {

/// The path of a module in the tree of another one, as a constant; the elements of a vector are
/// called *.
template <class Root, int Node>
struct ModulePath {
  /// Whether the path matches a pattern: `if constexpr (path.fits("layers.*.up"_path))`.
  template <char... C>
  constexpr bool fits(nn::Path<C...>) const {
    return nn::leads_to(nn::Path<C...>::text, nn::tree_of<Root>, Node);
  }
};

namespace detail {

template <class Root, class Mesh, class F>
struct PartitionWalk {
  static constexpr const auto& tree = nn::tree_of<Root>;

  const Mesh& mesh;
  const F& partition;

  /// Partitions the parts of a module before the module.
  template <int Node, class M>
  auto at(const M& m) const {
    if constexpr (nn::Struct<M>) return parted(ModulePath<Root, Node>{}, inside<Node>(m));
    else return inside<Node>(m);
  }

 private:
  template <class P, class M>
  auto parted(P path, const M& m) const {
    constexpr bool fits = std::is_invocable_v<const F&, P, const M&, const Mesh&>;
    static_assert(fits,
                  "cleave: distribute_module: the partition function is called with a path, a "
                  "module and the mesh: [](auto path, const auto& part, const auto& mesh) { return "
                  "part; }");
    if constexpr (fits) return partition(path, m, mesh);
    else return m;
  }
  template <int Node, class M>
  auto inside(const M& m) const {
    if constexpr (nn::Wrapper<M>) {
      return m.rewrap(inside<Node>(static_cast<const typename M::wrapped&>(m)));
    } else if constexpr (nn::Inner<M>) {
      return nn::map_parts(m, [&](const auto& part, auto i) {
        return at<nn::child(tree, Node, decltype(i)::value)>(part);
      });
    } else {
      return m;
    }
  }
};

/// The hook of two user functions, input(mesh, x..) and output(mesh, y); either may be None.
template <class Mesh, class Input, class Output>
struct MeshHook {
  using mesh_type = Mesh;

  Mesh mesh;
  Input input;
  Output output_function;

  template <class... X>
  auto inputs(const X&... x) const {
    constexpr bool is_none = std::is_same_v<Input, nn::None>;
    constexpr bool fits = is_none || std::is_invocable_v<const Input&, const Mesh&, const X&...>;
    static_assert(fits,
                  "cleave: distribute_module: the input function is called with the mesh and the "
                  "inputs of the module: [](const auto& mesh, const auto& x) { return x; }");
    if constexpr (is_none || !fits) return std::tuple<X...>(x...);
    else return as_tuple(input(mesh, x...));
  }
  template <class Y>
  auto output(const Y& y) const {
    constexpr bool is_none = std::is_same_v<Output, nn::None>;
    constexpr bool fits = is_none || std::is_invocable_v<const Output&, const Mesh&, const Y&>;
    static_assert(fits,
                  "cleave: distribute_module: the output function is called with the mesh and the "
                  "result of the module: [](const auto& mesh, const auto& y) { return y; }");
    if constexpr (is_none || !fits) return y;
    else return output_function(mesh, y);
  }

 private:
  template <class X>
  static auto as_tuple(const X& x) {
    if constexpr (nn::is_tuple<X>) return x;
    else return std::tuple<X>(x);
  }
};

}  // namespace detail

/// Distributes a module over a mesh with its parameters as a function places them; the remaining
/// parameters, and buffers, become Replicate.
///
///     distribute_module(m, mesh, [](auto path, const auto& part, const auto& mesh) {
///       if constexpr (path.fits("layers.*.up"_path)) return nn::place(part, mesh, Shard<0>{});
///       else return part;
///     });
///
/// @param partition  (path, module, mesh) -> module, or None; called for every module, after those
///                   inside it; path is a ModulePath
/// @param input      (mesh, x..) -> the input of the module, or a tuple of inputs; or None
/// @param output     (mesh, y) -> the result of a call; or None
/// @collective       every rank of the world
template <nn::Struct M, class Device, class... A, class Partition = nn::None,
          class Input = nn::None, class Output = nn::None>
auto distribute_module(const M& m, const DeviceMesh<Device, A...>& mesh,
                       const Partition& partition = {}, Input input = {}, Output output = {}) {
  constexpr bool is_distributed = detail::has_tensors<M, true>();
  if constexpr (is_distributed) {
    static_assert(!is_distributed, "cleave: distribute_module: the module is distributed already");
    return m;
  } else {
    using Mesh = DeviceMesh<Device, A...>;
    const M numbered = nn::with_draws(m, detail::random_state_of(mesh));
    const auto parted = [&] {
      if constexpr (std::is_same_v<Partition, nn::None>) return numbered;
      else
        return detail::PartitionWalk<M, Mesh, Partition>{mesh, partition}.template at<0>(numbered);
    };
    auto placed = Along<Mesh, detail::nth<0, A...>>{mesh}.rest(parted());
    if constexpr (std::is_same_v<Input, nn::None> && std::is_same_v<Output, nn::None>)
      return placed;
    else {
      using Hook = detail::MeshHook<Mesh, Input, Output>;
      return Prepared<decltype(placed), Hook>(std::move(placed),
                                              Hook{mesh, std::move(input), std::move(output)});
    }
  }
}

}  // namespace cleave::inline v0
