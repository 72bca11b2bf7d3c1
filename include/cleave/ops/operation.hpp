// What an operation is: one struct. Its calls on local and distributed tensors, its gradient, its
// node in a graph, its verification and its row in the documentation follow from it.
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
//   name        what errors, traces and graphs call it
//   factors     letters, as in sharding_rule; or a function of the operands' numbers of dimensions
//   partials    rows, as in sharding_rule; or `partials_for<T..>()` of the operands' element types
//   reduction, replicated, broadcasts    as in sharding_rule; `replicated` may be a function, too
//   result      the element type of the result, or `Types<..>` of several; by default the first
//               operand's; a member template `result_of<T..>` may compute it
//   extents()   of the factors that only results have
//   kernel(on, task, results.., operands..)   computes what one rank contributes, on strided views
//   view(task)  instead of a kernel: the result shares the elements of the first operand; where
//               its strides do not allow that, it leaves task.out->data null, and gets a dense copy
//   body(x..)   instead of rule and kernel, in operations derived from Composite; with the
//               member `takes_request`, body(request, x..) places the result itself
//   gradient(wrt<I>, g, y, x..)   the gradient of operand I, made of operations; where there is no
//               overload, the operation is constant in that operand
//               g and y of several results are tuples
//   gradients(g, y, x..)   the gradients of all operands as a tuple, where computing them together
//               takes less: what backward calls where all of them are wanted, of values alone
//
// Attributes that decide placements are template parameters; others are data members, trivially
// copyable where the operation shall be traced.
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

namespace cleave {

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

/// Base of operations that are functors of elements: `operator()` is the kernel. Operands are
/// aligned at their last dimension, extents of 1 repeat, any dimension may be sharded.
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

/// Base of operations that are made of others: `body` instead of a rule and a kernel. A gradient
/// of its own makes it one record of a tape; without one, the body's operations are recorded.
struct Composite {};

/// Elements without their type, as a kernel gets them: index i at offset sum(i[d] * strides[d]).
struct ArrayRef {
  void* data;
  const index_t* extents;
  const index_t* strides;
  int dims;
};

/// An operand of a call, without its types: the elements on this rank, and where they belong.
/// Refers to the operand. No member has a default: calls keep more room than they use.
struct OperandRef : ArrayRef {
  const index_t* shape;  ///< global extents
  DType dtype;
  const Layout* layout;                  ///< null for what is not distributed
  const MeshState* mesh;                 ///< likewise
  const std::shared_ptr<void>* storage;  ///< null for a number
};

/// What a kernel is told besides its arrays.
struct Task {
  const char* name = "";
  const OperandRef* in = nullptr;
  int operands = 0;
  ArrayRef* out = nullptr;       ///< the results; a view writes the first one's data
  index_t* strides = nullptr;    ///< of the first result; a view writes them
  const Box* box = nullptr;      ///< its global indices on this rank, where `needs_box` asks for them
  const Box* in_box = nullptr;   ///< those of the first operand, likewise
  /// Where the draws of the program that is run stand; null outside of one.
  const RandomState* draws = nullptr;

  /// @throws Error with that message, and shapes, placements, mesh and rank of the call
  [[noreturn]] void fail(const std::string& message) const;
};

template <class Op>
inline constexpr bool is_elementwise = std::is_base_of_v<Elementwise, Op>;
template <class Op>
inline constexpr bool is_composite = std::is_base_of_v<Composite, Op>;

namespace detail {

/// Whether nothing but its type tells an object from others: no bytes of it have to be kept. (nvcc
/// does not take kernel arguments with members that are [[no_unique_address]].)
template <class X>
constexpr bool has_no_state() {
  if constexpr (requires { X::is_stateless; }) return X::is_stateless;
  else return std::is_empty_v<X>;
}
template <class X>
inline constexpr bool is_stateless = has_no_state<X>();

template <class Op>
inline constexpr bool is_view_op = requires { &Op::view; };

/// Whether the kernel has to know which global indices this rank computes.
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

/// The results' element types of an Op on elements of these types.
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

/// An operation on operands with these element types and numbers of dimensions: what has a rule.
template <class Op, class T, int... Dims>
struct OpSignature {};

template <class Op, int... Dims>
constexpr RuleText factors_of() {
  if constexpr (requires { Op::factors(std::array<int, sizeof...(Dims)>{}); }) {
    return Op::factors(std::array<int, sizeof...(Dims)>{Dims...});
  } else {
    RuleText text;
    for (const char c : std::string_view(sharding_rule<Op>::factors)) text += c;
    return text;
  }
}

template <class Op, class... T>
constexpr const char* partials_of() {
  if constexpr (requires { Op::template partials_for<T...>(); }) return Op::template partials_for<T...>();
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

/// What the rule of a call is kept under.
template <class Op, class T, int... Dims>
using signature_of =
    decltype(rule_signature<Op>(T{}, std::integer_sequence<int, Dims...>{}));

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
  static constexpr ReduceOp reduction = [] {
    if constexpr (requires { sharding_rule<Op>::reduction; }) return sharding_rule<Op>::reduction;
    else return ReduceOp::sum;
  }();
  static constexpr bool broadcasts = detail::rule_broadcasts<Op>();
};

/// The rule of an operation on operands with these element types and numbers of dimensions:
/// `rule_for<ops::Add, Types<float, float>, 2, 1>`.
template <class Op, class T, int... Dims>
inline constexpr const Rule& rule_for = rule_of<detail::signature_of<Op, T, Dims...>>;

}  // namespace cleave
