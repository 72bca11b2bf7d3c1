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
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/require_reduction.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/solver.hpp>
#include <cleave/spmd/expand_options.hpp>
#include <cleave/spmd/expand_symbolic.hpp>
#include <cleave/spmd/expand_updates.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/passes/remove_unused.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/program_builder.hpp>
#include <cleave/spmd/remake.hpp>
#include <cleave/spmd/reshaped_layout.hpp>
#include <cleave/spmd/schema.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// The pass over the nodes of a graph.
template <AnyGraph G>
class Expansion final : public Placer {  // final: NOLINT(*virtual-class-destructor)
 public:
  /// @param outputs  the placements of outputs that do not remain Partial; empty: as computed
  constexpr Expansion(const G& of, std::span<const Layout> placed, const ExpandOptions& options,
                      std::span<const Layout> outputs = {})
      : graph_(of),
        options_(options),
        home_(of.values.size(), -1),
        versions_(of.values.size(), -1) {
    program_.draws = of.draws;
    copy_symbols(of, program_);
    program_.mesh = options.mesh;
    if (!place_inputs(placed)) return;
    place_constants();
    for (std::size_t n = 0; n < of.nodes.size(); ++n)
      if (!place_node({graph_.values.data(), nullptr, int(n)}, of.nodes[n])) return;
    for (std::size_t k = 0; k < of.outputs.size(); ++k) {
      Layout layout = layout_of(of.outputs[k].value);
      if (!options.partial_outputs) layout = layout.with_partials_as(Placement::replicate());
      if (k < outputs.size() && !outputs[k].has_partial()) layout = outputs[k];
      const Output& output = of.outputs[k];
      program_.outputs.push_back(
          {bring(output.value, layout, -1, ops::Redistribute::name, true), output.name});
    }
    if (!place_updates()) return;
    if (is_opened_) remove_unused(program_);
    find_last_uses(program_);
  }

  constexpr Program take() { return static_cast<Program&&>(builder_.program); }

 private:
  /// The values that nodes refer to: of the graph, or of the body of a composite.
  struct Scope {
    const Value* values;
    const int* ids;  ///< of the body's values in `home_`; null: the graph's own numbers
    int node;        ///< of the graph

    constexpr const Value& value(int v) const { return values[std::size_t(v)]; }
    constexpr int id(int v) const { return ids == nullptr ? v : ids[std::size_t(v)]; }
  };

  /// A value of the graph under placements other than those that it was computed with.
  struct Version {
    int value = 0;        ///< of the program
    int instruction = 0;  ///< the move
    int next = -1;        ///< another version of the same value
  };

  /// A factory, made when it is used.
  struct Factory {
    Instruction make{};
    Value value{};
    Layout layout{};  ///< that it is asked for
  };
  /// The "home" of the first factory; the next ones have smaller numbers.
  static constexpr int first_factory = -2;

  constexpr bool fail(FaultKind kind, int node, int place, const char* name) {
    program_.code.clear();
    program_.values.clear();
    program_.outputs.clear();
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

  constexpr bool place_inputs(std::span<const Layout> schemas) {
    program_.inputs = int(graph_.inputs.size());
    program_.axes = schemas.empty() ? 0 : schemas[0].axes;
    if (schemas.size() != graph_.inputs.size() || schemas.empty())
      return fail(FaultKind::schema_count, -1, -1, "");
    if (options_.mesh.dims > 0 && options_.mesh.dims != program_.axes)
      return fail(FaultKind::mesh_axes, -1, -1, "");
    for (std::size_t i = 0; i < schemas.size(); ++i) {
      const Input& input = graph_.inputs[i];
      const Value& value = graph_.values[std::size_t(input.value)];
      const int dims = value.shape.dims;
      Layout layout = schemas[i];
      if (layout.axes != program_.axes) return fail(FaultKind::schema_axes, -1, int(i), input.name);
      for (int a = 0; a < layout.axes; ++a) {
        if (layout[a].is_partial() &&
            cleave::detail::why_undefined(value.dtype, layout[a].op) != nullptr)
          return fail(FaultKind::schema_partial, -1, int(i), input.name);
        if (!layout[a].shards()) continue;
        if (layout[a].dim < 0) layout[a] = layout[a].along(layout[a].dim + dims);
        if (layout[a].dim < 0 || layout[a].dim >= dims)
          return fail(FaultKind::schema_shard, -1, int(i), input.name);
      }
      builder_.add(InstructionKind::input, input.name, -1);
      home_[std::size_t(input.value)] = builder_.add_value(value, layout);
      program_.device = input.device;
    }
    return true;
  }

  constexpr void place_constants() {
    for (std::size_t id = 0; id < graph_.values.size(); ++id)
      if (const Value& value = graph_.values[id]; value.constant >= 0)
        home_[id] = builder_.append_constant(value, graph_.constants[std::size_t(value.constant)]);
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
    const int moved = from >= 0 ? builder_.append_move(from, to, node, name, unalias)
                                : append_factory(factory_[std::size_t(first_factory - from)], to);
    version_.push_back({moved, int(program_.code.size()) - 1, first});
    first = int(version_.size()) - 1;
    return moved;
  }

  /// Makes the array of a factory. A user that needs other placements makes its own part again,
  /// instead of receiving it.
  constexpr int append_factory(const Factory& factory, const Layout& layout) {
    program_.code.push_back(factory.make);
    program_.code.back().first = int(program_.values.size());
    return builder_.add_value(factory.value, layout);
  }

  /// Writes the values that replace the elements of inputs, after everything else has read these.
  /// @return false for a fault
  constexpr bool place_updates() {
    std::vector<int> source(graph_.inputs.size(), -1);
    bool any = false;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const int updated = graph_.inputs[i].updated;
      if (updated < 0) continue;
      const Layout to = program_.values[i].layout;
      if (to.has_partial() && !(layout_of(updated) == to))
        return fail(FaultKind::updates_partial, -1, int(i), graph_.inputs[i].name);
      source[i] = bring(updated, to, -1, graph_.inputs[i].name, false);
      any = true;
    }
    if (any) append_writes(builder_, static_cast<std::vector<int>&&>(source));
    return true;
  }

  /// Reads the placements requested of a node. @return false for a fault
  constexpr bool read_request(const Scope& in, const Node& node, Layout& asked, bool& asks) {
    asks = node.asks || node.like >= 0;
    if (!asks) return true;
    asked = node.like >= 0 ? layout_of(in.id(node.like)).with_partials_as(Placement::replicate())
                           : node.asked;
    if (asked.axes != program_.axes) return fail(FaultKind::asked_axes, in.node, -1, node.name);
    for (int a = 0; a < asked.axes; ++a) {
      if (asked[a].is_partial()) return fail(FaultKind::asked_partial, in.node, -1, node.name);
      if (asked[a].shards() &&
          (asked[a].dim < 0 || asked[a].dim >= in.value(node.first).shape.dims))
        return fail(FaultKind::asked_shard, in.node, -1, node.name);
    }
    return true;
  }

  /// Adjusts the placements that operands need if extents of 1 repeat. @return false for a fault
  constexpr bool find_needed(const Scope& in, const Node& node, const OperandLayouts& from,
                             OperandLayouts& required) {
    const Rule& rule = *node.op->rule;
    const OperandShapes shapes = shapes_of(in, node);
    cleave::detail::FactorExtents extents{};
    if (!read_extents(rule, true, shapes.data(), Shape{}, extents).repeats) return true;
    for (int i = 0; i < rule.operands; ++i) {
      int conflict = -1;
      required[std::size_t(i)] = repeatable(
          rule, extents, i, shapes[std::size_t(i)], from[std::size_t(i)], required[std::size_t(i)],
          options_.mesh.dims > 0 ? &options_.mesh : nullptr, conflict);
      if (conflict >= 0) return fail(FaultKind::repeats_sharded, in.node, i, node.name);
    }
    return true;
  }

  using OperandShapes = std::array<cleave::detail::ExtentsRef, std::size_t(max_operands)>;

  constexpr OperandShapes shapes_of(const Scope& in, const Node& node) const {
    OperandShapes shapes{};
    for (int i = 0; i < node.operands(); ++i) {
      const Shape& shape = in.value(node.operand[std::size_t(i)]).shape;
      shapes[std::size_t(i)] = {shape.values.data(), shape.dims};
    }
    return shapes;
  }

  constexpr bool place_node(const Scope& in, const Node& node) {
    if (node.body != nullptr) return place_composite(in.node, node);
    const Rule& rule = *node.op->rule;
    Layout asked{};
    bool asks = false;
    if (!read_request(in, node, asked, asks)) return false;
    const int first = in.id(node.first);
    if (rule.operands == 0) {
      asked.axes = program_.axes;
      home_[std::size_t(first)] = first_factory - int(factory_.size());
      factory_.push_back({compute_of(node, in.node), in.value(node.first), asked});
      return true;
    }
    if (node.axis >= 0) return place_collective(in, node);
    if (node.is_placement && asks) {  // nothing to compute
      home_[std::size_t(first)] = bring(in.id(node.operand[0]), asked, in.node, node.name, true);
      return true;
    }
    OperandLayouts from{};
    for (int i = 0; i < rule.operands; ++i)
      from[std::size_t(i)] = layout_of(in.id(node.operand[std::size_t(i)]));
    Solution solution = node.op->stencil != nullptr ? solve_like_first(rule, from)
                                                    : solve(rule, from, asks ? &asked : nullptr);
    if (options_.by_extents && rule.replicated != 0 && node.op->regrouping.result > 0 &&
        solution.required[0] == from[0])
      keep_shards(in, node, from[0], asks ? &asked : nullptr, solution);
    if (node.op->broadcasts && !find_needed(in, node, from, solution.required)) return false;
    std::array<int, std::size_t(max_operands)> operand{};
    for (int i = 0; i < rule.operands; ++i) {
      const Layout& to = solution.required[std::size_t(i)];
      if (node.is_explicit && cleave::detail::communicates(from[std::size_t(i)], to))
        return fail(FaultKind::not_explicit, in.node, i, node.name);
      operand[std::size_t(i)] =
          bring(in.id(node.operand[std::size_t(i)]), to, in.node, node.name, false);
    }
    append_compute(in, node, operand, solution);
    return true;
  }

  /// Lets the shards of a reshaped value stay where they can.
  constexpr void keep_shards(const Scope& in, const Node& node, const Layout& from,
                             const Layout* asked, Solution& solution) const {
    if (from.axes_where([](const Placement& p) { return p.is_other_cut(); }) != 0) return;
    const Layout kept = reshaped_layout(from, in.value(node.operand[0]).shape, solution.computed[0],
                                        in.value(node.first).shape,
                                        options_.mesh.dims > 0 ? &options_.mesh : nullptr);
    if (asked != nullptr && !(*asked == kept)) return;
    solution.computed[0] = solution.result[0] = kept;
  }

  constexpr bool place_collective(const Scope& in, const Node& node) {
    const int x = in.id(node.operand[0]);
    Layout to = layout_of(x);
    if (node.axis >= to.axes) return fail(FaultKind::collective_axis, in.node, -1, node.name);
    if (to[node.axis] != node.taken)
      return fail(FaultKind::collective_taken, in.node, 0, node.name);
    to[node.axis] = node.given;
    home_[std::size_t(in.id(node.first))] = bring(x, to, in.node, node.name, true);
    return true;
  }

  constexpr void append_compute(const Scope& in, const Node& node,
                                const std::array<int, std::size_t(max_operands)>& operand,
                                const Solution& solution) {
    program_.code.push_back(compute_of(node, in.node));
    program_.code.back().first = int(program_.values.size());
    program_.code.back().operand = operand;
    for (int k = 0; k < node.results(); ++k)
      home_[std::size_t(in.id(node.first + k))] =
          builder_.add_value(in.value(node.first + k), solution.computed[std::size_t(k)]);
    int& first = home_[std::size_t(in.id(node.first))];
    if (!(solution.computed[0] == solution.result[0]))
      first = builder_.append_move(first, solution.result[0], in.node, node.name, false);
  }

  /// Places the nodes of a composite's body, which asks for placements while it is called.
  constexpr bool place_composite(int n, const Node& node) {
    Graph body;
    body.placer = this;
    opened_ = n;
    is_opened_ = true;
    ids_.clear();
    std::array<int, std::size_t(max_operands)> operand{};
    std::array<int, std::size_t(max_results)> result{};
    for (int i = 0; i < node.operands(); ++i) {
      const int id = node.operand[std::size_t(i)];
      operand[std::size_t(i)] = body.add(operand_value(graph_.values[std::size_t(id)]));
      ids_.push_back(id);
    }
    node.body(body, node.attributes, operand.data(), result.data());
    if (program_.fault) return false;
    name_values(body);
    for (int k = 0; k < node.results(); ++k) {
      const auto from = std::size_t(ids_[std::size_t(result[std::size_t(k)])]);
      const auto to = std::size_t(node.first + k);
      home_[to] = home_[from];
      versions_[to] = versions_[from];
    }
    return true;
  }

  constexpr void place_last(const Graph& body) override {
    if (program_.fault) return;
    name_values(body);
    place_node({body.values.data(), ids_.data(), opened_}, body.nodes.back());
  }

  constexpr Layout layout_of(const Graph& body, int value) override {
    if (program_.fault) return {};
    name_values(body);
    return layout_of(ids_[std::size_t(value)]);
  }

  /// Numbers the new values of a body, and places its constants.
  constexpr void name_values(const Graph& body) {
    for (std::size_t v = ids_.size(); v < body.values.size(); ++v) {
      const Value& value = body.values[v];
      ids_.push_back(int(home_.size()));
      versions_.push_back(-1);
      home_.push_back(-1);
      if (value.constant >= 0)
        home_.back() = builder_.append_constant(value, body.constants[std::size_t(value.constant)]);
    }
  }

  const G& graph_;
  const ExpandOptions& options_;
  ProgramBuilder builder_{};
  Program& program_ = builder_.program;
  std::vector<int> home_;           ///< per value of the graph: its first value of the program;
                                    ///< then those of the values of bodies of composites;
                                    ///< first_factory or less: of a factory
  std::vector<int> versions_;       ///< likewise: its latest version, or -1
  std::vector<Version> version_{};  ///< of all values
  std::vector<Factory> factory_{};
  std::vector<int> ids_{};  ///< of the values of the composite's body: places in `home_`
  int opened_ = -1;         ///< the composite whose body is being placed
  bool is_opened_ = false;  ///< whether there has been a composite
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
  if constexpr (detail::may_be_symbolic<G>)
    if (!std::is_constant_evaluated() && is_symbolic(graph))
      return detail::expand_symbolic(
          graph, [placed = std::vector(schemas.begin(), schemas.end()), options](
                     const auto& made, std::span<const Layout> outputs) {
            return detail::Expansion(made, placed, options, outputs).take();
          });
  return detail::Expansion<G>(graph, schemas, options).take();
}

}  // namespace cleave::inline v0::spmd
