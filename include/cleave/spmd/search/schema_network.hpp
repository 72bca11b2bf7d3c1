// A graph as the search for schemas sees it: variables, which stand for the placements of values,
// and calls, which relate them. Values of the same role share a variable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/search/value_roles.hpp>

namespace cleave::inline v0::spmd::detail {

/// A node, an output of the graph or an update of an input; or all that relate the same variables.
struct SchemaCall {
  enum class Kind : std::uint8_t { node, output, update };
  static constexpr int most_in = max_operands + 1;

  Kind kind = Kind::node;
  int ins = 0, outs = 0;
  std::array<int, std::size_t(most_in)> in{};        ///< variables, of the values below
  std::array<int, std::size_t(most_in)> in_value{};  ///< distinct values of the first node
  std::array<int, std::size_t(max_results)> out{};   ///< variables
  unsigned used = 0;                                 ///< bit k: result k has users
  std::uint64_t signature = 0;  ///< equal for calls that place equal operands equally
  std::vector<int> nodes{};     ///< of the graph; else one entry for each output or update
};

struct SchemaVariable {
  int value = 0;  ///< one of the graph's values
  bool is_input = false;
  bool is_factory = false;
  int values = 1;  ///< that share it
};

struct SchemaNetwork {
  std::vector<SchemaVariable> variables{};
  std::vector<int> variable_of{};  ///< per value; -1: a constant
  std::vector<SchemaCall> calls{};
};

/// Builds a network of a graph.
template <AnyGraph G>
class NetworkBuilder {
 public:
  /// @param steps  how far roles see; negative: every value has its own variable
  constexpr NetworkBuilder(const G& of, int steps) : graph_(of), used_(of.values.size(), 0) {
    find_used();
    std::vector<int> role(of.values.size());
    if (steps >= 0) role = classes_of(roles_of_values(of, steps));
    else
      for (std::size_t v = 0; v < role.size(); ++v) role[v] = int(v);
    std::vector<int> variable_of_role(of.values.size(), -1);
    for (std::size_t v = 0; v < of.values.size(); ++v) {
      const Value& value = of.values[v];
      int& variable = variable_of_role[std::size_t(role[v])];
      if (value.constant < 0 && variable < 0) {
        variable = int(network_.variables.size());
        network_.variables.push_back(
            {int(v), value.is_input(),
             value.node >= 0 && of.nodes[std::size_t(value.node)].operands() == 0});
      } else if (value.constant < 0) {
        ++network_.variables[std::size_t(variable)].values;
      }
      network_.variable_of.push_back(variable);
    }
    const std::vector<std::uint64_t> kinds = kinds_of_nodes(of);
    for (std::size_t n = 0; n < of.nodes.size(); ++n) add(call_of(int(n), kinds[n]), int(n));
    for (const Output& output : of.outputs) {
      SchemaCall call;
      call.kind = SchemaCall::Kind::output;
      append_in(call, output.value);
      add(call, output.value);
    }
    for (const Input& input : of.inputs) {
      if (input.updated < 0) continue;
      SchemaCall call;
      call.kind = SchemaCall::Kind::update;
      append_in(call, input.updated);
      append_in(call, input.value);
      add(call, input.value);
    }
  }

  constexpr SchemaNetwork take() { return static_cast<SchemaNetwork&&>(network_); }

 private:
  constexpr void find_used() {
    for (const Node& node : graph_.nodes) {
      for (int i = 0; i < node.operands(); ++i)
        used_[std::size_t(node.operand[std::size_t(i)])] = 1;
      if (node.like >= 0) used_[std::size_t(node.like)] = 1;
    }
    for (const Output& output : graph_.outputs) used_[std::size_t(output.value)] = 1;
    for (const Input& input : graph_.inputs)
      if (input.updated >= 0) used_[std::size_t(input.updated)] = 1;
  }

  /// Appends a value unless it is there. @return its place
  constexpr int append_in(SchemaCall& call, int value) {
    if (graph_.values[std::size_t(value)].constant >= 0) return -1;
    for (int i = 0; i < call.ins; ++i)
      if (call.in_value[std::size_t(i)] == value) return i;
    call.in[std::size_t(call.ins)] = network_.variable_of[std::size_t(value)];
    call.in_value[std::size_t(call.ins)] = value;
    return call.ins++;
  }

  constexpr SchemaCall call_of(int n, std::uint64_t kind) {
    const Node& node = graph_.nodes[std::size_t(n)];
    SchemaCall call;
    cleave::detail::Checksum sum;
    sum.add(kind);
    const auto sign = [&](int value) {
      sum.add(std::uint64_t(append_in(call, value) + 1));
      sum.add(kind_of_value(graph_, value));
    };
    for (int i = 0; i < node.operands(); ++i) sign(node.operand[std::size_t(i)]);
    if (node.like >= 0) sign(node.like);
    for (int k = 0; k < node.results(); ++k) {
      call.out[std::size_t(call.outs++)] = network_.variable_of[std::size_t(node.first + k)];
      call.used |= unsigned(used_[std::size_t(node.first + k)]) << k;
      sum.add(kind_of_value(graph_, node.first + k));
    }
    sum.add(call.used);
    call.signature = sum.sum;
    return call;
  }

  /// Adds a call, or counts it among those of the same variables.
  constexpr void add(const SchemaCall& call, int node) {
    for (SchemaCall& other : network_.calls)
      if (other.signature == call.signature && other.kind == call.kind && other.in == call.in &&
          other.ins == call.ins && other.out == call.out) {
        other.nodes.push_back(node);
        return;
      }
    network_.calls.push_back(call);
    network_.calls.back().nodes.push_back(node);
  }

  const G& graph_;
  std::vector<char> used_;  ///< per value
  SchemaNetwork network_{};
};

}  // namespace cleave::inline v0::spmd::detail
