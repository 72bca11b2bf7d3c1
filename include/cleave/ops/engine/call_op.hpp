// Calls of operations on local and distributed tensors. The operand of the highest level selects
// the path, a specialisation of CallPath. Tracing and gradient tracking add specialisations in
// separate headers, so that only their users pay for them.
//
// Everything about placements is a compile-time constant. At run time a call compares extents and
// meshes, and has no other overhead if no operand is redistributed.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/open_call.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/ops/engine/operation.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/request.hpp>
#include <cleave/ops/engine/run_op.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/rules/solver.hpp>

namespace cleave::inline v0 {

/// Shows, in a compile error, which operand (counted from 0) of an operation would be
/// redistributed, and from and to which placements.
template <class Op, int Operand, class From, class To>
struct operand_would_be_redistributed {
  static_assert(sizeof(Op*) == 0,
                "cleave: explicit_communication: this operand would be redistributed from the "
                "placements From to the placements To; call redistribute before the operation");
};

namespace detail {

/// The solution for operands with the placements P; evaluated once per combination by the compiler.
template <class Op, class... P>
struct SolutionOf {
  static constexpr Solution value = solve(rule_of<Op>, OperandLayouts{layout_of<P, max_dims>...});
};
template <class Op, class Asked, class... P>
struct AskedSolutionOf {
  static constexpr Solution value = solve(rule_of<Op>, OperandLayouts{layout_of<P, max_dims>...},
                                          &layout_of<Asked, rule_of<Op>.result[0].dims>);
};

/// The layouts of a solution, as sources of `placements_t`.
template <class Solved, int I>
struct RequiredLayout {
  static constexpr Layout layout = Solved::value.required[std::size_t(I)];
};
template <class Solved>
struct ComputedLayout {
  static constexpr Layout layout = Solved::value.computed[0];
};
template <class Solved, int K>
struct ResultLayout {
  static constexpr Layout layout = Solved::value.result[std::size_t(K)];
};

/// The placements that a request asks for on a mesh: a type, or Unasked.
template <class Request, int Axes>
struct AskedBy {
  using type = typename Request::asked;
};
template <class X, int Axes>
  requires is_dtensor<X>
struct AskedBy<RequestLike<X>, Axes> {
  using type = without_partials_t<typename X::placements_type>;
};

/// Whether the type of an operand leaves blocks or cut points open.
template <class X>
inline constexpr bool has_open_layout = false;
template <class T, int Rank, class Mesh, class P>
inline constexpr bool has_open_layout<DTensor<T, Rank, Mesh, P>> = is_open_list<P>;

/// The actual placements that a request asks for; null if it names types alone, or nothing.
template <class Request>
const Layout* asked_layout(const Request& request) {
  if constexpr (requires { request.actual; }) return &request.actual;
  else if constexpr (requires { request.like.actual_layout(); })
    return &request.like.actual_layout();
  else return nullptr;
}

/// The type of the solution of a call.
template <class Op, class Asked, class Mesh, class... X>
constexpr auto solve_call() {
  constexpr int axes = Mesh::axis_count;
  if constexpr (std::is_same_v<Asked, Unasked>) {
    return SolutionOf<Op, typename OperandPlacements<X, axes>::type...>{};
  } else {
    static_assert(Asked::size == axes,
                  "cleave: a requested result has exactly one placement per mesh axis");
    constexpr Layout asked = layout_of<Asked, rule_of<Op>.result[0].dims>;
    static_assert(!asked.has_partial(), "cleave: a result cannot be requested as Partial");
    return AskedSolutionOf<Op, Asked, typename OperandPlacements<X, axes>::type...>{};
  }
}

/// Whether the redistribution of an operand communicates.
constexpr bool communicates(const Layout& from, const Layout& to) {
  for (int a = 0; a < from.axes; ++a)
    if (cleave::communicates(move_between(from[a], to[a]))) return true;
  return false;
}

/// Checks the types of operands; instantiated first in a call, so that its errors come first.
template <class Op, class... X>
struct OperandCheck {
  static_assert(!(is_tensor<X> || ...) || ((is_tensor<X> || is_number<X>) && ...),
                "cleave: an operation mixes a Tensor with DTensors; place the Tensor first "
                "(distribute_tensor, from_local)");
  static_assert((on_mesh<typename MeshOf<X...>::type, X>() && ...),
                "cleave: the operands of an operation are on meshes of different types");
  static_assert(rule_of<Op>.operands == int(sizeof...(X)),
                "cleave: the call and the sharding_rule have different numbers of operands");
  static constexpr bool dims_agree() {
    int i = 0;
    return ((rule_of<Op>.operand[std::size_t(i++)].dims == X::dims) && ...);
  }
  static_assert(
      dims_agree(),
      "cleave: an operand does not have as many dimensions as letters in the sharding_rule");
};

/// The type-erased operand that the runner takes.
template <class T, int Rank, class Device>
OperandRef operand_of(const Tensor<T, Rank, Device>& x) {
  const index_t* const extents = x.shape().data();
  return {{x.data(), extents, x.strides().data(), Rank},
          extents,
          dtype_of<T>(),
          nullptr,
          nullptr,
          &x.storage()};
}
template <class T, int Rank, class Mesh, class P>
OperandRef operand_of(const DTensor<T, Rank, Mesh, P>& x) {
  OperandRef operand = operand_of(x.to_local());
  operand.shape = x.shape().data();
  operand.layout = &x.actual_layout();
  operand.mesh = &x.mesh().state();
  return operand;
}
template <class T>
OperandRef operand_of(const Number<T>& x) {
  return {{const_cast<T*>(&x.value), nullptr, nullptr, 0},
          nullptr,
          dtype_of<T>(),
          nullptr,
          nullptr,
          nullptr};
}

/// Whether distributed operands share one mesh handle; equal meshes may have different handles.
template <std::size_t N>
bool are_on(const MeshState& mesh, const std::array<OperandRef, N>& operands) {
  for (const OperandRef& x : operands)
    if (x.mesh != nullptr && x.mesh != &mesh) return false;
  return true;
}

/// The results of a call as the runner writes them, and their conversion to tensors.
template <std::size_t Count>
struct Results {
  std::array<RawResult, Count> raw;
  std::array<std::array<std::array<index_t, std::size_t(max_dims)>, 3>, Count> numbers;

  Results() {
    for (std::size_t k = 0; k < Count; ++k) {
      raw[k].shape = numbers[k][0].data();
      raw[k].extents = numbers[k][1].data();
      raw[k].strides = numbers[k][2].data();
    }
  }
  Results(const Results&) = delete;  // points into itself

  template <class Local>
  Local local(std::size_t k) {
    return TensorAccess::make<Local>(std::move(raw[k].storage), raw[k].data, raw[k].extents,
                                     raw[k].strides);
  }
};

/// Calls `make` with the index of each result. @return one result as it is, several as a tuple
template <int Count, class Make>
auto each_result(const Make& make) {
  if constexpr (Count == 1) {
    return make(std::integral_constant<std::size_t, 0>{});
  } else {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return std::tuple{make(std::integral_constant<std::size_t, K>{})...};
    }(std::make_index_sequence<std::size_t(Count)>{});
  }
}

template <class Op>
constexpr Shape fresh_extents(const Op& op) {
  if constexpr (requires { op.extents(); }) return op.extents();
  else return {};
}

/// How operations are called on operands of a level. @see call_level
template <int Level>
struct CallPath;

template <>
struct CallPath<0> {
  template <class Request, class Op, class... X>
  static auto call(const Request&, const Op& op, const X&... x) {
    using Device = typename first_tensor_t<X...>::device_type;
    using Info = InfoOf<Op, Device, types_of<X...>, X::dims...>;
    static_cast<void>(OperandCheck<typename Info::Sig, X...>{});
    const std::array<OperandRef, sizeof...(X)> in{operand_of(x)...};
    Results<Info::Results::size> out;
    if (!run_plain<Info, Device>(&op, in.data(), out.raw.data()))
      compute<Device>(CallContext(Info::value, in.data()), &op, fresh_extents(op), in.data(),
                      nullptr, out.raw.data());
    return each_result<Info::Results::size>(
        [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
          return out.template local<typename Info::template Result<K>>(K);
        });
  }
};

/// Records in a PlacedCall the redistribution of operand I that the solution requires, if any.
template <class Op, class Request, class Solved, int I, class X>
constexpr void place_operand(PlacedCall& call) {
  if constexpr (is_dtensor<X>) {
    constexpr Layout from = X::layout, to = Solved::value.required[std::size_t(I)];
    if constexpr (!(from == to)) {
      using From = typename X::placements_type;
      using To = placements_t<RequiredLayout<Solved, I>>;
      if constexpr (Request::is_explicit && communicates(from, to))
        static_cast<void>(operand_would_be_redistributed<Op, I, From, To>{});
      call.moves |= 1u << I;
      call.spec[std::size_t(I)] = &redistribution_spec<From, To, X::dims>;
    }
  }
}

/// The compile-time constants of a call on DTensors.
template <class Op, class Request, class... X>
struct PlacedCallOf {
  using Mesh = typename MeshOf<X...>::type;
  using Device = typename Mesh::device_type;
  using Info = InfoOf<Op, Device, types_of<X...>, X::dims...>;
  static constexpr int axes = Mesh::axis_count;
  using Solved =
      decltype(solve_call<typename Info::Sig, typename AskedBy<Request, axes>::type, Mesh, X...>());

  static constexpr PlacedCall value = [] {
    PlacedCall call{&Info::value, &Solved::value};
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (place_operand<Op, Request, Solved, I, X>(call), ...);
    }(std::make_integer_sequence<int, int(sizeof...(X))>{});
    if constexpr (!(Solved::value.computed[0] == Solved::value.result[0])) {
      call.result_moves = true;
      call.result_spec = &redistribution_spec<placements_t<ComputedLayout<Solved>>,
                                              placements_t<ResultLayout<Solved, 0>>,
                                              rule_of<typename Info::Sig>.result[0].dims>;
    }
    return call;
  }();

  static constexpr bool stays = value.moves == 0 && !value.result_moves;

  /// Whether blocks or cut points that are chosen at run time are in question.
  static constexpr bool is_open =
      (has_open_layout<X> || ...) || is_open_list<typename AskedBy<Request, axes>::type>;

  template <std::size_t K, class R = typename Info::template Result<K>>
  using Result =
      DTensor<typename R::value_type, R::dims, Mesh, placements_t<ResultLayout<Solved, int(K)>>>;
};

/// Redistributes a DTensor to the requested placements.
template <class Request, class X>
auto place(const Request& request, const char* name, const X& x) {
  constexpr int axes = X::layout.axes;
  using Asked = typename AskedBy<Request, axes>::type;
  if constexpr (std::is_same_v<Asked, Unasked>) return x;
  else {
    static_assert(Asked::size == axes,
                  "cleave: redistribute takes exactly one placement per mesh axis");
    using To = normalized_t<Asked, X::dims>;
    static_assert(!layout_of<To, X::dims>.has_partial(),
                  "cleave: a DTensor cannot be redistributed to Partial; operations make partials, "
                  "redistribute resolves them");
    if constexpr (detail::is_open_list<To>) {
      const Layout* const asked = asked_layout(request);
      return redistribute_to<To>(x, name, false,
                                 asked != nullptr ? layout_of<To, X::dims>.with_numbers_of(*asked)
                                                  : layout_of<To, X::dims>);
    } else {
      return redistribute_to<To>(x, name);
    }
  }
}

template <>
struct CallPath<1> {
  template <class Request, class Op, class... X>
  static auto call(const Request& request, const Op& op, const X&... x) {
    if constexpr (std::is_same_v<Op, ops::Redistribute>) return place(request, Op::name, x...);
    else return run(request, op, x...);
  }

 private:
  template <class Request, class Op, class... X>
  static auto run(const Request& request, const Op& op, const X&... x) {
    using Call = PlacedCallOf<Op, Request, X...>;
    static_cast<void>(OperandCheck<typename Call::Info::Sig, X...>{});
    constexpr auto count = Call::Info::Results::size;
    auto mesh = first_tensor(x...).mesh();  // copied first: its atomic count would wait for stores
    const std::array<OperandRef, sizeof...(X)> in{operand_of(x)...};
    Results<count> out;
    using Device = typename Call::Device;
    if constexpr (Call::is_open) {
      const OpenCall open(Call::value, in.data(), asked_layout(request), Request::is_explicit);
      run_placed<Device>(open.call, &op, fresh_extents(op), in.data(), out.raw.data());
      return each_result<count>([&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
        using Y = typename Call::template Result<K>;
        return Y::unchecked(out.template local<typename Y::local_type>(K), mesh,
                            to_array<Y::dims>(out.raw[K].shape), open.solution.result[K]);
      });
    } else {
      if (!Call::stays || !are_on(mesh.state(), in) ||
          !run_plain<typename Call::Info, Device>(&op, in.data(), out.raw.data()))
        run_placed<Device>(Call::value, &op, fresh_extents(op), in.data(), out.raw.data());
      return each_result<count>([&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
        using Y = typename Call::template Result<K>;
        return Y::unchecked(out.template local<typename Y::local_type>(K),
                            count == 1 ? std::move(mesh) : mesh,
                            to_array<Y::dims>(out.raw[K].shape));
      });
    }
  }
};

template <class Request, class Op, class... X>
constexpr auto call_as(const Request& request, const Op& op, const X&... x);

/// Runs the body of a composite operation; the result has the requested placements.
template <class Request, class Op, class... X>
constexpr auto call_body(const Request& request, const Op& op, const X&... x) {
  if constexpr (requires { Op::takes_request; }) return op.body(request, x...);
  else if constexpr (asks_placements<Request>)
    return call_as(request, ops::Redistribute{}, op.body(x...));
  else return op.body(x...);
}

/// Calls an operation with a request that is passed by value.
template <class Request, class Op, class... X>
constexpr auto call_as(const Request& request, const Op& op, const X&... x) {
  constexpr int levels[] = {call_level<X>...};
  constexpr int level = [&] {
    int most = -1;
    for (const int l : levels) most = l > most ? l : most;
    return most;
  }();
  if constexpr ((is_async_tensor<X> || ...)) return call_as(request, op, waited(x)...);
  else if constexpr (!is_composite<Op> || level > 2 || (level == 2 && is_by_placement<Op>))
    return CallPath<level>::call(request, op, as_operand(x)...);
  else return call_body(request, op, x...);
}

}  // namespace detail

/// Calls an operation: locally for Tensors, on their mesh for DTensors.
///
///     auto y = call_op(Scale{2.0}, x);
///
/// @tparam Request  see request.hpp
/// @param x         tensors on one mesh, or local tensors, and numbers; at least one tensor
/// @return          the result; a std::tuple if there are several
/// @collective      every rank of the mesh, if an operand or the result has to be redistributed
/// @throws Error    if the meshes differ, or dimensions of one factor have different extents
template <class... Request, class Op, AnyOperand... X>
  requires(AnyTensor<X> || ...)
constexpr auto call_op(const Op& op, const X&... x) {
  return detail::call_as(detail::Request<Request...>{}, op, x...);
}

namespace detail {

/// A request for the placements of x, with Replicate in place of Partial.
template <class X>
constexpr auto like(const X& x) {
  return RequestLike<std::remove_cvref_t<decltype(innermost(x))>>{innermost(x)};
}

}  // namespace detail

}  // namespace cleave::inline v0
