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

/// The operands of a call as the frame sees them.
template <class... X>
struct OperandInfos {
  std::array<OperandInfo, sizeof...(X)> infos;

  explicit OperandInfos(const X&... x) : infos{info(x)...} {}

 private:
  template <class A>
  static OperandInfo info(const A& x) {
    if constexpr (is_dtensor<A>) return {x.shape().data(), A::dims, &A::layout, &x.mesh().state()};
    else return {};
  }
};

/// A call of Op with operands X, DTensors or scalars.
template <class Op, class Request, class... X>
class Call : OperandCheck<Op, X...>, OperandInfos<X...>, public CallFrame {
 public:
  using Mesh = typename MeshOf<X...>::type;
  static constexpr Solution solution = solve_call<Op, typename Request::asked, Mesh, X...>();
  static constexpr int dims = rule_of<Op>.result.dims;
  using Device = typename Mesh::device_type;
  using Computed = placements_t<solution.computed.packed(), Mesh::axis_count>;
  using Result = placements_t<solution.result.packed(), Mesh::axis_count>;

  /// @see CallFrame
  explicit Call(const char* name, const X&... x,
                const std::array<index_t, max_dims>& new_extents = {})
      : OperandInfos<X...>(x...),
        CallFrame(name, rule_of<Op>, rule_broadcasts<Op>(), this->infos.data(), new_extents) {}

  /// Global extents of the result.
  std::array<index_t, std::size_t(dims)> shape() const {
    std::array<index_t, std::size_t(dims)> extents{};
    for (int d = 0; d < dims; ++d) extents[std::size_t(d)] = result_extent(d);
    return extents;
  }

  /// The part of operand I that the kernel needs, under `solution.required[I]`.
  /// @collective every rank of the mesh, if the placements differ
  template <int I, class A>
  decltype(auto) local(const A& x) const {
    if constexpr (!is_dtensor<A>) {
      return (x);
    } else {
      constexpr Layout required = solution.required[I];
      using To = placements_t<required.packed(), Mesh::axis_count>;
      using From = typename A::placements_type;
      if constexpr (std::is_same_v<From, To>) {
        if constexpr (rule_broadcasts<Op>()) repeatable(I, required);
        return (x.local());
      } else {
        if constexpr (Request::is_explicit && communicates(A::layout, required))
          static_cast<void>(operand_would_be_redistributed<Op, I, From, To>{});
        if constexpr (rule_broadcasts<Op>())
          if (const Layout target = repeatable(I, required); !(target == required))
            return moved(x, target);
        return typename A::local_type(redistribute_to<To>(x, name()).local());
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
  auto result(Tensor<T, dims, Device> local, const A& x) const {
    const DTensor<T, dims, Mesh, Computed> computed(std::move(local), mesh_of(x), shape());
    return redistribute_to<Result>(computed, name());
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
  template <class A>
  static const Mesh& mesh_of(const A& x) {
    return x.mesh();
  }

  /// A redistribution whose target is known at run time only.
  template <class A>
  typename A::local_type moved(const A& x, const Layout& target) const {
    if (target == A::layout) return x.local();
    const redistribution::Block block = redistribution::run<Device>(
        nullptr, A::layout, target, {x.local().storage(), x.local().view()},
        {x.mesh().state(), Shape(x.shape()), name()});
    return A::local_type::adopt(static_cast<typename A::value_type*>(block.view.data),
                                to_array<A::dims>(block.view.extents),
                                to_array<A::dims>(block.view.strides), block.storage);
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
