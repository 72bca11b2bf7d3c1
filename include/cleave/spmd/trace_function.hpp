// Traces functions of tensors into graphs.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/leaves.hpp>
#include <cleave/spmd/open_trace.hpp>
#include <cleave/spmd/traced.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::spmd {

/// The type, name and global extents of an argument of a traced function.
template <class T, int Rank, class Device>
struct Arg {
  const char* name;
  std::array<index_t, std::size_t(Rank)> shape;
};

/// `arg<float>("x", {64, 32})`: a Traced<float, 2>.
template <Element T, class Device = Host, std::size_t Rank>
constexpr auto arg(const char* name, const index_t (&shape)[Rank]) {
  Arg<T, int(Rank), Device> result{name, {}};
  for (std::size_t d = 0; d < Rank; ++d) result.shape[d] = shape[d];
  return result;
}
/// A scalar argument: a value without dimensions.
template <Element T, class Device = Host>
constexpr auto arg(const char* name) {
  return Arg<T, 0, Device>{name, {}};
}

/// How an argument of `trace` becomes inputs of a graph.
template <class A>
struct InputOf {
  static constexpr A make(Graph&, const A& given) {
    static_assert(sizeof(A*) == 0,
                  "cleave: trace takes arg<T>(name, extents), vectors, arrays and tuples of them, "
                  "and args_of(module)");
    return given;
  }
};

/// New inputs of a graph: one for an Arg, several for a vector, array, tuple or module of them.
template <class A>
constexpr auto input(Graph& graph, const A& given) {
  return InputOf<A>::make(graph, given);
}

template <class T, int Rank, class Device>
struct InputOf<Arg<T, Rank, Device>> {
  static constexpr Traced<T, Rank, Device> make(Graph& graph, const Arg<T, Rank, Device>& given) {
    require(graph, given);
    const int value = graph.add({-1, 0, -1, dtype_of<T>(), Shape(given.shape), false});
    graph.inputs.push_back({given.name, value, Device::name});
    return {graph, value};
  }

 private:
  static constexpr void require(const Graph& graph, const Arg<T, Rank, Device>& given) {
    cleave::detail::checked_bytes(given.shape.data(), Rank, sizeof(T));
    if (!graph.inputs.empty() &&
        std::string_view(graph.inputs.back().device) != std::string_view(Device::name))
      throw Error("trace", std::string("argument '") + given.name + "' is on the device " +
                               Device::name + ", those before it on " + graph.inputs.back().device);
  }
};
template <class A, class Allocator>
struct InputOf<std::vector<A, Allocator>> {
  static constexpr auto make(Graph& graph, const std::vector<A, Allocator>& given) {
    std::vector<decltype(input(graph, given[0]))> inputs;
    for (const A& each : given) inputs.push_back(input(graph, each));
    return inputs;
  }
};
template <class A, std::size_t N>
struct InputOf<std::array<A, N>> {
  static constexpr auto make(Graph& graph, const std::array<A, N>& given) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<decltype(input(graph, given[0])), N>{input(graph, given[I])...};
    }(std::make_index_sequence<N>{});
  }
};
template <class... A>
struct InputOf<std::tuple<A...>> {
  static constexpr auto make(Graph& graph, const std::tuple<A...>& given) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<decltype(input(graph, std::get<I>(given)))...>{
          input(graph, std::get<I>(given))...};
    }(std::index_sequence_for<A...>{});
  }
};

namespace detail {

/// Appends an output: a traced value, the value inside of one that tracks gradients, or a number.
template <class X>
constexpr void collect_leaf(Graph& graph, const X& x) {
  using V = cleave::detail::innermost_t<X>;
  constexpr bool is_output = ScalarElement<X> || cleave::detail::is_traced<V>;
  static_assert(is_output,
                "cleave: a traced function returns traced values, numbers, modules, and tuples, "
                "arrays and vectors of them");
  if constexpr (ScalarElement<X>) {
    graph.constants.push_back(Attributes::of(x));
    graph.outputs.push_back(
        graph.add({-1, 0, int(graph.constants.size()) - 1, dtype_of<X>(), Shape{}, false}));
  } else if constexpr (is_output) {
    const V& value = cleave::detail::innermost(x);
    if (&value.graph() != &graph) throw_output(graph, value.graph(), value.value());
    graph.outputs.push_back(value.value());
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
///              the values inside, in order
/// @throws Error if the extents of operands do not match, or values of another trace are used; a
///               compile error in constant expressions
template <class F, class... A>
constexpr Graph trace(const F& f, const A&... args) {
  Graph graph;
  const detail::OpenTrace open(graph);
  const std::tuple<decltype(input(graph, args))...> inputs{input(graph, args)...};
  // not by std::apply, whose exception specification would lengthen every error inside of f
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    each_leaf(f(std::get<I>(inputs)...),
              [&](const auto& leaf) { detail::collect_leaf(graph, leaf); });
  }(std::index_sequence_for<A...>{});
  return canonical(graph);
}

}  // namespace cleave::spmd
