// Composites whose body depends on placements, in traces: one node, whose body is called when the
// graph is expanded and placements are known. So programs use the kernels of eager calls.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/op_info.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0::detail {

/// A composite on operands of these types: Traced values.
template <class Op, class... X>
struct TracedComposite {
  using Result = decltype(std::declval<const Op&>().body(std::declval<const X&>()...));
  static constexpr int operands = int(sizeof...(X));

  template <class Y>
  static constexpr auto as_tuple(const Y& y) {
    if constexpr (is_traced<Y>) return std::tuple{y};
    else return y;
  }
  using Results = decltype(as_tuple(std::declval<const Result&>()));
  static constexpr int results = int(std::tuple_size_v<Results>);

  /// Only what a node reads of an operation: its name, numbers of dimensions and element types.
  static constexpr Rule rule = [] {
    Rule rule;
    rule.operands = operands;
    rule.results = results;
    std::size_t i = 0, k = 0;
    ((rule.operand[i++].dims = X::dims), ...);
    [&]<class... Y>(const std::tuple<Y...>*) {
      ((rule.result[k++].dims = Y::dims), ...);
    }(static_cast<const Results*>(nullptr));
    return rule;
  }();
  static constexpr OpInfo info = [] {
    OpInfo info;
    info.name = Op::name;
    info.rule = &rule;
    std::size_t k = 0;
    [&]<class... Y>(const std::tuple<Y...>*) {
      ((info.dtype[k++] = dtype_of<typename Y::value_type>()), ...);
    }(static_cast<const Results*>(nullptr));
    return info;
  }();

  static constexpr void body(spmd::Graph& graph, const spmd::Attributes& attributes,
                             const int* operand, int* result) {
    const Op op = attributes.as<Op>();
    const auto y = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return as_tuple(op.body(X(graph, operand[I])...));
    }(std::index_sequence_for<X...>{});
    std::apply([&](const auto&... each) { ((*result++ = each.value()), ...); }, y);
  }

  /// Adds a node to the graph. Its results have the extents that the body gives them.
  static constexpr Result add(const Op& op, const X&... x) {
    spmd::Graph& graph = first_tensor(x...).graph();
    spmd::Node node;
    node.op = &info;
    node.name = Op::name;
    node.body = &body;
    node.attributes = spmd::Attributes::of(op);
    std::size_t i = 0;
    ((node.operand[i++] = value_in(graph, node, first_tensor(x...).value(), x)), ...);

    spmd::Graph parts;
    std::array<int, std::size_t(operands)> in{};
    std::array<int, std::size_t(results)> out{};
    for (i = 0; i < in.size(); ++i)
      in[i] = parts.add(spmd::operand_value(graph.values[std::size_t(node.operand[i])]));
    body(parts, node.attributes, in.data(), out.data());
    node.first = int(graph.values.size());
    for (int k = 0; k < results; ++k) {
      const spmd::Value& y = parts.values[std::size_t(out[std::size_t(k)])];
      graph.add({int(graph.nodes.size()), k, -1, y.dtype, y.shape, false});
    }
    graph.nodes.push_back(node);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      if constexpr (is_traced<Result>) return Result(graph, node.first);
      else return Result(std::tuple_element_t<K, Result>(graph, node.first + int(K))...);
    }(std::make_index_sequence<std::size_t(results)>{});
  }
};

template <class Request, class Op, class... X>
constexpr auto trace_composite(const Request& request, const Op& op, const X&... x) {
  if (first_tensor(x...).graph().placer != nullptr) return call_body(request, op, x...);
  if constexpr (asks_placements<Request>)
    return call_as(request, ops::Redistribute{}, TracedComposite<Op, X...>::add(op, x...));
  else return TracedComposite<Op, X...>::add(op, x...);
}

}  // namespace cleave::inline v0::detail
