// What a function is traced with: the element types, names and extents of its arguments.
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
#include <cleave/spmd/extent.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/remake.hpp>
#include <cleave/spmd/traced.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::spmd {

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

/// A number as an argument, which may differ from run to run.
template <ScalarElement T>
struct NumberArg {
  const char* name;
};

/// An argument whose extents contain symbols.
template <class T, int Rank, class Device>
struct SymbolicArg {
  const char* name;
  std::array<Extent, std::size_t(Rank)> shape;
};

/// `arg<float>("x", {extent("batch"), 64})`: every run of the program may have another batch.
/// @see extent
template <Element T, class Device = Host, std::size_t Rank>
constexpr auto arg(const char* name, const Extent (&shape)[Rank]) {
  return SymbolicArg<T, int(Rank), Device>{name, std::to_array(shape)};
}

namespace detail {

/// An extent of dimension `dim` of the next input: a number while symbols stand for numbers.
constexpr index_t read_extent(Graph& graph, const Extent& extent, int dim) {
  index_t value = extent.value().constant;
  if (extent.symbols().count == 0) return value;
  if (!std::is_constant_evaluated() && BoundSymbols::evaluate(extent, value)) return value;
  SymbolicExtent symbolic{int(graph.inputs.size()), dim, {extent.value().constant, {}}};
  for (int i = 0; i < extent.symbols().count; ++i) {
    const int symbol = graph.symbols.add(extent.symbols().of[std::size_t(i)]);
    symbolic.extent.factor[std::size_t(symbol)] = extent.value().factor[std::size_t(i)];
  }
  graph.symbolic.push_back(symbolic);
  return 0;  // until set_samples
}

/// Gives the inputs of a graph the extents of a sample.
/// @throws Error if the extents of the inputs do not determine every symbol
constexpr void set_samples(Graph& graph) {
  if (graph.symbolic.empty()) return;
  const Shape samples = graph.symbols.samples();
  require_determined("trace", graph.symbols, graph.symbolic);
  for (const SymbolicExtent& e : graph.symbolic)
    graph.values[std::size_t(graph.inputs[std::size_t(e.input)].value)].shape[e.dim] =
        e.extent.at(samples);
}

/// Whether arguments have symbols.
template <class A>
inline constexpr bool has_symbols = false;
template <class T, int Rank, class Device>
inline constexpr bool has_symbols<SymbolicArg<T, Rank, Device>> = true;
template <class A, class Allocator>
inline constexpr bool has_symbols<std::vector<A, Allocator>> = has_symbols<A>;
template <class A, std::size_t N>
inline constexpr bool has_symbols<std::array<A, N>> = has_symbols<A>;
template <class... A>
inline constexpr bool has_symbols<std::tuple<A...>> = (has_symbols<A> || ...);

}  // namespace detail

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
    const std::string_view before = graph.inputs.empty() ? any_device : graph.inputs.back().device;
    if (before != any_device && before != Device::name)
      throw Error("trace", std::string("argument '") + given.name + "' is on the device " +
                               Device::name + ", those before it on " + std::string(before));
  }
};
template <class T>
struct InputOf<NumberArg<T>> {
  static constexpr TracedNumber<T> make(Graph& graph, const NumberArg<T>& given) {
    const int value = graph.add({-1, 0, -1, dtype_of<T>(), Shape{}, true});
    const char* const device = graph.inputs.empty() ? any_device : graph.inputs.back().device;
    graph.inputs.push_back({given.name, value, device});
    return {{graph, value}};
  }
};
template <class T, int Rank, class Device>
struct InputOf<SymbolicArg<T, Rank, Device>> {
  static constexpr Traced<T, Rank, Device> make(Graph& graph,
                                                const SymbolicArg<T, Rank, Device>& given) {
    Arg<T, Rank, Device> arg{given.name, {}};
    for (int d = 0; d < Rank; ++d)
      arg.shape[std::size_t(d)] = detail::read_extent(graph, given.shape[std::size_t(d)], d);
    return input(graph, arg);
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

}  // namespace cleave::inline v0::spmd
