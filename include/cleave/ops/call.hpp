// One call of an operation: its rule is solved for the operands' types, the operands are brought
// to the placements it needs, the local kernel runs, the result gets its placements.
//
// Everything about placements is a constant of the types. At run time a call compares extents and
// meshes, and costs nothing else where no operand moves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/operand.hpp>
#include <cleave/ops/request.hpp>
#include <cleave/rules/explain.hpp>
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

/// What can be wrong with the types of operands; instantiated before anything else of a call.
template <class Op, class... X>
struct OperandCheck {
  using Mesh = typename MeshOf<X...>::type;
  static_assert(!(is_tensor<X> || ...) || !(is_dtensor<X> || ...),
                "cleave: an operation mixes a Tensor with DTensors; place the Tensor first "
                "(distribute_tensor, DTensor::from_local)");
  static_assert(!(is_tensor<X> && ...),
                "cleave: operations take DTensors; distribute_tensor makes one of a Tensor");
  static_assert((on_mesh<Mesh, X>() && ...),
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

/// A call of Op with operands X, DTensors or scalars.
template <class Op, class Request, class... X>
class Call : OperandCheck<Op, X...> {
 public:
  using Mesh = typename MeshOf<X...>::type;
  static constexpr const Rule& rule = rule_of<Op>;
  static constexpr const Solution& solution =
      solve_call<Op, typename Request::asked, Mesh, X...>();
  static constexpr int dims = rule.result.dims;
  using Computed = placements_t<solution.computed.packed(), Mesh::axis_count>;
  using Result = placements_t<solution.result.packed(), Mesh::axis_count>;
  using Extents = std::array<index_t, std::size_t(dims)>;

  /// Compares meshes and extents.
  ///
  /// @param name         what the user called
  /// @param new_extents  of the factors that only the result has, in the order of their letters
  /// @throws Error if the meshes or the extents of a factor differ
  explicit Call(const char* name, const X&... x, std::array<index_t, max_dims> new_extents = {})
      : name_(name), operands_(x...) {
    (require_mesh(x), ...);
    int i = 0;
    factor_extents_.fill(-1);
    (read_extents(i++, x), ...);
    for (int f = 0, n = 0; f < rule.factors; ++f)
      if (factor_extents_[std::size_t(f)] < 0)
        factor_extents_[std::size_t(f)] = new_extents[std::size_t(n++)];
    for (int d = 0; d < dims; ++d)
      shape_[std::size_t(d)] = factor_extents_[std::size_t(rule.result.factor[std::size_t(d)])];
  }

  const char* name() const { return name_; }
  /// Global extents of the result.
  const Extents& shape() const { return shape_; }

  /// The mesh of the operands.
  const Mesh& mesh() const {
    const Mesh* found = nullptr;
    each([&](const auto& x) {
      if constexpr (is_dtensor<std::remove_cvref_t<decltype(x)>>)
        if (found == nullptr) found = &x.mesh();
    });
    return *found;
  }

  /// The part of operand I that the kernel needs, under `solution.required[I]`.
  /// @collective every rank of the mesh, if the placements differ
  template <std::size_t I>
  decltype(auto) local() const {
    using Operand = std::tuple_element_t<I, std::tuple<X...>>;
    if constexpr (!is_dtensor<Operand>) {
      return (std::get<I>(operands_));
    } else {
      using To = placements_t<solution.required[I].packed(), Mesh::axis_count>;
      using From = typename Operand::placements_type;
      const Operand& x = std::get<I>(operands_);
      if constexpr (std::is_same_v<From, To>) {
        if constexpr (rule_broadcasts<Op>()) require_repeatable(x, I);
        return x.local();
      } else {
        if constexpr (Request::is_explicit && moves(I))
          static_cast<void>(operand_would_be_redistributed<Op, int(I), From, To>{});
        return moved<To>(x, I);
      }
    }
  }

  /// Runs kernel(local operands..), which returns the local Tensor under `solution.computed`.
  /// @collective every rank of the mesh, if an operand or the result has to move
  template <class Kernel>
  auto run(Kernel&& kernel) const {
    return run(kernel, std::index_sequence_for<X...>{});
  }

  /// The DTensor whose local part the kernel has computed.
  template <class Local>
  auto result(Local&& local) const {
    using T = typename std::remove_cvref_t<Local>::value_type;
    const DTensor<T, dims, Mesh, Computed> computed(std::forward<Local>(local), mesh(), shape_);
    return redistribute_to<Result>(computed, name_);
  }

  /// Shapes, placements, mesh and rank, for errors.
  ErrorContext context() const {
    ErrorContext text;
    each([&](const auto& x) {
      if constexpr (is_dtensor<std::remove_cvref_t<decltype(x)>>) {
        const ErrorContext one = x.context();
        text.shapes += (text.shapes.empty() ? "" : " and ") + one.shapes;
        text.placements += (text.placements.empty() ? "" : " and ") + one.placements;
        text.mesh = text.mesh.empty() || text.mesh == one.mesh ? one.mesh
                                                               : text.mesh + " and " + one.mesh;
        text.rank = one.rank;
      }
    });
    return text;
  }

 private:
  template <class F>
  void each(const F& f) const {
    std::apply([&](const auto&... x) { (f(x), ...); }, operands_);
  }

  static constexpr bool moves(std::size_t i) {
    const OperandLayouts from{operand_layout<X>(Mesh::axis_count)...};
    for (int a = 0; a < Mesh::axis_count; ++a)
      if (communicates(move_between(from[i][a], solution.required[i][a]))) return true;
    return false;
  }

  template <class Kernel, std::size_t... I>
  auto run(Kernel& kernel, std::index_sequence<I...>) const {
    return result(kernel(local<I>()...));
  }

  template <class A>
  void require_mesh(const A& x) const {
    if constexpr (is_dtensor<A>)
      if (!(x.mesh() == mesh()))
        throw Error(name_, "the operands are on different meshes of one type", context());
  }

  template <class A>
  void read_extents(int operand, const A& x) {
    if constexpr (is_dtensor<A>) {
      for (int d = 0; d < A::dims; ++d) {
        const int f = rule.operand[std::size_t(operand)].factor[std::size_t(d)];
        const index_t extent = x.shape()[std::size_t(d)];
        index_t& known = factor_extents_[std::size_t(f)];
        if (known < 0 || (rule_broadcasts<Op>() && known == 1)) known = extent;
        else if (known != extent && !(rule_broadcasts<Op>() && extent == 1))
          throw_extents(operand, f, extent);
      }
    }
  }

  [[noreturn]] void throw_extents(int operand, int factor, index_t extent) const {
    throw Error(name_,
                std::string("the operands disagree about '") + rule.letter[std::size_t(factor)] +
                    "' of " + to_string(rule) + ": operand " + std::to_string(operand) + " has " +
                    std::to_string(extent) + ", the ones before it " +
                    std::to_string(factor_extents_[std::size_t(factor)]),
                context());
  }

  /// Whether dimension d of operand i has extent 1 and is repeated.
  bool repeats(std::size_t i, int d, index_t extent) const {
    return extent == 1 &&
           factor_extents_[std::size_t(rule.operand[i].factor[std::size_t(d)])] != 1;
  }

  /// A repeated dimension has to be there on every rank: its shards would be empty on most.
  template <class A>
  void require_repeatable(const A& x, std::size_t i) const {
    for (int a = 0; a < Mesh::axis_count; ++a) {
      if (!A::layout[a].is_shard() || x.mesh().extents()[a] == 1) continue;
      const int d = A::layout[a].dim;
      if (solution.required[i][a].is_shard(d) && repeats(i, d, x.shape()[std::size_t(d)]))
        throw Error(name_,
                    "dimension " + std::to_string(d) + " of operand " + std::to_string(i) +
                        " has extent 1 and is repeated, but it is sharded over axis '" +
                        x.mesh().state().name(a) + "'; redistribute it to Replicate first",
                    context());
    }
  }

  template <class To, class A>
  typename A::local_type moved(const A& x, std::size_t i) const {
    if constexpr (rule_broadcasts<Op>()) {
      require_repeatable(x, i);
      Layout target = solution.required[i];
      for (int a = 0; a < Mesh::axis_count; ++a)
        if (target[a].is_shard() && target[a] != A::layout[a] &&
            repeats(i, target[a].dim, x.shape()[std::size_t(target[a].dim)]))
          target[a] = Placement::replicate();
      if (!(target == solution.required[i])) return moved_to(x, target);
    }
    return redistribute_to<To>(x, name_).local();
  }

  /// A redistribution whose target is known at run time only.
  template <class A>
  typename A::local_type moved_to(const A& x, const Layout& target) const {
    if (target == A::layout) return x.local();
    const redistribution::Block block = redistribution::run(
        nullptr, A::layout, target,
        {x.local().storage(), x.local().view()}, {x.mesh().state(), Shape(x.shape()), name_});
    return A::local_type::adopt(static_cast<typename A::value_type*>(block.view.data),
                                to_array<A::dims>(block.view.extents),
                                to_array<A::dims>(block.view.strides), block.storage);
  }

  const char* name_;
  std::tuple<const X&...> operands_;
  std::array<index_t, Rule::max_factors> factor_extents_;
  Extents shape_{};
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
  return detail::Call<Op, detail::Request<Request...>, X...>(name, x...).run(kernel);
}

}  // namespace cleave
