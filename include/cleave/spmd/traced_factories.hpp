// Factories inside of traced functions. They take the mesh of a traced value, as they take that of
// a DTensor:
//
//     const auto step = [](const auto& x) { return add(x, full<float>({4}, 2, x.mesh())); };
//
// Without placements the array is Replicate, in calls on DTensors, too. The expansion makes it
// under the placements that its users require: each rank computes only what it needs, and nothing
// is redistributed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cleave/dtensor/arange.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/ops/shapes/zeros_like.hpp>
#include <cleave/spmd/factory_op.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0 {

namespace spmd::detail {

/// A node without operands, whose request is not set.
template <class T, int Rank, class Device, class F>
constexpr Node factory_node(const char* name, const F& f) {
  Node node;
  node.op = &FactoryInfo<F, T, Rank, Device>::value;
  node.name = name;
  node.attributes = Attributes::of(f);
  return node;
}

/// Appends a factory to a graph.
template <class T, int Rank, class Device>
constexpr Traced<T, Rank, Device> append_factory(Graph& graph, Node node, const Shape& shape) {
  node.first = graph.add({int(graph.nodes.size()), 0, -1, dtype_of<T>(), shape, false});
  graph.nodes.push_back(node);
  return {graph, node.first};
}

/// @throws Error if an extent is negative
template <class T, std::size_t Rank, class Device, class F, class... P>
constexpr auto traced_factory(const char* name, const F& f, const index_t (&extents)[Rank],
                              const TracedMesh<Device>& mesh, P...) {
  constexpr bool are_placements = (PlacementType<P> && ...);
  static_assert(Rank <= std::size_t(max_dims), "cleave: a tensor has 0 to 8 dimensions");
  static_assert(are_placements,
                "cleave: a factory takes placements: Shard<dim>{} or Replicate{}; they are types, "
                "so a program that chooses at run time branches between calls");
  cleave::detail::checked_bytes(extents, int(Rank), sizeof(T));
  Node node = factory_node<T, int(Rank), Device>(name, f);
  if constexpr (are_placements && sizeof...(P) > 0) {
    node.asks = true;
    ((node.asked[node.asked.axes++] = cleave::detail::PlacementTraits<P>::value(int(Rank))), ...);
  }
  return append_factory<T, int(Rank), Device>(mesh.graph(), node, Shape(std::to_array(extents)));
}

template <class T, std::size_t Rank, class Device, class F, class... P>
constexpr auto traced_draw(const char* name, const F& distribution, const index_t (&extents)[Rank],
                           const TracedMesh<Device>& mesh, P... p) {
  return traced_factory<T>(name, Drawn<F>{distribution, mesh.graph().take_draw()}, extents, mesh,
                           p...);
}

}  // namespace spmd::detail

namespace detail {

/// An array with the extents and placements of a traced value, filled with one number.
template <class T, int Rank, class Device>
struct FilledLike<Traced<T, Rank, Device>> {
  static constexpr Traced<T, Rank, Device> make(const Traced<T, Rank, Device>& x, const T& value) {
    spmd::Node node =
        spmd::detail::factory_node<T, Rank, Device>("full_like", spmd::detail::Filled<T>{value});
    node.like = x.value();
    return spmd::detail::append_factory<T, Rank, Device>(x.graph(), node, x.shape());
  }
};

}  // namespace detail

template <Element T, std::size_t Rank, class Device, class... P>
constexpr auto full(const index_t (&extents)[Rank], const T& value, const TracedMesh<Device>& mesh,
                    P... p) {
  return spmd::detail::traced_factory<T>("full", spmd::detail::Filled<T>{value}, extents, mesh,
                                         p...);
}
template <Element T, std::size_t Rank, class Device, class... P>
constexpr auto zeros(const index_t (&extents)[Rank], const TracedMesh<Device>& mesh, P... p) {
  return full<T>(extents, T(0), mesh, p...);
}
template <Element T, std::size_t Rank, class Device, class... P>
constexpr auto ones(const index_t (&extents)[Rank], const TracedMesh<Device>& mesh, P... p) {
  return full<T>(extents, T(1), mesh, p...);
}
/// In a program, zeros.
template <Element T, std::size_t Rank, class Device, class... P>
constexpr auto empty(const index_t (&extents)[Rank], const TracedMesh<Device>& mesh, P... p) {
  return full<T>(extents, T(0), mesh, p...);
}

template <Element T, class Device, class... P>
constexpr auto arange(index_t begin, index_t end, const TracedMesh<Device>& mesh, P... p) {
  detail::require_countable<T>();
  return spmd::detail::traced_factory<T>("arange", spmd::detail::Counted<T>{begin},
                                         {detail::count_between(begin, end)}, mesh, p...);
}
template <Element T, class Device, class... P>
constexpr auto arange(index_t end, const TracedMesh<Device>& mesh, P... p) {
  return arange<T>(0, end, mesh, p...);
}
template <Element T, class Device, class... P>
constexpr auto eye(index_t extent, const TracedMesh<Device>& mesh, P... p) {
  return spmd::detail::traced_factory<T>("eye", spmd::detail::Diagonal<T>{extent}, {extent, extent},
                                         mesh, p...);
}

/// Each run of the program draws other numbers, those of the same call on DTensors.
template <Element T, std::size_t Rank, class Device, class... P>
constexpr auto rand(const index_t (&extents)[Rank], const TracedMesh<Device>& mesh, P... p) {
  return spmd::detail::traced_draw<T>("rand", detail::uniform_of<T>(0, 1), extents, mesh, p...);
}
template <Element T, std::size_t Rank, class Device, class... P>
constexpr auto randn(const index_t (&extents)[Rank], const TracedMesh<Device>& mesh, P... p) {
  return spmd::detail::traced_draw<T>("randn", detail::normal_of<T>(0, 1), extents, mesh, p...);
}
template <Element T, std::size_t Rank, class Device, class... P>
constexpr auto randint(std::int64_t low, std::int64_t high, const index_t (&extents)[Rank],
                       const TracedMesh<Device>& mesh, P... p) {
  return spmd::detail::traced_draw<T>("randint", detail::whole_numbers<T>(low, high), extents, mesh,
                                      p...);
}
template <std::size_t Rank, class Device, class... P>
constexpr auto bernoulli(double probability, const index_t (&extents)[Rank],
                         const TracedMesh<Device>& mesh, P... p) {
  return spmd::detail::traced_draw<bool>("bernoulli", detail::bernoulli_of<bool>(probability),
                                         extents, mesh, p...);
}

}  // namespace cleave::inline v0
