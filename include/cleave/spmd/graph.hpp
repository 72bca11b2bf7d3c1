// A program as a value: nodes that call operations, and the values that they produce. Untyped plain
// data, the same at compile time and at run time; passes, expansion and costs are functions of it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/random_state.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/engine/op_info.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/spmd/extent.hpp>
#include <cleave/spmd/frozen.hpp>
#include <cleave/spmd/remake.hpp>

namespace cleave::inline v0::spmd {

/// The data members of an operation, as bytes: graphs hold operations by value.
struct Attributes {
  static constexpr std::size_t size = 64;
  alignas(16) std::array<std::byte, size> bytes{};

  /// The bytes of an operation, or of a number.
  template <class Op>
  static constexpr Attributes of(const Op& op) {
    Attributes attributes;
    if constexpr (!cleave::detail::is_stateless<Op>) {
      static_assert(std::is_trivially_copyable_v<Op> && sizeof(Op) <= size,
                    "cleave: a traced operation must be trivially copyable, of at most 64 bytes");
      using Bytes = std::array<std::byte, sizeof(Op)>;
      Bytes raw;
      // clang 14 has no bit_cast of complex numbers in constant expressions
      if constexpr (is_complex<Op>) raw = std::bit_cast<Bytes>(std::array{op.real(), op.imag()});
      else raw = std::bit_cast<Bytes>(op);
      for (std::size_t i = 0; i < sizeof(Op); ++i) attributes.bytes[i] = raw[i];
    }
    return attributes;
  }

  /// The operation of these bytes.
  template <class Op>
  constexpr Op as() const {
    if constexpr (cleave::detail::is_stateless<Op>) {
      return Op{};
    } else {
      std::array<std::byte, sizeof(Op)> raw{};
      for (std::size_t i = 0; i < sizeof(Op); ++i) raw[i] = bytes[i];
      return std::bit_cast<Op>(raw);
    }
  }
};

/// A result of a node, an input of the program, or a constant number.
struct Value {
  int node = -1;      ///< that produces the value; -1: an input or a constant
  int result = 0;     ///< which of the node's results
  int constant = -1;  ///< its index among the constants, or -1
  DType dtype{};
  Shape shape{};           ///< global extents
  bool is_number = false;  ///< kernels take it by value, not as a tensor

  constexpr bool is_input() const { return node < 0 && constant < 0; }
};

struct Graph;

/// Calls the body of a composite on values of a graph and writes the numbers of its results.
using TracedBody = void (*)(Graph& graph, const Attributes& op, const int* operand, int* result);

/// The same value as an operand of a part of the program: of no node.
constexpr Value operand_value(const Value& value) {
  return {-1, 0, -1, value.dtype, value.shape, value.is_number};
}

/// A call of an operation.
struct Node {
  const cleave::detail::OpInfo* op = nullptr;
  const char* name = "";
  TracedBody body = nullptr;  ///< of a composite whose body depends on placements; else null
  std::array<int, std::size_t(max_operands)> operand{};  ///< values
  int first = 0;                                         ///< the value of the first result
  bool is_placement = false;                             ///< changes placements only
  int like = -1;               ///< requested: the placements of this value, partials resolved
  bool asks = false;           ///< requested: the placements `asked`
  bool is_explicit = false;    ///< requested: no operand is redistributed
  int axis = -1;               ///< of a functional collective: the axis of the mesh; else -1
  Placement taken{}, given{};  ///< likewise: the placements of operand and result on that axis
  Layout asked{};
  Attributes attributes{};

  constexpr int operands() const { return op->rule->operands; }
  constexpr int results() const { return op->rule->results; }
};

/// The device of an input that is a number, before those that are on a device.
inline constexpr const char* any_device = "";

/// An input of a program.
struct Input {
  const char* name = "";
  int value = 0;
  const char* device = "";  ///< the name of the device whose kernels the graph calls
  int updated = -1;         ///< the value that replaces its elements in a run; -1: they stay
};

/// An output of a graph or a program.
struct Output {
  int value = 0;
  const char* name = "";  ///< empty: only its number is known

  friend constexpr bool operator==(const Output& a, const Output& b) {
    return a.value == b.value && std::string_view(a.name) == std::string_view(b.name);
  }
};

/// The members of a graph other than its lists.
struct GraphFacts {
  std::uint64_t draws = 0;  ///< the number of random draws
  Symbols symbols{};        ///< in extents of inputs; values then have extents of a sample
};

/// The extents of the results of an operation that no operand determines.
///
/// @param values  of the graph or program, with the results from `first` on
constexpr Shape fresh_extents(const cleave::detail::OpInfo& op, const auto& values,
                              std::size_t first) {
  Shape fresh;
  for (std::size_t k = 0; k < std::size_t(op.rule->results); ++k)
    for (int d = 0; d < op.rule->result[k].dims; ++d) {
      const cleave::detail::DimPlace from = op.table->source[k][std::size_t(d)];
      if (from.operand >= 0) continue;
      if (fresh.dims <= from.dim) fresh.dims = from.dim + 1;
      fresh[from.dim] = values[first + k].shape[d];
    }
  return fresh;
}

/// A graph without heap memory, for constants. @see frozen
template <int Values, int Nodes, int Constants, int Inputs, int Outputs, int Extents>
struct FixedGraph : GraphFacts {
  std::array<Value, std::size_t(Values)> values{};
  std::array<Node, std::size_t(Nodes)> nodes{};
  std::array<Attributes, std::size_t(Constants)> constants{};
  std::array<Input, std::size_t(Inputs)> inputs{};
  std::array<Output, std::size_t(Outputs)> outputs{};
  std::array<SymbolicExtent, std::size_t(Extents)> symbolic{};
  Graph (*remake)() = nullptr;  ///< @see Graph
};

/// Places the nodes of a graph while they are traced, and so knows the placements of its values.
class Placer {
 public:
  /// Places the last node of the graph.
  constexpr virtual void place_last(const Graph& graph) = 0;
  constexpr virtual Layout layout_of(const Graph& graph, int value) = 0;

 protected:
  constexpr ~Placer() = default;
};

/// What in-place operations have done to a value while it is traced.
struct Updates {
  int latest = -1;        ///< the value that a handle of it now stands for; -1: itself
  unsigned count = 0;     ///< of in-place changes, also through the value that it is a view of
  bool is_stale = false;  ///< whether it is a view of a value that has been changed since
};

/// A program of a single device.
struct Graph : GraphFacts {
  using Facts = GraphFacts;
  template <int... Sizes>
  using Fixed = FixedGraph<Sizes...>;

  std::vector<Value> values{};
  std::vector<Node> nodes{};  ///< operands come before their users
  std::vector<Attributes> constants{};
  std::vector<Input> inputs{};
  std::vector<Output> outputs{};
  std::vector<SymbolicExtent> symbolic{};
  Remake<Graph> remake{};          ///< traces the function again; empty without symbols
  std::vector<Updates> updates{};  ///< of the first values; empty before the first update
  std::uint64_t trace = 0;         ///< the number of the trace that fills the graph; 0: none
  Placer* placer = nullptr;        ///< places nodes as they are added; null: placements are unknown

  /// @return the number of the new value
  constexpr int add(const Value& value) {
    values.push_back(value);
    return int(values.size()) - 1;
  }

  /// Adds a constant that kernels take by value.
  template <class T>
  constexpr int add_number(const T& value) {
    constants.push_back(Attributes::of(value));
    return add({-1, 0, int(constants.size()) - 1, dtype_of<T>(), Shape{}, true});
  }

  /// What in-place operations have done to a value.
  constexpr Updates updates_of(int value) const {
    return std::size_t(value) < updates.size() ? updates[std::size_t(value)] : Updates{};
  }

  /// The state of the next draw, with its offset relative to the start of a run.
  constexpr RandomState take_draw() { return {0, draws++}; }
};

/// Any type with the members of a graph.
template <class G>
concept AnyGraph = requires(const G& graph) {
  graph.values[0].node;
  graph.nodes[0].op;
  graph.constants.size();
  graph.inputs[0].name;
  graph.outputs[0].name;
};

/// The lists of a graph, in the order of FixedGraph's sizes.
template <AnyGraph G>
constexpr auto lists_of(G& graph) {
  return std::tie(graph.values, graph.nodes, graph.constants, graph.inputs, graph.outputs,
                  graph.symbolic);
}

namespace detail {

/// Copies the nodes and values that the outputs and updates of a graph need, in the order of need.
class Canonical {
 public:
  constexpr explicit Canonical(const Graph& from)
      : from_(from), value_(from.values.size(), -1), done_(from.nodes.size(), 0) {
    for (const Input& input : from.inputs)
      result_.inputs.push_back({input.name, keep(input.value), input.device, -1});
    for (const Output& output : from.outputs)
      result_.outputs.push_back({reach(output.value), output.name});
    for (std::size_t i = 0; i < from.inputs.size(); ++i)
      if (const int latest = from.updates_of(from.inputs[i].value).latest; latest >= 0)
        result_.inputs[i].updated = reach(latest);
    static_cast<GraphFacts&>(result_) = from;  // draws of unused nodes, too, as in eager calls
    result_.symbolic = from.symbolic;
    result_.remake = from.remake;
  }

  constexpr Graph take() { return static_cast<Graph&&>(result_); }

 private:
  /// The new number of a value that no node produces, or that has been emitted.
  constexpr int keep(int id) {
    int& renamed = value_[std::size_t(id)];
    if (renamed >= 0) return renamed;
    Value value = from_.values[std::size_t(id)];
    if (value.constant >= 0) {
      result_.constants.push_back(from_.constants[std::size_t(value.constant)]);
      value.constant = int(result_.constants.size()) - 1;
    }
    return renamed = result_.add(value);
  }

  /// The new number of a value that is needed.
  constexpr int reach(int id) {
    if (from_.values[std::size_t(id)].node >= 0) visit(from_.values[std::size_t(id)].node);
    return keep(id);
  }

  /// A node that must be emitted before this one, or -1.
  constexpr int missing(const Node& node) const {
    const auto producer = [&](int value) {
      const int made = from_.values[std::size_t(value)].node;
      return made >= 0 && !done_[std::size_t(made)] ? made : -1;
    };
    for (int i = 0; i < node.operands(); ++i)
      if (const int made = producer(node.operand[std::size_t(i)]); made >= 0) return made;
    return node.like >= 0 ? producer(node.like) : -1;
  }

  constexpr void visit(int root) {
    std::vector<int> stack{root};
    while (!stack.empty()) {
      const int id = stack.back();
      if (const int before = missing(from_.nodes[std::size_t(id)]); before >= 0) {
        stack.push_back(before);
        continue;
      }
      stack.pop_back();
      if (!done_[std::size_t(id)]) emit(id);
    }
  }

  constexpr void emit(int id) {
    done_[std::size_t(id)] = 1;
    Node node = from_.nodes[std::size_t(id)];
    for (int i = 0; i < node.operands(); ++i)
      node.operand[std::size_t(i)] = keep(node.operand[std::size_t(i)]);
    if (node.like >= 0) node.like = keep(node.like);
    const int first = node.first;
    for (int k = 0; k < node.results(); ++k) {
      Value value = from_.values[std::size_t(first + k)];
      value.node = int(result_.nodes.size());
      const int renamed = result_.add(value);
      value_[std::size_t(first + k)] = renamed;
      if (k == 0) node.first = renamed;
    }
    result_.nodes.push_back(node);
  }

  const Graph& from_;
  Graph result_{};
  std::vector<int> value_;  ///< new numbers of values
  std::vector<char> done_;  ///< of nodes (vector<bool> is not constexpr in clang 14)
};

}  // namespace detail

/// The same program with nodes in the order in which the outputs, then the updates of inputs need
/// them, operands from left to right; nodes that neither needs are omitted. The graph then does not
/// depend on the order in which a compiler evaluates function arguments.
constexpr Graph canonical(const Graph& graph) { return detail::Canonical(graph).take(); }

}  // namespace cleave::inline v0::spmd
