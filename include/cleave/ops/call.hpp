// One call of an operation: its rule is solved for the operands' types, the operands are brought
// to the placements it needs, the local kernel runs, the result gets its placements.
//
// Everything about placements is a constant of the types. At run time a call compares extents and
// meshes, and costs nothing else where no operand moves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/call_frame.hpp>
#include <cleave/ops/operand.hpp>
#include <cleave/ops/request.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave {

/// Shows, in a compile error, which operand (counted from 0) of an operation would move from which
/// placements to which.
template <class Op, int Operand, class From, class To>
struct operand_would_be_redistributed {
  static_assert(sizeof(Op*) == 0,
                "cleave: explicit_communication: this operand would be redistributed from the "
                "placements From to the placements To; call redistribute before the operation");
};

namespace detail {

/// The solution for packed layouts; evaluated once per combination by the compiler.
template <class Op, int Axes, std::uint64_t... Code>
inline constexpr Solution solution_of =
    solve(rule_of<Op>, OperandLayouts{Layout::unpacked(Code, Axes)...});
template <class Op, int Axes, std::uint64_t Asked, std::uint64_t... Code>
inline constexpr Solution asked_solution_of = [] {
  const Layout asked = Layout::unpacked(Asked, Axes);
  return solve(rule_of<Op>, OperandLayouts{Layout::unpacked(Code, Axes)...}, &asked);
}();

template <class Op, class Asked, class Mesh, class... X>
constexpr const Solution& solve_call() {
  constexpr int axes = Mesh::axis_count;
  if constexpr (std::is_same_v<Asked, Unasked>) {
    return solution_of<Op, axes, operand_layout<X>(axes).packed()...>;
  } else {
    static_assert(Asked::size == axes,
                  "cleave: an operation is asked for exactly one placement per mesh axis");
    constexpr Layout asked = layout_of<Asked, rule_of<Op>.result.dims>;
    static_assert(!asked.has_partial(), "cleave: an operation cannot be asked for Partial");
    return asked_solution_of<Op, axes, asked.packed(), operand_layout<X>(axes).packed()...>;
  }
}

/// Whether an operand has to communicate.
constexpr bool communicates(const Layout& from, const Layout& to) {
  for (int a = 0; a < from.axes; ++a)
    if (cleave::communicates(move_between(from[a], to[a]))) return true;
  return false;
}

/// What can be wrong with the types of operands; instantiated before anything else of a call.
template <class Op, class... X>
struct OperandCheck {
  static_assert(!(is_tensor<X> || ...) || !(is_dtensor<X> || ...),
                "cleave: an operation mixes a Tensor with DTensors; place the Tensor first "
                "(distribute_tensor, DTensor::from_local)");
  static_assert(!(is_tensor<X> && ...),
                "cleave: operations take DTensors; distribute_tensor makes one of a Tensor");
  static_assert((on_mesh<typename MeshOf<X...>::type, X>() && ...),
                "cleave: the operands of an operation are on meshes of different types");
  static_assert(rule_of<Op>.operands == int(sizeof...(X)),
                "cleave: the operation has another number of operands than its sharding_rule");
  static constexpr bool dims_agree() {
    int i = 0;
    return ((rule_of<Op>.operand[std::size_t(i++)].dims == X::dims) && ...);
  }
  static_assert(dims_agree(),
                "cleave: an operand has another number of dimensions than its letters in the "
                "sharding_rule");
};

/// An operand as the frame sees it.
template <class X>
OperandInfo operand_info(const X& x) {
  if constexpr (is_dtensor<X>) return {x.shape().data(), X::dims, &X::layout, &x.mesh().state()};
  else return {};
}

/// Those of a call; a base, since the frame is one, too, and refers to them.
template <int Count>
struct OperandInfos {
  std::array<OperandInfo, std::size_t(Count)> infos;
};

/// A call of Op with operands X, DTensors or scalars.
template <class Op, class Request, class... X>
class Call : OperandCheck<Op, X...>, OperandInfos<int(sizeof...(X))>, public CallFrame {
  using Infos = OperandInfos<int(sizeof...(X))>;

 public:
  using Mesh = typename MeshOf<X...>::type;
  static constexpr Solution solution = solve_call<Op, typename Request::asked, Mesh, X...>();
  static constexpr int dims = rule_of<Op>.result.dims;
  using Device = typename Mesh::device_type;
  using Result = placements_t<solution.result.packed(), Mesh::axis_count>;

  /// @see CallFrame
  explicit Call(const char* name, const X&... x,
                const std::array<index_t, max_dims>& new_extents = {})
      : Infos{{operand_info(x)...}},
        CallFrame(name, rule_of<Op>, rule_broadcasts<Op>(), this->infos.data(), new_extents) {}

  /// The part of operand I that the kernel needs, under `solution.required[I]`.
  /// @collective every rank of the mesh, if the placements differ
  template <int I, class A>
  decltype(auto) local(const A& x) const {
    if constexpr (!is_dtensor<A>) {
      return (x);
    } else {
      constexpr Layout from = A::layout, to = solution.required[I];
      if constexpr (from == to) {
        repeatable(I, to);
        return (x.local());
      } else {
        if constexpr (Request::is_explicit && communicates(from, to))
          static_cast<void>(
              operand_would_be_redistributed<Op, I, typename A::placements_type,
                                             placements_t<to.packed(), Mesh::axis_count>>{});
        return moved(I, x.local(), route_of<from.packed(), to.packed(), Mesh::axis_count, A::dims>);
      }
    }
  }

  /// Runs kernel(local operands..), which returns the local Tensor under `solution.computed`.
  /// @collective every rank of the mesh, if an operand or the result has to move
  template <class Kernel>
  auto run(Kernel&& kernel, const X&... x) const {
    return run(kernel, std::make_integer_sequence<int, int(sizeof...(X))>{}, x...);
  }

  /// The DTensor whose local part the kernel has computed, on the mesh of x.
  template <class T, class A>
  DTensor<T, dims, Mesh, Result> result(Tensor<T, dims, Device> local, const A& x) const {
    constexpr std::uint64_t from = solution.computed.packed(), to = solution.result.packed();
    const auto shape = to_array<dims>(result_shape());
    if constexpr (from != to)
      local = redistribute_local(local, route_of<from, to, Mesh::axis_count, dims>, mesh(), shape,
                                 name());
    return {std::move(local), x.mesh(), shape};
  }

 private:
  template <class Kernel, int... I>
  auto run(Kernel& kernel, std::integer_sequence<int, I...>, const X&... x) const {
    return result(kernel(local<I>(x)...), first_dtensor(x...));
  }

  template <class A, class... Rest>
  static const auto& first_dtensor(const A& x, const Rest&... rest) {
    if constexpr (is_dtensor<A>) return x;
    else return first_dtensor(rest...);
  }
};

}  // namespace detail

/// Runs an operation of your own: `sharding_rule<Op>` says how its operands have to lie, `kernel`
/// computes what one rank contributes.
///
///     auto y = apply_op<Scale>("scale", [](const Tensor<float, 2>& x) { .. return y; }, x);
///
/// @tparam Request  see request.hpp
/// @param name      for errors and traces
/// @param kernel    takes the local operands, returns the local result, a Tensor
/// @param x         DTensors on one mesh
/// @collective      every rank of the mesh, if an operand or the result has to be redistributed
/// @throws Error    if the meshes differ, or the extents of a factor
template <class Op, class... Request, class Kernel, class... X>
auto apply_op(const char* name, Kernel&& kernel, const X&... x) {
  return detail::Call<Op, detail::Request<Request...>, X...>(name, x...).run(kernel, x...);
}

}  // namespace cleave
