// Traces functions of tensors into graphs.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/leaves.hpp>
#include <cleave/spmd/named_output.hpp>
#include <cleave/spmd/open_trace.hpp>
#include <cleave/spmd/remake.hpp>
#include <cleave/spmd/trace_args.hpp>
#include <cleave/spmd/traced.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// Appends an output: a traced value, the value inside of one that tracks gradients, or a number.
template <class X>
constexpr void collect_leaf(Graph& graph, const X& x, const char* name = "") {
  using V = cleave::detail::innermost_t<X>;
  constexpr bool is_output = ScalarElement<X> || cleave::detail::is_traced<V>;
  static_assert(is_output,
                "cleave: a traced function returns traced values, numbers, modules, and tuples, "
                "arrays and vectors of them");
  if constexpr (ScalarElement<X>) {
    graph.constants.push_back(Attributes::of(x));
    const int number = int(graph.constants.size()) - 1;
    graph.outputs.push_back({graph.add({-1, 0, number, dtype_of<X>(), Shape{}, false}), name});
  } else if constexpr (is_output) {
    const V& value = cleave::detail::innermost(x);
    if (&value.graph() != &graph) throw_output(graph, value.graph(), value.value());
    graph.outputs.push_back({value.value(), name});
  }
}
/// The same with a name; of a module, the outputs of its parts with theirs.
template <class X>
constexpr void collect_leaf(Graph& graph, const Named<X>& x) {
  if constexpr (requires { requires LeavesOf<X>::is_traced; }) {
    const auto names = LeavesOf<X>::names(x.value, x.name);
    std::size_t k = 0;
    each_leaf(x.value, [&](const auto& leaf) { collect_leaf(graph, leaf, names[k++]); });
  } else {
    collect_leaf(graph, x.value, x.name);
  }
}

}  // namespace detail

/// Traces an ordinary function of tensors.
///
///     const Graph graph = trace(step, arg<float>("x", {64, 32}), arg<float>("w", {32, 8}));
///
/// @param f     takes a Traced per argument; vectors, arrays, tuples and modules of them for
/// vectors,
///              arrays and tuples of arguments and `args_of(module)`. Returns a value, a number, or
///              a tuple, array, vector or module of them, nested at will: the graph's outputs are
///              the values inside, in order, with the names that `named` gives them
///
/// If extents of arguments contain symbols, the function is traced for sample extents, and again
/// for those of a run: the graph keeps a copy of it and of the arguments, modules included, which
/// share their elements. What the function captures by reference must live as long as the graph and
/// programs made of it.
///
/// @throws Error if the extents of operands do not match, or values of another trace are used; a
///               compile error in constant expressions
template <class F, class... A>
constexpr Graph trace(const F& f, const A&... args) {
  Graph graph;
  const detail::OpenTrace open(graph);
  const std::tuple<decltype(input(graph, args))...> inputs{input(graph, args)...};
  detail::set_samples(graph);
  // not by std::apply, whose exception specification would lengthen every error inside of f
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    each_leaf(f(std::get<I>(inputs)...),
              [&](const auto& leaf) { detail::collect_leaf(graph, leaf); });
  }(std::index_sequence_for<A...>{});
  Graph result = canonical(graph);
  if constexpr ((detail::has_symbols<A> || ...))
    if (!std::is_constant_evaluated() && is_symbolic(result))
      result.remake = Remake<Graph>([f, kept = std::tuple<A...>(args...)] {
        return std::apply([&](const A&... each) { return trace(f, each...); }, kept);
      });
  return result;
}

}  // namespace cleave::inline v0::spmd
