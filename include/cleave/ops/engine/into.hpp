// Operations that write to an existing tensor instead of allocating one.
//
//     call_op(out(y), Scale{2.0}, x);        // y = 2 x
//     call_op(out(x), Scale{2.0}, x);        // x = 2 x, in place
//     sum(out(y), x, dim<0>{});              // functions take targets, too
//
// The target must have the element type, extents and placements of the result. It may be an operand
// of an elementwise operation; otherwise it must not share elements with an operand, nor in another
// order. Values of tapes cannot be targets: backward may need the old elements. If a tensor that a
// tape has kept was changed, backward throws. @see mark_changed. In a trace the target stands for
// the result from then on, and arguments that were targets are written at the end of a run.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/run_into.hpp>

namespace cleave::inline v0 {

/// Names the tensor to which a call writes its result: `add(out(y), a, b)`, `exp(out(y), x)`.
template <class Y>
struct Out {
  const Y& target;
};
template <AnyTensor Y>
constexpr Out<Y> out(const Y& y) {
  return {y};
}

/// Shows, in a compile error, the placements of a result and of the target, which differ.
template <class Op, class Result, class Target>
struct target_is_placed_otherwise {
  static_assert(std::is_same_v<Result, Target>,
                "cleave: the target and the result of an operation have different placements; "
                "redistribute the operands or the target first");
};

namespace detail {

/// Whether a call may write to a Y; if not, a static_assert says why.
template <class Op, class Y, class... X>
constexpr bool is_target() {
  constexpr bool tracked = call_level<Y> == 3 || ((call_level<X> == 3) || ...);
  constexpr bool traced = call_level<Y> == 2;
  constexpr bool mixed = ((AnyTensor<X> && (call_level<X> == 2) != traced) || ...);
  constexpr bool alike = ((!AnyTensor<X> || is_dtensor<X> == is_dtensor<Y>) && ...);
  static_assert(
      !tracked,
      "cleave: an operation in place cannot change a value that tracks gradients; outside of "
      "what is differentiated, it may change x.value()");
  static_assert(tracked || !mixed,
                "cleave: an operation in place mixes traced values with tensors; make the tensor "
                "an argument of the traced function");
  static_assert(alike,
                "cleave: an operation mixes a Tensor with DTensors; place the Tensor first "
                "(distribute_tensor, from_local)");
  return !tracked && !mixed && alike;
}

template <class Result, class Y>
constexpr void require_value_of_target() {
  static_assert(AnyTensor<Result>,
                "cleave: an operation that writes to a target must have one result");
  static_assert(std::is_same_v<typename Result::value_type, typename Y::value_type>,
                "cleave: the target and the result of an operation have different element types");
  static_assert(
      Result::dims == Y::dims,
      "cleave: the target and the result of an operation have different numbers of dimensions");
}

template <class Info, class Y>
constexpr void require_type_of_target() {
  static_assert(Info::Results::size == 1,
                "cleave: an operation that writes to a target must have one result");
  []<class R, class... More, int D, int... Dims>(Types<R, More...>,
                                                 std::integer_sequence<int, D, Dims...>) {
    static_assert(std::is_same_v<R, typename Y::value_type>,
                  "cleave: the target and the result of an operation have different element types");
    static_assert(
        D == Y::dims,
        "cleave: the target and the result of an operation have different numbers of dimensions");
  }(typename Info::Results{}, typename Info::ResultDims{});
}

/// @throws Error if the target is cut in another way, of those that types leave open
template <class Y>
void require_same_cuts(const Y& y, const char* name, const Layout& result) {
  if constexpr (has_open_layout<Y>)
    if (!(y.actual_layout() == result))
      throw Error(name,
                  "the result has the placements " + to_string(result) +
                      "; redistribute the operands or the target first",
                  y.context());
}

/// Copies the result of operations that have no kernel of their own, composites and views, or of a
/// function that consists of several.
template <class Op, class Y, class Result>
void copy_result(const Y& y, const char* name, const Result& result) {
  require_value_of_target<Result, Y>();
  const auto fail = [&](const char* message) {
    ErrorContext context = context_of(result);
    context.shapes += " into " + to_string(shape_of(y));
    throw Error(name, message, context);
  };
  const auto copy = [&](const auto& to, const auto& from) {
    if (to.shape() != from.shape()) fail("the target and the result differ in mesh or extents");
    if (!has_distinct_elements(to.view())) fail("the target repeats elements; clone it first");
    to.copy_(overlap(to.view(), from.view()) ? from.clone() : from);
  };
  if constexpr (is_dtensor<Y>) {
    static_cast<void>(target_is_placed_otherwise<Op, typename Result::placements_type,
                                                 typename Y::placements_type>{});
    if (!(y.mesh() == result.mesh()) || y.shape() != result.shape())
      fail("the target and the result differ in mesh or extents");
    require_same_cuts(y, name, result.actual_layout());
    copy(y.to_local(), result.to_local());
  } else {
    copy(y, result);
  }
}

template <class... A, class Y, class Result>
constexpr const Y& copy_to(const Out<Y>& y, const char* name, const Result& result) {
  if constexpr (!is_target<void, Y, A...>()) {
  } else if constexpr (!AnyTensor<Result>) {
    require_value_of_target<Result, Y>();
  } else if constexpr (call_level<Y> == 2) {
    require_value_of_target<Result, Y>();
    y.target.update(name, result);
  } else {
    copy_result<void>(y.target, name, result);
  }
  return y.target;
}

/// Writes the result of a call on operands whose types leave blocks or cut points open.
template <class Call, class Request, class Op, class Y, std::size_t N>
void write_open(const Y& y, const Op& op, const std::array<OperandRef, N>& in) {
  const OpenCall open(Call::value, in.data(), nullptr, Request::is_explicit);
  require_same_cuts(y, Op::name, open.solution.result[0]);
  run_placed_into<typename Call::Device>(open.call, &op, fresh_extents(op), in.data(),
                                         operand_of(y));
}

/// Writes the result of a call to y. @param x  tensors and Numbers
template <class Request, class Op, class Y, class... X>
constexpr void write_into(const Y& y, const Op& op, const X&... x) {
  static_assert(!asks_placements<Request>,
                "cleave: the result of a call that writes to a target has the placements of the "
                "target; request none");
  if constexpr (!is_target<Op, Y, X...>()) {
  } else if constexpr (call_level<Y> == 2) {
    const auto result = call_as(Request{}, op, x...);
    using Result = std::remove_const_t<decltype(result)>;
    require_value_of_target<Result, Y>();
    y.update(Op::name, result);
  } else if constexpr (is_composite<Op> || is_view_op<Op>) {
    copy_result<Op>(y, Op::name, call_as(Request{}, op, x...));
  } else {
    const std::array<OperandRef, sizeof...(X)> in{operand_of(x)...};
    if constexpr (is_dtensor<Y>) {
      using Call = PlacedCallOf<Op, Request, X...>;
      using Result = placements_t<ResultLayout<typename Call::Solved, 0>>;
      static_assert(std::is_same_v<typename Call::Mesh, typename Y::mesh_type>,
                    "cleave: the operands of an operation are on meshes of different types");
      static_cast<void>(OperandCheck<typename Call::Info::Sig, X...>{});
      require_type_of_target<typename Call::Info, Y>();
      static_cast<void>(target_is_placed_otherwise<Op, Result, typename Y::placements_type>{});
      if constexpr (Call::is_open) {
        write_open<Call, Request>(y, op, in);
      } else {
        run_placed_into<typename Call::Device>(Call::value, &op, fresh_extents(op), in.data(),
                                               operand_of(y));
      }
    } else {
      using Device = typename Y::device_type;
      using Info = InfoOf<Op, Device, types_of<X...>, X::dims...>;
      static_cast<void>(OperandCheck<typename Info::Sig, X...>{});
      require_type_of_target<Info, Y>();
      run_local_into<Device>(Info::value, &op, fresh_extents(op), in.data(), operand_of(y));
    }
  }
}

}  // namespace detail

/// Calls an operation and writes its result to an existing tensor.
///
/// @tparam Request  explicit_communication, or nothing
/// @param x     tensors, local or on the mesh of the target, and numbers
/// @return      the target
/// @cost        operations made of others, and views, are copied to the target
/// @collective  every rank of the mesh, if an operand has to be redistributed
/// @throws Error if the target and the result differ in extents, or the target repeats elements or
///               shares them with an operand in another order; nothing is written then
template <class... Request, class Op, AnyTensor Y, AnyOperand... X>
  requires(AnyTensor<X> || ...)
constexpr const Y& call_op(const Out<Y>& y, const Op& op, const X&... x) {
  detail::write_into<detail::Request<Request...>>(y.target, op, detail::as_operand(x)...);
  return y.target;
}

}  // namespace cleave::inline v0
