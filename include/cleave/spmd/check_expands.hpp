// Makes a graph that cannot be expanded a compile error that names the node and the reason.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <cleave/spmd/expand.hpp>

namespace cleave::inline v0::spmd {

/// Shows, in a compile error, which node of a graph cannot be expanded: its number and the
/// characters of its name; or, with number -1, which input has the wrong schema. A second error
/// gives the reason.
template <int Node, char... Name>
struct cannot_be_expanded_at {};

namespace detail {

template <FaultKind Why, int Node, char... Name>
constexpr void refuse() {
  static_assert(Why != FaultKind::schema_count,
                "cleave: a graph must be expanded with exactly one schema per input");
  static_assert(Why != FaultKind::schema_axes,
                "cleave: the schemas of an expansion must have one placement per axis of one mesh");
  static_assert(Why != FaultKind::mesh_axes,
                "cleave: a schema must have one placement per axis of the mesh of the expansion");
  static_assert(Why != FaultKind::schema_shard,
                "cleave: a schema shards a dimension that its input does not have");
  static_assert(Why != FaultKind::schema_partial,
                "cleave: a schema is Partial by a reduction that is not defined for the elements "
                "of its input");
  static_assert(
      Why != FaultKind::asked_axes,
      "cleave: the placements requested of this node and those of the schemas differ in number");
  static_assert(Why != FaultKind::asked_shard,
                "cleave: the placements requested of this node shard a dimension that its result "
                "does not have");
  static_assert(Why != FaultKind::asked_partial,
                "cleave: this node is requested as Partial, which only operations make");
  static_assert(Why != FaultKind::repeats_sharded,
                "cleave: at this node an operand repeats a dimension of extent 1 that is sharded; "
                "redistribute it to Replicate first");
  static_assert(Why != FaultKind::updates_partial,
                "cleave: this input is Partial and changed in place; give it another schema");
  static_assert(Why != FaultKind::not_explicit,
                "cleave: explicit_communication: an operand of this node would be redistributed; "
                "call redistribute before the operation");
  using where [[maybe_unused]] =
      typename cannot_be_expanded_at<Node, Name...>::see_the_name_of_this_type;
}

}  // namespace detail

/// Returns true; a compile error that names the node if the graph cannot be expanded.
///
///     static_assert(check_expands<graph, schemas>());
///     static_assert(check_expands<graph, schemas, 2, 4>());  // on a mesh of 2 x 4 ranks
///
/// @tparam Graph, Schemas  constants at namespace scope
/// @tparam Mesh            the extents of the mesh, or none. @see ExpandOptions
template <const auto& Graph, const auto& Schemas, index_t... Mesh>
constexpr bool check_expands() {
  constexpr std::array<index_t, sizeof...(Mesh)> mesh{Mesh...};
  constexpr Fault fault = expand(Graph, Schemas, {.mesh = Shape(mesh)}).fault;
  if constexpr (fault.kind != FaultKind::none) {
    constexpr std::string_view name = fault.name;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      detail::refuse<fault.kind, fault.node, fault.name[I]...>();
    }(std::make_index_sequence<name.size()>{});
  }
  return true;
}

}  // namespace cleave::inline v0::spmd
