// An operation on given element types, type-erased, as the verifier takes it. `subject_of` compiles
// the code once per operation and element types.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/grad/backward.hpp>
#include <cleave/ops/engine/into.hpp>
#include <cleave/rules/explain_solution.hpp>
#include <cleave/spmd/trace_function.hpp>

#include "graph_run.hpp"
#include "list/listed.hpp"
#include "naive/operation.hpp"

namespace cleave::testing {

/// Traces a program for the given global extents of its operands.
using Program = std::function<spmd::Graph(const std::vector<Shape>& shapes)>;

/// Calls an operation on local tensors with a target: `call_op(out(y), op, x..)`. @return y
using Into = std::function<Held(const spmd::Graph& call, const std::vector<Held>& x)>;

struct Subject {
  std::string name;                    ///< "matmul(x, w) of float64, float64"
  std::vector<DType> types{};          ///< per operand of the call
  std::vector<int> dims{};             ///< likewise
  std::vector<std::string> letters{};  ///< of each operand's dimensions; equal for equal extents
  int operands = 0;                    ///< operands of the operation: the first ones of the call
  bool broadcasts = false;
  Naive naive{};
  Program call{};
  Into into{};                                      ///< of the first row of element types only
  std::vector<std::pair<int, Program>> gradient{};  ///< (operand, program of (g, y, x..))
  Program tape{};  ///< program of (g, x..): the gradients by backward, in the order of `gradient`
  std::string rule{};        ///< its text; empty for a composite
  bool has_new_rule = true;  ///< whether no earlier subject in the list has this rule
  bool is_first = true;      ///< whether this is the first row of element types of its entry
  int constants = 0;         ///< operands of the operation that have no gradient
  std::string reason{};      ///< why they have none
};

/// All operations of the list.
std::vector<Subject> all_subjects();

namespace typed {

template <std::size_t Rank>
std::array<index_t, Rank> extents_of(const Shape& shape) {
  std::array<index_t, Rank> extents{};
  for (std::size_t d = 0; d < Rank; ++d) extents[d] = shape[int(d)];
  return extents;
}

/// An operation on these element types and numbers of dimensions.
template <class Op, class T, class Dims>
struct Subjects;
template <class Op, class... T, int... Dims>
struct Subjects<Op, Types<T...>, std::integer_sequence<int, Dims...>> {
  static constexpr int operands = int(sizeof...(T));

  template <class Call>
  static Program call(const Call& call) {
    return [call](const std::vector<Shape>& shapes) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return spmd::trace(
            call, spmd::Arg<T, Dims, Host>{"x", extents_of<std::size_t(Dims)>(shapes[I])}...);
      }(std::index_sequence_for<T...>{});
    };
  }

  /// The gradients of operands I.. of a call, computed by `backward`.
  template <class Y, int... I, class Call>
  static Program tape(const Call& call, std::integer_sequence<int, I...>) {
    return [call](const std::vector<Shape>& shapes) {
      const spmd::Graph forward = Subjects::call(call)(shapes);
      const Shape& result = forward.values[std::size_t(forward.outputs[0].value)].shape;
      constexpr unsigned tracks = (0u | ... | (1u << I));
      const auto differentiated = [&call](const auto& g, const auto&... x) {
        return [&]<std::size_t... K>(std::index_sequence<K...>) {
          const std::tuple leaves{leaf < (tracks >> K & 1u) != 0 > (x)...};
          backward(std::apply(call, leaves), g);
          return std::tuple{grad(std::get<std::size_t(I)>(leaves))...};
        }(std::index_sequence_for<T...>{});
      };
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return spmd::trace(
            differentiated,
            spmd::Arg<typename Y::value_type, Y::dims, Host>{
                "g", extents_of<std::size_t(Y::dims)>(result)},
            spmd::Arg<T, Dims, Host>{"x", extents_of<std::size_t(Dims)>(shapes[K])}...);
      }(std::index_sequence_for<T...>{});
    };
  }
  template <bool Tracks, class X>
  static constexpr auto leaf(const X& x) {
    if constexpr (Tracks && !std::is_integral_v<typename X::value_type>) return requires_grad(x);
    else return x;
  }

  /// Factors, rows of partials and everything else that determines placements.
  static std::string rule_text() {
    if constexpr (is_composite<Op>) {
      return "";
    } else {
      const Rule& rule = cleave::rule_for<Op, Types<T...>, Dims...>;
      std::string text = to_string(rule) + " reduces by " + name_of(rule.reduction) +
                         ", replicates " + std::to_string(rule.replicated) + ";";
      if (detail::needs_box<Op>()) text += std::string(Op::name) + " knows its place;";
      for (int r = 0; r < rule.rows; ++r) {
        const Rule::Row& row = rule.row[std::size_t(r)];
        for (int i = 0; i < rule.operands; ++i)
          text += " " + std::to_string(row.operand[std::size_t(i)]);
        text += " ->";
        for (int k = 0; k < rule.results; ++k)
          text += " " + std::to_string(row.result[std::size_t(k)]);
        text += ';';
      }
      return text;
    }
  }

  static std::vector<std::string> letters() {
    std::vector<std::string> result;
    if constexpr (is_composite<Op>) {
      for (const int dims : {Dims...})
        result.push_back(std::string("abcd").substr(0, std::size_t(dims)));
    } else {
      const Rule& rule = cleave::rule_for<Op, Types<T...>, Dims...>;
      for (int i = 0; i < rule.operands; ++i) {
        result.emplace_back();
        for (int d = 0; d < rule.operand[std::size_t(i)].dims; ++d)
          result.back() +=
              rule.letter[std::size_t(rule.operand[std::size_t(i)].factor[std::size_t(d)])];
      }
    }
    return result;
  }

  template <int I, class Y>
  static constexpr bool has_own_gradient = requires(
      const Op& op, const Y& y, const Traced<T, Dims>&... x) { op.gradient(wrt<I>{}, y, y, x...); };
  /// Whether operand I has a gradient, defined by the operation or by the operations it is composed
  /// of.
  template <int I, class Y>
  static constexpr bool has_gradient = has_own_gradient<I, Y> || [] {
    if constexpr (!is_composite<Op>) return false;
    else
      return []<std::size_t... K>(std::index_sequence<K...>) {
        return tape::is_tracked<decltype(call_op(
            Op{}, leaf < int(K) == I > (std::declval<const Traced<T, Dims>&>())...))>;
      }(std::index_sequence_for<T...>{});
  }();

  /// The gradient of a composite operation with respect to operand I.
  template <int I>
  static constexpr auto by_backward(const Op& op, const auto& g, const auto&... x) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      const std::tuple leaves{leaf < int(K) == I > (x)...};
      backward(std::apply([&op](const auto&... v) { return call_op(op, v...); }, leaves), g);
      return grad(std::get<std::size_t(I)>(leaves));
    }(std::index_sequence_for<T...>{});
  }

  /// The operation with the attributes that the call gives it for these extents.
  /// @param op  the operation, if it is a composite
  static Op made(const spmd::Graph& graph, Op op) {
    if constexpr (!std::is_empty_v<Op> && !is_composite<Op>)
      for (const spmd::Node& node : graph.nodes)
        if (node.op == &detail::InfoOf<Op, Host, Types<T...>, Dims...>::value)
          std::memcpy(&op, node.attributes.bytes.data(), sizeof(Op));
    return op;
  }

  template <class X>
  static X tensor(const Held& x) {
    constexpr auto dims = std::size_t(X::dims);
    return X::adopt(static_cast<typename X::value_type*>(x.data), extents_of<dims>(x.extents),
                    extents_of<dims>(x.strides), x.storage);
  }
  /// @param whole  the operation, if it is a composite
  static Into into(const Op& whole) {
    return [whole](const spmd::Graph& call, const std::vector<Held>& x) {
      using Result = ResultOf<Op>;
      using Y = Tensor<typename Result::value_type, Result::dims>;
      const Shape& extents = call.values[std::size_t(call.outputs[0].value)].shape;
      const Y y(extents_of<std::size_t(Y::dims)>(extents));
      const Op op = made(call, whole);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        const Y& target =
            call_op<explicit_communication>(out(y), op, tensor<Tensor<T, Dims>>(x[I])...);
        if (&target != &y) throw Error(Op::name, "another tensor than the target is returned");
      }(std::index_sequence_for<T...>{});
      return Held{dtype_of<typename Y::value_type>(),
                  extents,
                  {},
                  extents,
                  Shape(y.strides()),
                  y.storage(),
                  y.data()};
    };
  }

  template <int I, class Y>
  static Program gradient(const Program& call, const Op& whole) {
    return [call, whole](const std::vector<Shape>& shapes) {
      const spmd::Graph forward = call(shapes);
      const Op op = made(forward, whole);
      const Shape& result = forward.values[std::size_t(forward.outputs[0].value)].shape;
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        const spmd::Arg<typename Y::value_type, Y::dims, Host> like_y{
            "g", extents_of<std::size_t(Y::dims)>(result)};
        return spmd::trace(
            [&op](const auto& g, const auto& y, const auto&... x) {
              if constexpr (has_own_gradient<I, Y>) return op.gradient(wrt<I>{}, g, y, x...);
              else return by_backward<I>(op, g, x...);
            },
            like_y, like_y,
            spmd::Arg<T, Dims, Host>{"x", extents_of<std::size_t(Dims)>(shapes[K])}...);
      }(std::index_sequence_for<T...>{});
    };
  }

  template <int I, class Y>
  static void add_gradient(Subject& subject, const Op& op) {
    if constexpr (has_gradient<I, Y>)
      subject.gradient.emplace_back(I, gradient<I, Y>(subject.call, op));
    else ++subject.constants;
  }

  template <class O>
  using ResultOf =
      decltype(call_op(std::declval<const O&>(), std::declval<const Traced<T, Dims>&>()...));

  /// Whether gradients are tested: of floating-point results, in floating-point operands, both in
  /// full precision.
  template <class Result>
  static constexpr bool differentiates =
      sizeof(typename Result::value_type) >= 8 &&
      !std::is_integral_v<typename Result::value_type> && (!std::is_integral_v<T> || ...) &&
      ((sizeof(T) >= 8 || std::is_same_v<T, bool>) && ...);

  /// The operands that have a gradient, as an integer_sequence.
  template <class Result, std::size_t... I>
  static auto differentiable(std::index_sequence<I...>) {
    constexpr std::array<bool, sizeof...(I)> has{has_gradient<int(I), Result>...};
    constexpr int count = (0 + ... + int(has[I]));
    constexpr auto which = [&] {
      std::array<int, std::size_t(count) + 1> numbers{};
      std::size_t n = 0;
      ((has[I] ? void(numbers[n++] = int(I)) : void()), ...);
      return numbers;
    }();
    return [&]<std::size_t... N>(std::index_sequence<N...>) {
      return std::integer_sequence<int, which[N]...>{};
    }(std::make_index_sequence<std::size_t(count)>{});
  }

  /// @tparam All  the whole call; the operands of Op are its first ones
  template <class All, class Call>
  static void add_gradients(Subject& subject, const Call& call, const Op& op) {
    using Result = ResultOf<Op>;
    if constexpr (differentiates<Result>) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (add_gradient<int(I), Result>(subject, op), ...);
      }(std::index_sequence_for<T...>{});
      const auto operands_with = differentiable<Result>(std::index_sequence_for<T...>{});
      if constexpr (operands_with.size() > 0)
        subject.tape = All::template tape<Result>(call, operands_with);
    } else if constexpr (std::is_integral_v<typename Result::value_type> ||
                         (std::is_integral_v<T> && ...)) {
      subject.constants = operands;
    }
  }
};

/// The first `Count` of a list of types and of a list of numbers.
template <int Count, class T, class Dims>
struct FirstOf;
template <int Count, class... T, int... Dims>
struct FirstOf<Count, Types<T...>, std::integer_sequence<int, Dims...>> {
  template <std::size_t... I>
  static auto of(std::index_sequence<I...>) {
    constexpr std::array<int, sizeof...(Dims)> dims{Dims...};
    return std::pair<Types<std::tuple_element_t<I, std::tuple<T...>>...>,
                     std::integer_sequence<int, dims[I]...>>{};
  }
  using type = decltype(of(std::make_index_sequence<std::size_t(Count)>{}));
};

}  // namespace typed

/// A call on operands of these element types and numbers of dimensions.
///
/// @tparam Operands  the number of operands of Op, the first ones of the call
/// @tparam Row       the number of the row of element types
template <class Op, int Operands, int Row = 1, class... T, int... Dims, class Call>
Subject subject_of(const std::string& usage, Types<T...>, std::integer_sequence<int, Dims...>,
                   const Call& call, const Naive& naive, const std::string& reason = "",
                   const Op& made = Op{}) {
  using All = typed::Subjects<Op, Types<T...>, std::integer_sequence<int, Dims...>>;
  using First =
      typename typed::FirstOf<Operands, Types<T...>, std::integer_sequence<int, Dims...>>::type;
  using Own = typed::Subjects<Op, typename First::first_type, typename First::second_type>;
  Subject subject{usage + " of"};
  for (const DType type : {dtype_of<T>()...})
    subject.name += (subject.types.empty() ? " " : ", ") + std::string(name_of(type)),
        subject.types.push_back(type);
  subject.dims = {Dims...};
  subject.letters = Own::letters();
  subject.rule = Own::rule_text();
  for (std::size_t i = subject.letters.size(); i < subject.dims.size(); ++i)
    subject.letters.push_back(std::string("abcd").substr(0, std::size_t(subject.dims[i])));
  if (!naive.letters.empty()) subject.letters = naive.letters;
  subject.operands = Operands;
  subject.broadcasts = is_elementwise<Op>;
  subject.naive = naive;
  subject.call = All::call(call);
  if constexpr (Row == 0) subject.into = Own::into(made);
  subject.reason = reason;
  Own::template add_gradients<All>(subject, call, made);
  return subject;
}

/// Adds one subject per row of element types of an entry in the list.
template <class Entry>
void add_subjects(const Entry& entry, std::vector<Subject>& subjects) {
  using Op = typename Entry::op;
  const auto add = [&]<class... Row, int... I>(ops::TypeRows<Row...>,
                                               std::integer_sequence<int, I...>) {
    (subjects.push_back(
         subject_of<Op, Entry::operands, I>(entry.usage, Row{}, typename Entry::dims{}, entry.call,
                                            naive_of(entry.made), entry.constant, entry.made)),
     ...);
  };
  const std::size_t first = subjects.size();
  [&]<class... Row>(ops::TypeRows<Row...> rows) {
    add(rows, std::make_integer_sequence<int, int(sizeof...(Row))>{});
  }(typename Entry::rows{});
  for (std::size_t i = first; i < subjects.size(); ++i) subjects[i].is_first = i == first;
}

}  // namespace cleave::testing
