// Which values of a graph have the same role: the weights, activations and gradients of repeated
// blocks, which get the same placements when a large graph is searched.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <cleave/core/checksum.hpp>
#include <cleave/spmd/graph.hpp>

namespace cleave::inline v0::spmd::detail {

/// A number for every node that says what it computes, apart from which values it is applied to.
template <AnyGraph G>
constexpr std::vector<std::uint64_t> kinds_of_nodes(const G& graph) {
  std::vector<const Node*> known;  // pointers can be compared in constant expressions, not hashed
  std::vector<std::uint64_t> kinds;
  for (const Node& node : graph.nodes) {
    std::size_t same = 0;
    while (same < known.size() && (known[same]->op != node.op || known[same]->body != node.body))
      ++same;
    if (same == known.size()) known.push_back(&node);
    cleave::detail::Checksum sum;
    sum.add(same);
    for (std::size_t i = 0; i < Attributes::size; ++i)
      sum.add(std::to_integer<std::uint64_t>(node.attributes.bytes[i]));
    sum.add(std::uint64_t(node.is_placement) << 2 | std::uint64_t(node.asks) << 1 |
            std::uint64_t(node.is_explicit));
    if (node.asks) sum.add(node.asked.packed());
    sum.add(std::uint64_t(node.axis + 1) << 16 | node.taken.code() << 8 | node.given.code());
    kinds.push_back(sum.sum);
  }
  return kinds;
}

/// The type, extents and, of a constant, the number.
template <AnyGraph G>
constexpr std::uint64_t kind_of_value(const G& graph, int id) {
  const Value& value = graph.values[std::size_t(id)];
  cleave::detail::Checksum sum;
  sum.add(std::uint64_t(value.dtype) << 3 | std::uint64_t(value.is_number) << 2 |
          std::uint64_t(value.is_input()) << 1 | std::uint64_t(value.constant >= 0));
  sum.add(cleave::detail::checksum(value.shape));
  if (value.constant >= 0)
    for (const std::byte b : graph.constants[std::size_t(value.constant)].bytes)
      sum.add(std::to_integer<std::uint64_t>(b));
  return sum.sum;
}

/// A number per value, equal for values whose neighbourhoods in the graph are alike: colour
/// refinement (Weisfeiler and Leman 1968), stopped after so many steps, in which a value sees
/// nodes at most as many steps away.
/// @cost linear in the nodes, times steps
template <AnyGraph G>
constexpr std::vector<std::uint64_t> roles_of_values(const G& graph, int steps) {
  const std::vector<std::uint64_t> kind = kinds_of_nodes(graph);
  std::vector<std::uint64_t> role(graph.values.size());
  for (std::size_t v = 0; v < role.size(); ++v) role[v] = kind_of_value(graph, int(v));
  for (const Output& output : graph.outputs) role[std::size_t(output.value)] += 0x9e3779b97f4a7c15u;
  for (const Input& input : graph.inputs)
    if (input.updated >= 0) role[std::size_t(input.updated)] += 0xc2b2ae3d27d4eb4fu;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::uint64_t> next = role;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      cleave::detail::Checksum around;
      around.add(kind[n]);
      for (int i = 0; i < node.operands(); ++i)
        around.add(role[std::size_t(node.operand[std::size_t(i)])]);
      for (int k = 0; k < node.results(); ++k) around.add(role[std::size_t(node.first + k)]);
      const auto see = [&](int value, int place) {
        cleave::detail::Checksum seen = around;
        seen.add(std::uint64_t(place));
        next[std::size_t(value)] += seen.sum;  // users in any order
      };
      for (int i = 0; i < node.operands(); ++i) see(node.operand[std::size_t(i)], i);
      for (int k = 0; k < node.results(); ++k) see(node.first + k, max_operands + k);
    }
    for (const Input& input : graph.inputs)
      if (input.updated >= 0) {
        next[std::size_t(input.value)] += 3 * role[std::size_t(input.updated)];
        next[std::size_t(input.updated)] += 5 * role[std::size_t(input.value)];
      }
    role = static_cast<std::vector<std::uint64_t>&&>(next);
  }
  return role;
}

/// The places of equal numbers: of each number, the index of its class, in order of appearance.
constexpr std::vector<int> classes_of(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::pair<std::uint64_t, int>> order;
  for (std::size_t i = 0; i < numbers.size(); ++i) order.emplace_back(numbers[i], int(i));
  std::sort(order.begin(), order.end());
  std::vector<int> first(numbers.size()), classes(numbers.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    first[std::size_t(order[i].second)] = i > 0 && order[i].first == order[i - 1].first
                                              ? first[std::size_t(order[i - 1].second)]
                                              : order[i].second;
  int count = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    classes[i] = first[i] == int(i) ? count++ : classes[std::size_t(first[i])];
  return classes;
}

}  // namespace cleave::inline v0::spmd::detail
