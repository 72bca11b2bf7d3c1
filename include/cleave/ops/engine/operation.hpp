// An operation is defined by one struct. Its calls on local and distributed tensors, its gradient,
// its node in a graph, its verification and its row in the documentation are derived from it.
//
//     struct Matmul {
//       static constexpr const char* name = "matmul";
//       static constexpr const char* factors = "ik,kj->ij";
//       static constexpr const char* partials = "sum,R->sum; R,sum->sum";
//       static void kernel(const auto& on, const Task&, const auto& y, const auto& x,
//                          const auto& w);
//       static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x,
//                                      const auto& w) { return matmul(g, transpose(w)); }
//       ..
//     };
//     auto y = call_op(Matmul{}, x, w);
//
// Members, `static constexpr` unless they depend on attributes of the operation:
//
//   name        its name in errors, traces and graphs
//   factors     letters, as in sharding_rule; or a function of the operands' numbers of dimensions
//   partials    rows, as in sharding_rule; or `partials_for<T..>()` of the operands' element types
//   reduction, replicated, reads, broadcasts    as in sharding_rule; `replicated` and `reads` may
//               be functions, too
//   read_map(operand, d, in)   with `reads`: the DimMap from the result's indices to those of
//               dimension d of an operand; `in` are all, with their shapes. The kernel receives the
//               elements that its part of the result reads (or more), from the global index
//               task.in_box on
//   extends_operand()   with `read_map`, of the only operand: whether the elements beyond its edges
//               that are read exist; their value is beyond<T>(). They then are part of the operand
//   scans       with `reads` of the same factor: the dimension of the result whose indices depend
//   on
//               all indices before. The kernel computes the rank's part from its own elements;
//               add_totals(on, y, totals) adds the totals of the ranks before, which are the last
//               indices of their parts (the first ones if the member `reversed` is true) one behind
//               the other in their order
//   regrouping(dims)   of an operand with that many dimensions: required if factors have
//               parentheses. The operation does nothing else: where shards do not stay, ranks
//               exchange elements instead of calling it
//   result      the element type of the result, or `Types<..>` of several; by default the first
//               operand's; a member template `result_of<T..>` may compute it
//   extents()   the extents of the factors that only results have
//   kernel(on, task, results.., operands..)   computes one rank's part, on strided views
//   reduces     the mask of the dimensions that a reduction of one operand reduces, if a result
//   does
//               not depend on which others are computed with it: programs compute some at a time
//   replaces(result)   the operand in whose memory a program may compute a result, instead of
//   copying
//               it there: the kernel writes an element after it has read it
//   view(task)  instead of a kernel: makes the result a view of the first operand; if strides do
//               not allow that, it leaves task.out->data null, and the result is a contiguous copy
//   body(x..)   instead of rule and kernel, in operations derived from Composite; with the
//               member `takes_request`, body(request, x..) applies the request itself
//   gradient(wrt<I>, g, y, x..)   the gradient with respect to operand I, composed of operations;
//               without an overload, the operation is constant in that operand; if there are
//               several results, g and y are tuples
//   gradients(g, y, x..)   the gradients of all operands as a tuple, if it is cheaper to compute
//               them together: called by backward if all are wanted and not differentiated again
//
// Attributes that affect placements are template parameters; others are data members, which must be
// trivially copyable if the operation is to be traced.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/random_state.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave::inline v0 {

class MeshState;
struct Layout;

/// Names the operand that a gradient belongs to.
template <int I>
struct wrt {};

/// Element types: of operands, or of several results.
template <class... T>
struct Types {
  static constexpr int size = int(sizeof...(T));
};

/// A number among the operands of an operation: the same on every rank, without dimensions.
template <class T>
struct Number {
  using value_type = T;
  static constexpr int dims = 0;
  T value;
};

/// Base of elementwise operations: functors whose `operator()` is the kernel. Operands are aligned
/// at their last dimension, extents of 1 broadcast, any dimension may be sharded.
struct Elementwise {
  static constexpr bool broadcasts = true;

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    int most = 0;
    for (const int n : dims) most = n > most ? n : most;
    RuleText text;
    const auto letters = [&](int count) {
      for (int d = most - count; d < most; ++d) text += char('a' + d);
    };
    for (std::size_t i = 0; i < N; ++i) {
      if (i > 0) text += ',';
      letters(dims[i]);
    }
    text += '-';
    text += '>';
    letters(most);
    return text;
  }
};

/// Base of operations composed of others: they have a `body` instead of a rule and a kernel. If it
/// defines a gradient, it is one record of a tape; otherwise its body's operations are recorded.
struct Composite {};

/// Base of composites whose body depends on the placements of its operands. Traces keep them as one
/// node, whose body is called when a graph is expanded. @see ops/engine/unsharded_dims.hpp
struct CompositeByPlacement : Composite {};

/// A type-erased array: the element of index i is at offset sum(i[d] * strides[d]).
struct ArrayRef {
  void* data;
  const index_t* extents;
  const index_t* strides;
  int dims;
};

/// A type-erased operand of a call: the elements on this rank, and their distribution. Refers to
/// the operand. Members have no defaults, because calls declare larger arrays than they fill.
struct OperandRef : ArrayRef {
  const index_t* shape;  ///< global extents
  DType dtype;
  const Layout* layout;                  ///< null if not distributed
  const MeshState* mesh;                 ///< likewise
  const std::shared_ptr<void>* storage;  ///< null for a number
};

/// The context in which a kernel runs.
struct Task {
  const char* name = "";
  const OperandRef* in = nullptr;
  int operands = 0;
  ArrayRef* out = nullptr;      ///< the results; a view writes the first one's data
  index_t* strides = nullptr;   ///< of the first result; a view writes them
  const Box* box = nullptr;     ///< its global indices on this rank; set if `needs_box`
  const Box* in_box = nullptr;  ///< those of the first operand, likewise; of all, if it reads
  /// The random state of the running program; null outside a program.
  const RandomState* draws = nullptr;

  /// @throws Error with that message, and shapes, placements, mesh and rank of the call
  [[noreturn]] void fail(const std::string& message) const;
};

template <class Op>
inline constexpr bool is_elementwise = std::is_base_of_v<Elementwise, Op>;
template <class Op>
inline constexpr bool is_composite = std::is_base_of_v<Composite, Op>;
template <class Op>
inline constexpr bool is_by_placement = std::is_base_of_v<CompositeByPlacement, Op>;

namespace detail {

/// Whether an object has no state besides its type and need not be stored. (nvcc does not accept
/// kernel arguments with [[no_unique_address]] members.)
template <class X>
constexpr bool has_no_state() {
  if constexpr (requires { X::is_stateless; }) return X::is_stateless;
  else return std::is_empty_v<X>;
}
template <class X>
inline constexpr bool is_stateless = has_no_state<X>();

template <class Op>
inline constexpr bool is_view_op = requires { &Op::view; };

/// Whether the kernel needs the global indices that this rank computes.
template <class Op>
constexpr bool needs_box() {
  if constexpr (requires { Op::needs_box; }) return Op::needs_box;
  else return false;
}

template <class X>
inline constexpr bool is_number = false;
template <class T>
inline constexpr bool is_number<Number<T>> = true;

/// The element type of an entry of Types: a tensor's, or a number's.
template <class T>
struct ElementIn {
  using type = T;
};
template <class T>
struct ElementIn<Number<T>> {
  using type = T;
};
template <class T>
using element_in = typename ElementIn<T>::type;

template <class T>
struct AsTypes {
  using type = Types<T>;
};
template <class... T>
struct AsTypes<Types<T...>> {
  using type = Types<T...>;
};

/// The element types of the results of Op for operands of these element types.
template <class Op, class... T>
constexpr auto result_types() {
  if constexpr (requires { typename Op::template result_of<T...>; })
    return typename AsTypes<typename Op::template result_of<T...>>::type{};
  else if constexpr (requires { typename Op::result; })
    return typename AsTypes<typename Op::result>::type{};
  else if constexpr (is_elementwise<Op>)
    return Types<std::remove_cvref_t<std::invoke_result_t<const Op&, const T&...>>>{};
  else return Types<std::tuple_element_t<0, std::tuple<T..., int>>>{};
}
template <class Op, class... T>
using results_of = decltype(result_types<Op, element_in<T>...>());

/// An operation on operands with these element types and numbers of dimensions, which has one rule.
template <class Op, class T, int... Dims>
struct OpSignature {};

template <class Op, int... Dims>
constexpr RuleText factors_of() {
  if constexpr (requires { Op::factors(std::array<int, sizeof...(Dims)>{}); }) {
    return Op::factors(std::array<int, sizeof...(Dims)>{Dims...});
  } else {
    return joined(std::string_view(sharding_rule<Op>::factors));
  }
}

template <class Op, class... T>
constexpr const char* partials_of() {
  if constexpr (requires { Op::template partials_for<T...>(); })
    return Op::template partials_for<T...>();
  else if constexpr (requires { sharding_rule<Op>::partials; }) return sharding_rule<Op>::partials;
  else return "";
}

/// All elementwise operations without rows of partials share one rule per numbers of dimensions.
struct PlainElementwise : Elementwise {};

template <class Op, class... T, int... Dims>
auto rule_signature(Types<T...>, std::integer_sequence<int, Dims...>) {
  if constexpr (is_elementwise<Op>) {
    if constexpr (partials_of<Op, element_in<T>...>()[0] == '\0')
      return OpSignature<PlainElementwise, Types<>, Dims...>{};
    else return OpSignature<Op, Types<element_in<T>...>, Dims...>{};
  } else {
    return OpSignature<Op, Types<element_in<T>...>, Dims...>{};
  }
}

/// The key of the rule of a call.
template <class Op, class T, int... Dims>
using signature_of = decltype(rule_signature<Op>(T{}, std::integer_sequence<int, Dims...>{}));

}  // namespace detail

template <class Op, class... T, int... Dims>
struct sharding_rule<detail::OpSignature<Op, Types<T...>, Dims...>> {
  static constexpr RuleText factors = detail::factors_of<Op, Dims...>();
  static constexpr const char* partials = detail::partials_of<Op, T...>();
  static constexpr RuleText replicated = [] {
    RuleText letters;
    if constexpr (requires { Op::replicated(std::array<int, sizeof...(Dims)>{}); })
      return Op::replicated(std::array<int, sizeof...(Dims)>{Dims...});
    else if constexpr (requires { sharding_rule<Op>::replicated; })
      for (const char letter : std::string_view(sharding_rule<Op>::replicated)) letters += letter;
    return letters;
  }();
  static constexpr RuleText reads = [] {
    RuleText letters;
    if constexpr (requires { Op::reads(std::array<int, sizeof...(Dims)>{}); })
      return Op::reads(std::array<int, sizeof...(Dims)>{Dims...});
    else if constexpr (requires { sharding_rule<Op>::reads; })
      for (const char letter : std::string_view(sharding_rule<Op>::reads)) letters += letter;
    return letters;
  }();
  static constexpr ReduceOp reduction = [] {
    if constexpr (requires { sharding_rule<Op>::reduction; }) return sharding_rule<Op>::reduction;
    else return ReduceOp::sum;
  }();
  static constexpr bool broadcasts = detail::rule_broadcasts<Op>();
  static constexpr bool needs_box = detail::needs_box<Op>();
};

/// The rule of an operation on operands with these element types and numbers of dimensions:
/// `rule_for<ops::Add, Types<float, float>, 2, 1>`.
template <class Op, class T, int... Dims>
inline constexpr const Rule& rule_for = rule_of<detail::signature_of<Op, T, Dims...>>;

}  // namespace cleave::inline v0
