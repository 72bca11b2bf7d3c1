// What a call does for given placements of its operands: the expansion of a graph of this node
// only, and its cost. So the search makes the choices of `expand`, composites and their kernels
// included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/spmd/estimate.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/search/hash_index.hpp>
#include <cleave/spmd/search/schema_network.hpp>

namespace cleave::inline v0::spmd::detail {

using PackedLayout = std::uint64_t;
inline constexpr PackedLayout no_request = ~PackedLayout(0);

/// A call with placements. Operands are moved by those who know which of them are moved already.
struct SchemaRow {
  /// An operand under other placements.
  struct Need {
    int in = 0;
    PackedLayout to = 0;
  };

  std::array<PackedLayout, std::size_t(SchemaCall::most_in)> in{};
  PackedLayout request = no_request;  ///< of the node's result
  std::uint64_t signature = 0;
  bool is_possible = false;
  double us = 0;       ///< of everything but moves
  double move_us = 0;  ///< of all moves but those of operands
  std::array<PackedLayout, std::size_t(max_results)> out{};
  int first_need = 0, needs = 0;  ///< in the list of all
};

/// The rows of a graph's calls, each computed once.
template <AnyGraph G>
class SchemaRows {
 public:
  constexpr SchemaRows(const G& of, const Shape& mesh, const ProgramCosts& costs,
                       const ExpandOptions& options)
      : graph_(of), mesh_(mesh), costs_(costs), options_(options) {}

  /// The place of the row of a call.
  constexpr int find(const SchemaCall& call, const SchemaRow& key) {
    cleave::detail::Checksum sum;
    sum.add(call.signature);
    sum.add(key.request);
    for (int i = 0; i < call.ins; ++i) sum.add(key.in[std::size_t(i)]);
    const int known = index_.find(sum.sum, [&](int at) {
      const SchemaRow& row = rows_[std::size_t(at)];
      return row.signature == call.signature && row.request == key.request && row.in == key.in;
    });
    if (known >= 0) return known;
    SchemaRow row = key;
    row.signature = call.signature;
    row.first_need = int(needs_.size());
    fill(call, row);
    row.needs = int(needs_.size()) - row.first_need;
    rows_.push_back(row);
    index_.add(sum.sum);
    return int(rows_.size()) - 1;
  }
  constexpr const SchemaRow& operator[](int row) const { return rows_[std::size_t(row)]; }
  constexpr const SchemaRow::Need& need(const SchemaRow& row, int i) const {
    return needs_[std::size_t(row.first_need + i)];
  }

  /// The time to move a value. A factory makes it instead.
  constexpr double move_us(const SchemaVariable& variable, PackedLayout from, PackedLayout to) {
    const Value& value = graph_.values[std::size_t(variable.value)];
    if (from == to || variable.is_factory) return 0;
    return move_us(PlacedValue{value.dtype, value.shape, Layout::unpacked(from, mesh_.dims)},
                   Layout::unpacked(to, mesh_.dims));
  }

 private:
  struct KnownMove {
    Shape shape;
    std::size_t element_size;
    PackedLayout from, to;
    double us;
  };

  constexpr double move_us(const PlacedValue& from, const Layout& to) {
    const KnownMove key{from.shape, size_of(from.dtype), from.layout.packed(), to.packed(), 0};
    cleave::detail::Checksum sum;
    sum.add(cleave::detail::checksum(key.shape));
    sum.add(key.element_size);
    sum.add(key.from);
    sum.add(key.to);
    const int known = moves_index_.find(sum.sum, [&](int at) {
      const KnownMove& move = moves_[std::size_t(at)];
      return move.shape == key.shape && move.element_size == key.element_size &&
             move.from == key.from && move.to == key.to;
    });
    if (known >= 0) return moves_[std::size_t(known)].us;
    Program one;
    one.values = {from, from};
    one.values[1].layout = to;
    Instruction move;
    move.kind = InstructionKind::move;
    move.operands = 1;
    move.first = 1;
    moves_.push_back(key);
    moves_.back().us = estimated_us(one, move, mesh_, costs_);
    moves_index_.add(sum.sum);
    return moves_.back().us;
  }

  constexpr void fill(const SchemaCall& call, SchemaRow& row) {
    if (call.kind == SchemaCall::Kind::node) return fill_node(call, row);
    row.is_possible = true;
    const Layout made = Layout::unpacked(row.in[0], mesh_.dims);
    PackedLayout to = row.in[0];
    if (call.kind == SchemaCall::Kind::update) {
      to = row.in[std::size_t(call.ins) - 1];  // an input that is its own update stays
      row.is_possible = to == row.in[0] || !Layout::unpacked(to, mesh_.dims).has_partial();
    } else if (!options_.partial_outputs) {
      to = made.with_partials_as(Placement::replicate()).packed();
    }
    if (to != row.in[0]) needs_.push_back({0, to});
  }

  constexpr void fill_node(const SchemaCall& call, SchemaRow& row) {
    const Node& node = graph_.nodes[std::size_t(call.nodes[0])];
    if (node.op->rule->operands == 0 && node.body == nullptr) {
      row.is_possible = true;
      if (!node.asked.packs())
        throw Error("find_schemas", "a requested block or owner is too large for so many axes",
                    {.placements = to_string(node.asked)});
      row.out[0] = node.asks ? node.asked.packed() : 0;
      if (node.like >= 0)
        row.out[0] = Layout::unpacked(row.in[0], mesh_.dims)
                         .with_partials_as(Placement::replicate())
                         .packed();
      return;
    }
    const Graph one = graph_of(call, node, row.request);
    std::vector<Layout> schemas(one.inputs.size(), Layout::replicated(mesh_.dims));
    for (int i = 0; i < call.ins; ++i)
      schemas[std::size_t(i)] = Layout::unpacked(row.in[std::size_t(i)], mesh_.dims);
    const Program program = expand(one, schemas, {.partial_outputs = true, .mesh = options_.mesh});
    if (program.fault) return;
    row.is_possible = true;
    for (const Instruction& i : program.code) {
      if (i.kind != InstructionKind::move) {
        row.us += estimated_us(program, i, mesh_, costs_);
        continue;
      }
      const PlacedValue& from = program.values[std::size_t(i.operand[0])];
      const Layout& to = program.values[std::size_t(i.first)].layout;
      if (i.operand[0] < call.ins) needs_.push_back({i.operand[0], to.packed()});
      else row.move_us += move_us(from, to);
    }
    std::size_t output = 0;
    for (int k = 0; k < call.outs; ++k)
      if (call.used >> k & 1u) {
        const int id = program.outputs[output++].value;
        row.out[std::size_t(k)] = program.values[std::size_t(id)].layout.packed();
      }
  }

  /// A graph of one node. Its last input belongs to nobody: it tells the number of axes.
  constexpr Graph graph_of(const SchemaCall& call, Node node, PackedLayout request) const {
    Graph one;
    const auto add_input = [&](const Value& value) {
      one.inputs.push_back({"", one.add(value), "", -1});
    };
    for (int i = 0; i < call.ins; ++i)
      add_input(operand_value(graph_.values[std::size_t(call.in_value[std::size_t(i)])]));
    add_input(Value{});
    const auto renamed = [&](int id) {
      Value value = graph_.values[std::size_t(id)];
      if (value.constant >= 0) {
        one.constants.push_back(graph_.constants[std::size_t(value.constant)]);
        value.constant = int(one.constants.size()) - 1;
        return one.add(value);
      }
      int i = 0;
      while (call.in_value[std::size_t(i)] != id) ++i;
      return i;
    };
    for (int i = 0; i < node.operands(); ++i)
      node.operand[std::size_t(i)] = renamed(node.operand[std::size_t(i)]);
    if (node.like >= 0) node.like = renamed(node.like);
    if (request != no_request) {
      node.asks = true;
      node.asked = Layout::unpacked(request, mesh_.dims);
    }
    const int first = node.first;
    for (int k = 0; k < node.results(); ++k) {
      Value value = graph_.values[std::size_t(first + k)];
      value.node = 0;
      const int id = one.add(value);
      if (k == 0) node.first = id;
      if (call.used >> k & 1u) one.outputs.push_back({id});
    }
    one.nodes.push_back(node);
    return one;
  }

  const G& graph_;
  const Shape& mesh_;
  const ProgramCosts& costs_;
  const ExpandOptions& options_;
  std::vector<SchemaRow> rows_{};
  std::vector<SchemaRow::Need> needs_{};
  HashIndex index_{};
  std::vector<KnownMove> moves_{};
  HashIndex moves_index_{};
};

}  // namespace cleave::inline v0::spmd::detail
