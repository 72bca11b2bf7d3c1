// Which traces of this thread have not ended, and errors about values of other traces. Constant
// expressions need no such record: the compiler refuses to read a graph that does not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/spmd/graph.hpp>

namespace cleave::inline v0::spmd::detail {

/// The numbers of the traces that have begun and not ended on this thread, the innermost last.
struct OpenTraces {
  std::vector<std::uint64_t> numbers{};
  std::uint64_t last = 0;  ///< the number of the latest trace

  static OpenTraces& here() {
    static thread_local OpenTraces traces;
    return traces;
  }
};

/// A scope in which a graph is filled by a trace.
class OpenTrace {
 public:
  constexpr explicit OpenTrace(Graph& graph) {
    if (!std::is_constant_evaluated()) graph.trace = begin();
  }
  OpenTrace(const OpenTrace&) = delete;  // a scope guard
  constexpr ~OpenTrace() {
    if (!std::is_constant_evaluated()) OpenTraces::here().numbers.pop_back();
  }

 private:
  static std::uint64_t begin() {
    OpenTraces& traces = OpenTraces::here();
    traces.numbers.push_back(++traces.last);
    return traces.last;
  }
};

/// @param trace  a number of a trace; 0: the graph is filled by hand
inline bool is_open(std::uint64_t trace) {
  if (trace == 0) return true;
  const std::vector<std::uint64_t>& open = OpenTraces::here().numbers;
  for (std::size_t i = open.size(); i-- > 0;)
    if (open[i] == trace) return true;
  return false;
}

/// @throws Error if the trace has ended
inline void require_open(std::uint64_t trace) {
  if (!is_open(trace))
    throw Error("trace", "the mesh of a traced value is used after its trace has ended");
}
inline void require_open(std::uint64_t trace, DType dtype, int dims) {
  if (is_open(trace)) return;
  throw Error("trace", std::string("a traced ") + name_of(dtype) + " value with " +
                           std::to_string(dims) +
                           " dimensions is used after its trace has ended; return it from the "
                           "traced function");
}

/// "argument 'x' [64, 32] of the trace of (x, w)", "result of matmul [64, 8] of .."
inline std::string described(const Graph& graph, int id) {
  const Value& value = graph.values[std::size_t(id)];
  std::string text =
      value.node >= 0 ? std::string("result of ") + graph.nodes[std::size_t(value.node)].name : "";
  std::string names;
  for (const Input& input : graph.inputs) {
    if (input.value == id) text = std::string("argument '") + input.name + "'";
    names += (names.empty() ? "" : ", ") + std::string(input.name);
  }
  return text + " " + cleave::to_string(value.shape) + " of the trace of (" + names + ")";
}

[[noreturn]] inline void throw_stale(const Graph& graph, int value) {
  throw Error("trace", described(graph, value) +
                           " is a view of a value that was changed in place later; call the "
                           "operation again after the change");
}

/// Whether a value is a view of another one, or of a view of it.
constexpr bool is_view_of(const Graph& graph, int value, int of) {
  while (graph.values[std::size_t(value)].node >= 0) {
    const Node& node = graph.nodes[std::size_t(graph.values[std::size_t(value)].node)];
    if (!node.op->is_view) return false;
    value = node.operand[0];
    if (value == of) return true;
  }
  return false;
}

[[noreturn]] inline void throw_target(const Graph& graph, const char* operation, int target,
                                      const char* why, int value) {
  throw Error(operation, described(graph, target) + why,
              {.shapes = cleave::to_string(graph.values[std::size_t(value)].shape) + " to " +
                         cleave::to_string(graph.values[std::size_t(target)].shape)});
}

/// An operation in place: handles of `target` stand for `value` from now on.
constexpr void update(Graph& graph, const char* operation, int target, int value) {
  const Value& old = graph.values[std::size_t(target)];
  if (!(old.shape == graph.values[std::size_t(value)].shape))
    throw_target(graph, operation, target, ": the target and the result differ in extents", value);
  if (old.node >= 0 && graph.nodes[std::size_t(old.node)].op->is_view)
    throw_target(graph, operation, target,
                 " is a view and cannot be changed in place in a traced function; change the value "
                 "that it is a view of",
                 value);
  const int latest = graph.updates_of(target).latest;
  graph.updates.resize(graph.values.size());
  for (const Node& node : graph.nodes) {
    if (!node.op->is_view) continue;
    if (!is_view_of(graph, node.first, latest >= 0 ? latest : target)) continue;
    Updates& view = graph.updates[std::size_t(node.first)];
    view.is_stale = node.first != value;
    ++view.count;
  }
  graph.updates[std::size_t(target)].latest = value;
  ++graph.updates[std::size_t(target)].count;
}

/// An operation has operands of two traces.
[[noreturn]] inline void throw_two_traces(const char* operation, const Graph& a, int of_a,
                                          const Graph& b, int of_b) {
  throw Error(operation,
              "the operands belong to two traces: " + described(a, of_a) + " and " +
                  described(b, of_b) + "; pass the value as an argument of the traced function",
              {.shapes = cleave::to_string(a.values[std::size_t(of_a)].shape) + " and " +
                         cleave::to_string(b.values[std::size_t(of_b)].shape)});
}

/// A traced function returns a value of another trace.
[[noreturn]] inline void throw_output(const Graph& graph, const Graph& other, int value) {
  const std::size_t k = graph.outputs.size();
  throw Error("trace",
              "output " + std::to_string(k) + " of the function is " + described(other, value) +
                  ", not a value of its own trace",
              {.shapes = cleave::to_string(other.values[std::size_t(value)].shape)});
}

}  // namespace cleave::inline v0::spmd::detail
