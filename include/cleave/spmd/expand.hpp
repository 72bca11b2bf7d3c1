// Expansion: makes, from a single-device program and the placements of its inputs, the program of
// every rank of a mesh. One pass over the nodes with the solver of eager calls, so that both choose
// the same placements and the same communication.
//
//     constexpr std::array schemas{schema(Shard<0>{}), schema(Replicate{})};
//     static_assert(count(expand(graph, schemas), StepKind::all_reduce) == 1);
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/solver.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::spmd {

/// The placements of an input, one per axis of the mesh; negative dimensions count from the end.
template <PlacementType... P>
constexpr Layout schema(P...) {
  Layout layout;
  ((layout[layout.axes++] = cleave::detail::PlacementTraits<P>::value(0)), ...);
  return layout;
}

/// The placements of DTensors, as schemas.
template <class... X>
  requires(is_dtensor<X> && ...)
constexpr std::array<Layout, sizeof...(X)> schemas_of(const X&...) {
  return {X::layout...};
}

/// Options of `expand`.
struct ExpandOptions {
  bool partial_outputs = false;  ///< outputs may stay Partial; by default they become Replicate
  /// The extents of the mesh, if known. Then the program runs on no other: an axis of one rank does
  /// not divide anything, so that a dimension of extent 1 may repeat even if it is "sharded" over
  /// that axis.
  Shape mesh{};
};

namespace detail {

/// The pass over the nodes of a graph.
template <AnyGraph G>
class Expansion {
 public:
  constexpr Expansion(const G& of, std::span<const Layout> placed, const ExpandOptions& options)
      : graph_(of),
        options_(options),
        home_(of.values.size(), -1),
        versions_(of.values.size(), -1) {
    program_.draws = of.draws;
    program_.mesh = options.mesh;
    if (!place_inputs(placed)) return;
    place_constants();
    for (std::size_t n = 0; n < of.nodes.size(); ++n)
      if (!place_node(int(n))) return;
    for (const int id : of.outputs) {
      Layout layout = layout_of(id);
      if (!options.partial_outputs) layout = layout.with_partials_as(Placement::replicate());
      program_.outputs.push_back(bring(id, layout, -1, ops::Redistribute::name, true));
    }
    find_last_uses(program_);
  }

  constexpr Program take() { return static_cast<Program&&>(program_); }

 private:
  /// A value of the graph under placements other than those that it was computed with.
  struct Version {
    int value = 0;        ///< of the program
    int instruction = 0;  ///< the move
    int next = -1;        ///< another version of the same value
  };

  /// A factory, made when it is used.
  struct Factory {
    int node = 0;
    Layout layout{};  ///< that it is asked for
  };
  /// The "home" of the first factory; the next ones have smaller numbers.
  static constexpr int first_factory = -2;

  constexpr bool fail(FaultKind kind, int node, int place, const char* name) {
    program_.code.clear();
    program_.values.clear();
    program_.fault = {kind, node, place, name};
    return false;
  }

  /// The placements of the program's first value for a value of the graph: as an input, a constant
  /// or computed; those that a factory is asked for, even if it is made under others only.
  constexpr const Layout& layout_of(int id) const {
    const int home = home_[std::size_t(id)];
    return home >= 0 ? program_.values[std::size_t(home)].layout
                     : factory_[std::size_t(first_factory - home)].layout;
  }
  constexpr const Value& value(int id) const { return graph_.values[std::size_t(id)]; }

  constexpr int add_value(int id, const Layout& layout) {
    program_.values.push_back({value(id).dtype, value(id).shape, layout, 0});
    return int(program_.values.size()) - 1;
  }
  constexpr Instruction& add(InstructionKind kind, const char* name, int node) {
    program_.code.push_back({});
    Instruction& instruction = program_.code.back();
    instruction.kind = kind;
    instruction.name = name;
    instruction.node = node;
    instruction.first = int(program_.values.size());
    return instruction;
  }

  constexpr bool place_inputs(std::span<const Layout> schemas) {
    program_.inputs = int(graph_.inputs.size());
    program_.axes = schemas.empty() ? 0 : schemas[0].axes;
    if (schemas.size() != graph_.inputs.size() || schemas.empty())
      return fail(FaultKind::schema_count, -1, -1, "");
    if (options_.mesh.dims > 0 && options_.mesh.dims != program_.axes)
      return fail(FaultKind::mesh_axes, -1, -1, "");
    for (std::size_t i = 0; i < schemas.size(); ++i) {
      const Input& input = graph_.inputs[i];
      const int dims = value(input.value).shape.dims;
      Layout layout = schemas[i];
      if (layout.axes != program_.axes) return fail(FaultKind::schema_axes, -1, int(i), input.name);
      for (int a = 0; a < layout.axes; ++a) {
        if (!layout[a].shards()) continue;
        if (layout[a].dim < 0) layout[a] = Placement::shard(layout[a].dim + dims);
        if (layout[a].dim < 0 || layout[a].dim >= dims)
          return fail(FaultKind::schema_shard, -1, int(i), input.name);
      }
      add(InstructionKind::input, input.name, -1);
      home_[std::size_t(input.value)] = add_value(input.value, layout);
      program_.device = input.device;
    }
    return true;
  }

  constexpr void place_constants() {
    Layout everywhere;
    everywhere.axes = program_.axes;
    for (std::size_t id = 0; id < graph_.values.size(); ++id) {
      const int constant = graph_.values[id].constant;
      if (constant < 0) continue;
      Instruction& instruction = add(InstructionKind::constant, "constant", -1);
      instruction.attributes = graph_.constants[std::size_t(constant)];
      instruction.is_number = graph_.values[id].is_number;
      home_[id] = add_value(int(id), everywhere);
    }
  }

  /// The value under other placements: an existing version if there is one, else a new move.
  ///
  /// @param node     that needs the value
  /// @param name     of that node
  /// @param unalias  @see Instruction
  constexpr int bring(int id, const Layout& to, int node, const char* name, bool unalias) {
    const int from = home_[std::size_t(id)];
    if (from >= 0 && layout_of(id) == to) return from;
    int& first = versions_[std::size_t(id)];
    for (int v = first; v >= 0; v = version_[std::size_t(v)].next) {
      const Version& have = version_[std::size_t(v)];
      if (!(program_.values[std::size_t(have.value)].layout == to)) continue;
      if (unalias) program_.code[std::size_t(have.instruction)].unalias = true;
      return have.value;
    }
    const int moved = from >= 0
                          ? append_move(id, from, to, node, name, unalias)
                          : append_factory(factory_[std::size_t(first_factory - from)].node, to);
    version_.push_back({moved, int(program_.code.size()) - 1, first});
    first = int(version_.size()) - 1;
    return moved;
  }

  constexpr int append_move(int id, int from, const Layout& to, int node, const char* name,
                            bool unalias) {
    Instruction& move = add(InstructionKind::move, name, node);
    move.operand[0] = from;
    move.operands = 1;
    move.unalias = unalias;
    return add_value(id, to);
  }

  /// Makes the array of a factory. A user that needs other placements makes its own part again,
  /// instead of receiving it.
  constexpr int append_factory(int n, const Layout& layout) {
    const Node& node = graph_.nodes[std::size_t(n)];
    Instruction& make = add(InstructionKind::compute, node.name, n);
    make.op = node.op;
    make.attributes = node.attributes;
    return add_value(node.first, layout);
  }

  /// Reads the placements requested of a node. @return false for a fault
  constexpr bool read_request(int n, Layout& asked, bool& asks) {
    const Node& node = graph_.nodes[std::size_t(n)];
    asks = node.asks || node.like >= 0;
    if (!asks) return true;
    asked =
        node.like >= 0 ? layout_of(node.like).with_partials_as(Placement::replicate()) : node.asked;
    if (asked.axes != program_.axes) return fail(FaultKind::asked_axes, n, -1, node.name);
    for (int a = 0; a < asked.axes; ++a) {
      if (asked[a].is_partial()) return fail(FaultKind::asked_partial, n, -1, node.name);
      if (asked[a].shards() && (asked[a].dim < 0 || asked[a].dim >= value(node.first).shape.dims))
        return fail(FaultKind::asked_shard, n, -1, node.name);
    }
    return true;
  }

  /// Adjusts the placements that operands need if extents of 1 repeat. @return false for a fault
  constexpr bool find_needed(int n, const OperandLayouts& from, OperandLayouts& required) {
    const Node& node = graph_.nodes[std::size_t(n)];
    const Rule& rule = *node.op->rule;
    const OperandShapes shapes = shapes_of(node);
    cleave::detail::FactorExtents extents{};
    if (!read_extents(rule, true, shapes.data(), Shape{}, extents).repeats) return true;
    for (int i = 0; i < rule.operands; ++i) {
      int conflict = -1;
      required[std::size_t(i)] = repeatable(
          rule, extents, i, shapes[std::size_t(i)], from[std::size_t(i)], required[std::size_t(i)],
          options_.mesh.dims > 0 ? &options_.mesh : nullptr, conflict);
      if (conflict >= 0) return fail(FaultKind::repeats_sharded, n, i, node.name);
    }
    return true;
  }

  using OperandShapes = std::array<cleave::detail::ExtentsRef, std::size_t(max_operands)>;

  constexpr OperandShapes shapes_of(const Node& node) const {
    OperandShapes shapes{};
    for (int i = 0; i < node.operands(); ++i) {
      const Shape& shape = value(node.operand[std::size_t(i)]).shape;
      shapes[std::size_t(i)] = {shape.values.data(), shape.dims};
    }
    return shapes;
  }

  constexpr bool place_node(int n) {
    const Node& node = graph_.nodes[std::size_t(n)];
    const Rule& rule = *node.op->rule;
    Layout asked{};
    bool asks = false;
    if (!read_request(n, asked, asks)) return false;
    if (rule.operands == 0) {
      asked.axes = program_.axes;
      home_[std::size_t(node.first)] = first_factory - int(factory_.size());
      factory_.push_back({n, asked});
      return true;
    }
    if (node.is_placement && asks) {  // nothing to compute
      home_[std::size_t(node.first)] = bring(node.operand[0], asked, n, node.name, true);
      return true;
    }
    OperandLayouts from{};
    for (int i = 0; i < rule.operands; ++i)
      from[std::size_t(i)] = layout_of(node.operand[std::size_t(i)]);
    Solution solution = solve(rule, from, asks ? &asked : nullptr);
    if (node.op->broadcasts && !find_needed(n, from, solution.required)) return false;
    std::array<int, std::size_t(max_operands)> operand{};
    for (int i = 0; i < rule.operands; ++i) {
      const Layout& to = solution.required[std::size_t(i)];
      if (node.is_explicit && cleave::detail::communicates(from[std::size_t(i)], to))
        return fail(FaultKind::not_explicit, n, i, node.name);
      operand[std::size_t(i)] = bring(node.operand[std::size_t(i)], to, n, node.name, false);
    }
    append_compute(n, operand, solution);
    return true;
  }

  constexpr void append_compute(int n, const std::array<int, std::size_t(max_operands)>& operand,
                                const Solution& solution) {
    const Node& node = graph_.nodes[std::size_t(n)];
    Instruction& compute = add(InstructionKind::compute, node.name, n);
    compute.op = node.op;
    compute.operand = operand;
    compute.operands = node.operands();
    compute.results = node.results();
    compute.attributes = node.attributes;
    for (int k = 0; k < node.results(); ++k)
      home_[std::size_t(node.first + k)] =
          add_value(node.first + k, solution.computed[std::size_t(k)]);
    if (!(solution.computed[0] == solution.result[0]))
      home_[std::size_t(node.first)] = append_move(node.first, home_[std::size_t(node.first)],
                                                   solution.result[0], n, node.name, false);
  }

  const G& graph_;
  const ExpandOptions& options_;
  Program program_{};
  std::vector<int> home_;           ///< per value of the graph: its first value of the program;
                                    ///< first_factory or less: of a factory
  std::vector<int> versions_;       ///< per value of the graph: its latest version, or -1
  std::vector<Version> version_{};  ///< of all values
  std::vector<Factory> factory_{};
};

}  // namespace detail

/// The program of every rank, with the inputs of `graph` placed as `schemas` says.
///
/// The solver chooses the placements of operands, as in eager calls; a value that several nodes
/// need under the same placements is moved once. Partial outputs become Replicate by default.
///
/// @param schemas  one per input, all with one placement per axis of the mesh. @see schema
/// @return         a program; its `fault` says whether the expansion failed
/// @cost           linear in the nodes; at compile time, g++'s default limits allow 1,000 nodes
template <AnyGraph G>
constexpr Program expand(const G& graph, std::span<const Layout> schemas,
                         const ExpandOptions& options = {}) {
  return detail::Expansion<G>(graph, schemas, options).take();
}

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

}  // namespace cleave::spmd
