// Traced: a value without elements; an operation on it appends a node to a graph.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/rules/explain_solution.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/open_trace.hpp>

namespace cleave::inline v0 {

/// The mesh that a program will run on, while it is traced: what factories take.
template <class Device>
class TracedMesh {
 public:
  constexpr TracedMesh(spmd::Graph& graph, std::uint64_t trace) : graph_(&graph), trace_(trace) {}

  /// @throws Error if the trace has ended; a compile error in constant expressions
  constexpr spmd::Graph& graph() const {
    if (!std::is_constant_evaluated()) spmd::detail::require_open(trace_);
    return *graph_;
  }

 private:
  spmd::Graph* graph_;
  std::uint64_t trace_;
};

/// A value of a program that is being traced. A handle, for use until its trace ends.
template <Element T, int Rank, class Device = Host>
class Traced : public RefusedElements<Traced<T, Rank, Device>> {
 public:
  using value_type = T;
  using device_type = Device;
  static constexpr int dims = Rank;

  constexpr Traced(spmd::Graph& graph, int value)
      : graph_(&graph), trace_(graph.trace), value_(value) {}

  /// Global extents.
  constexpr const Shape& shape() const { return graph().values[std::size_t(value_)].shape; }
  /// The global extent of dimension d; negative d counts from the end.
  /// @throws Error if there is no such dimension
  constexpr index_t extent(int d) const {
    const int k = d < 0 ? d + Rank : d;
    if (k < 0 || k >= Rank)
      throw Error(
          "trace",
          "dimension " + std::to_string(d) + " of " + std::to_string(Rank) + " does not exist",
          {.shapes = to_string(shape())});
    return shape()[k];
  }
  /// The number of global elements.
  constexpr index_t size() const { return shape().product(); }
  /// @throws Error if the trace has ended; a compile error in constant expressions
  constexpr spmd::Graph& graph() const {
    if (!std::is_constant_evaluated()) spmd::detail::require_open(trace_, dtype_of<T>(), Rank);
    return *graph_;
  }
  /// The number of the value in the graph: the latest one, after operations in place.
  /// @throws Error if it is a view of a value that was changed in place later
  constexpr int value() const {
    const spmd::Graph& graph = this->graph();
    if (graph.updates.empty()) return value_;
    const spmd::Updates updates = graph.updates_of(value_);
    if (updates.is_stale) spmd::detail::throw_stale(graph, value_);
    return updates.latest >= 0 ? updates.latest : value_;
  }
  /// The number of in-place changes of the value.
  constexpr unsigned changes() const { return graph().updates_of(value_).count; }

  /// Lets this handle and its copies stand for another value: an operation in place.
  /// @throws Error if the extents differ, or this is a view of another value
  constexpr void update(const char* operation, const Traced& to) const {
    spmd::detail::update(graph(), operation, value_, to.value());
  }
  /// The placements, which are known in an expansion; of no axes outside of one.
  constexpr Layout layout() const {
    spmd::Placer* const placer = graph().placer;
    return placer != nullptr ? placer->layout_of(graph(), value()) : Layout{};
  }
  /// Whether dimensions of the mask are known to be whole on each rank.
  constexpr bool is_whole(unsigned mask) const {
    return graph().placer != nullptr && layout().axes_where([&](const auto& p) {
      return p.shards() && (mask >> p.dim & 1u);
    }) == 0;
  }

  /// The same value under other placements, one per axis of the mesh that the program will run on.
  template <PlacementType... P>
  constexpr Traced redistribute(P... p) const {
    return cleave::redistribute(*this, p...);
  }
  template <class... P>
  constexpr Traced redistribute(Placements<P...> p) const {
    return cleave::redistribute(*this, p);
  }

  constexpr Traced redistribute(const Layout& to) const;

  /// The mesh that the program will run on, for factories. @see traced_factories.hpp
  constexpr TracedMesh<Device> mesh() const { return {graph(), trace_}; }

  // What other values have and this one cannot: compile errors.
  template <bool HasElements = false>
  constexpr T item() const {
    static_assert(HasElements,
                  "cleave: a traced value has no elements, so no item(): return it from "
                  "the traced function, run the program and read its output");
    return {};
  }
  template <bool HasElements = false, class... P>
  constexpr Traced to_local(P...) const {
    static_assert(HasElements,
                  "cleave: a traced value has no elements, so no to_local(): trace a "
                  "function of global values; local parts exist when the program runs");
    return *this;
  }
  template <bool HasElements = false>
  constexpr Traced full_tensor() const {
    static_assert(HasElements,
                  "cleave: a traced value has no elements, so no full_tensor(): redistribute it to "
                  "Replicate, or return it and call full_tensor() on the output of the program");
    return *this;
  }
  template <bool IsPlaced = false>
  constexpr Traced placements() const {
    static_assert(IsPlaced,
                  "cleave: a traced value has no placements(): the expansion determines "
                  "them; resolve(x) and requests like those of x are recorded");
    return *this;
  }

 private:
  spmd::Graph* graph_;
  std::uint64_t trace_;
  int value_;
};

/// A number that every run of a program is given: kernels of all devices take it by value.
template <ScalarElement T>
struct TracedNumber {
  using value_type = T;
  static constexpr int dims = 0;
  Traced<T, 0> input;
};

namespace detail {

template <class T>
inline constexpr bool is_number<TracedNumber<T>> = true;
template <class T>
struct TypeEntry<TracedNumber<T>> {
  using type = Number<T>;
};

template <class X>
inline constexpr bool is_traced = false;
template <class T, int Rank, class Device>
inline constexpr bool is_traced<Traced<T, Rank, Device>> = true;

template <class T, int Rank, class Device>
inline constexpr int call_level<Traced<T, Rank, Device>> = 2;

/// The number of a value that a node of `graph` uses.
/// @throws Error if it belongs to another trace; a compile error in constant expressions
template <class T, int Rank, class Device>
constexpr int value_in(const spmd::Graph& graph, const spmd::Node& node, int leading,
                       const Traced<T, Rank, Device>& x) {
  if (&x.graph() != &graph)
    spmd::detail::throw_two_traces(node.name, graph, leading, x.graph(), x.value());
  return x.value();
}

/// Writes the placements of a request into a node.
template <class... R>
constexpr void ask(const Request<R...>&, const spmd::Graph&, spmd::Node& node) {
  const auto note = [&]<class... P>(Placements<P...>) {
    const int dims = node.op->rule->result[0].dims;
    node.asks = true;
    ((node.asked[node.asked.axes++] = PlacementTraits<P>::value(dims)), ...);
  };
  if constexpr (asks_placements<Request<R...>>) note(typename Request<R...>::asked{});
  node.is_explicit = Request<R...>::is_explicit;
}
template <class X>
constexpr void ask(const RequestLike<X>& request, const spmd::Graph& graph, spmd::Node& node) {
  node.like = value_in(graph, node, node.operand[0], request.like);
}

/// A request for placements that are values.
struct RequestLayout {
  static constexpr bool is_explicit = false;
  Layout layout;
};
constexpr void ask(const RequestLayout& request, const spmd::Graph&, spmd::Node& node) {
  node.asks = true;
  node.asked = request.layout;
}

/// Calls a composite whose body depends on placements. @see traced_composite.hpp
template <class Request, class Op, class... X>
constexpr auto trace_composite(const Request& request, const Op& op, const X&... x);

template <>
struct CallPath<2> {
  template <class Request, class Op, class... X>
  static constexpr auto call(const Request& request, const Op& op, const X&... x) {
    constexpr bool all_traced = ((is_traced<X> || is_number<X>) && ...);
    if constexpr (all_traced && is_composite<Op>) {
      return trace_composite(request, op, x...);
    } else if constexpr (all_traced) {
      return traced(request, op, x...);
    } else {
      static_assert(all_traced,
                    "cleave: an operation mixes traced values with tensors; make the tensor an "
                    "argument of the traced function");
      // without a result type, compilers do not report follow-up errors in uses of the result
      return op.mixes_traced_values_with_tensors;
    }
  }

 private:
  template <class Request, class Op, class... X>
  static constexpr auto traced(const Request& request, const Op& op, const X&... x) {
    using Device = typename first_tensor_t<X...>::device_type;
    using Info = InfoOf<Op, Device, types_of<X...>, X::dims...>;
    static_cast<void>(OperandCheck<typename Info::Sig, X...>{});
    const auto& leading = first_tensor(x...);
    spmd::Graph& graph = leading.graph();
    spmd::Node node;
    node.op = &Info::value;
    node.name = Op::name;
    node.attributes = spmd::Attributes::of(op);
    node.is_placement = std::is_same_v<Op, ops::Redistribute>;
    std::size_t i = 0;
    ((node.operand[i++] = value_of(graph, node, leading.value(), x)), ...);
    ask(request, graph, node);
    node.first = int(graph.values.size());
    add_results(graph, node, fresh_extents(op));
    graph.nodes.push_back(node);
    if (graph.placer != nullptr) graph.placer->place_last(graph);
    return [&]<class... R, int... Dims, int... K>(Types<R...>, std::integer_sequence<int, Dims...>,
                                                  std::integer_sequence<int, K...>) {
      const std::tuple results{Traced<R, Dims, Device>(graph, node.first + K)...};
      if constexpr (sizeof...(R) == 1) return std::get<0>(results);
      else return results;
    }(typename Info::Results{}, typename Info::ResultDims{},
           std::make_integer_sequence<int, Info::Results::size>{});
  }

  template <class T, int Rank, class Device>
  static constexpr int value_of(spmd::Graph& graph, const spmd::Node& node, int leading,
                                const Traced<T, Rank, Device>& x) {
    return value_in(graph, node, leading, x);
  }
  template <class T>
  static constexpr int value_of(spmd::Graph& graph, const spmd::Node& node, int leading,
                                const TracedNumber<T>& x) {
    return value_in(graph, node, leading, x.input);
  }
  template <class T>
  static constexpr int value_of(spmd::Graph& graph, const spmd::Node&, int, const Number<T>& x) {
    return graph.add_number(x.value);
  }

  [[noreturn]] static void throw_extents(const spmd::Graph& graph, const spmd::Node& node,
                                         const ExtentsConflict& conflict) {
    const auto shape = [&](int i) -> const Shape& {
      return graph.values[std::size_t(node.operand[std::size_t(i)])].shape;
    };
    const Rule& rule = *node.op->rule;
    std::string shapes;
    for (int i = 0; i < rule.operands; ++i) shapes += (i > 0 ? " and " : "") + to_string(shape(i));
    throw Error(node.name, extents_error(conflict, rule, shape(conflict.operand)[conflict.dim]),
                {.shapes = shapes});
  }

  static constexpr void add_results(spmd::Graph& graph, const spmd::Node& node,
                                    const Shape& fresh) {
    const Rule& rule = *node.op->rule;
    std::array<ExtentsRef, std::size_t(max_operands)> shapes{};
    for (int i = 0; i < rule.operands; ++i) {
      const Shape& shape = graph.values[std::size_t(node.operand[std::size_t(i)])].shape;
      shapes[std::size_t(i)] = {shape.values.data(), shape.dims};
    }
    FactorExtents extents{};
    const ExtentsConflict conflict =
        read_extents(rule, node.op->broadcasts, shapes.data(), fresh, extents);
    if (conflict.operand >= 0) throw_extents(graph, node, conflict);
    for (int k = 0; k < rule.results; ++k) {
      const DType dtype = node.op->dtype[std::size_t(k)];
      const Shape shape = extents.shape(rule.result[std::size_t(k)]);
      checked_bytes(shape.values.data(), shape.dims, size_of(dtype));
      graph.add({int(graph.nodes.size()), k, -1, dtype, shape, false});
    }
  }
};

}  // namespace detail

template <Element T, int Rank, class Device>
constexpr Traced<T, Rank, Device> Traced<T, Rank, Device>::redistribute(const Layout& to) const {
  return detail::call_as(detail::RequestLayout{to}, ops::Redistribute{}, *this);
}

/// The number of the value in its graph, element type and extents: "%2: f32[4, 8]".
template <class T, int Rank, class Device>
std::string to_string(const Traced<T, Rank, Device>& x) {
  return "%" + std::to_string(x.value()) + ": " + short_name_of(dtype_of<T>()) +
         to_string(x.shape());
}
/// Writes `to_string(x)`.
template <class Traits, class T, int Rank, class Device>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Traced<T, Rank, Device>& x) {
  return out << to_string(x);
}

}  // namespace cleave::inline v0

#include <cleave/spmd/traced_composite.hpp>
