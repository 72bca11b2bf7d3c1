// Operations defined by a sharding rule and a function of local tensors, for cases that need no
// gradient, no tracing and no kernel on views.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include <cleave/ops/engine/call_op.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The argument of the kernel for an operand: the local tensor of a DTensor; otherwise x itself.
template <class X>
decltype(auto) local_operand(const OperandRef& operand, const X& x) {
  if constexpr (is_dtensor<X>) return tensor_of<typename X::local_type>(block_of(operand));
  else return (x);
}

template <class Op, class Request, class Kernel, class... X, std::size_t... I>
auto apply_placed(const char* name, Kernel& kernel, std::index_sequence<I...>, const X&... x) {
  using Mesh = typename MeshOf<X...>::type;
  using Device = typename Mesh::device_type;
  static_cast<void>(OperandCheck<Op, X...>{});
  using Solved = decltype(solve_call<Op, typename Request::asked, Mesh, X...>());

  PlacedCall placed;
  placed.solution = &Solved::value;
  (place_operand<Op, Request, Solved, int(I), X>(placed), ...);

  OpInfo info;
  info.name = name;
  info.rule = &rule_of<Op>;
  info.table = &extents_table<Op>;
  info.broadcasts = rule_broadcasts<Op>();
  const std::array<OperandRef, sizeof...(X)> in{operand_of(x)...};
  placed.info = &info;
  const OpenCall open(placed, in.data(), nullptr, Request::is_explicit);
  const CallContext call(info, in.data());
  const PlacedOperands<Device> there(call, open.call, in.data());
  std::tuple locals{local_operand(there.data()[I], x)...};
  auto local = kernel(std::get<I>(locals)...);
  using Local = decltype(local);
  static_assert(is_tensor<Local> && Local::dims == rule_of<Op>.result[0].dims,
                "cleave: apply_op: the function must return a Tensor with as many dimensions as "
                "the rule's result");
  Shape shape;
  shape.dims = Local::dims;
  for (int d = 0; d < Local::dims; ++d) {
    const DimPlace from = source_of(call, 0, d);
    shape[d] = from.operand >= 0 ? in[std::size_t(from.operand)].shape[from.dim] : local.extent(d);
  }
  using From = placements_t<ComputedLayout<Solved>>;
  using To = placements_t<ResultLayout<Solved, 0>>;
  const auto extents = to_array<Local::dims>(shape);
  const auto& mesh = first_tensor(x...).mesh();
  if constexpr (!std::is_same_v<From, To>)
    local = redistribute_local(
        local, spec_of<From, To, Local::dims>(open.solution.computed[0], open.solution.result[0]),
        mesh.state(), extents, name);
  return DTensor<typename Local::value_type, Local::dims, Mesh, To>::unchecked(
      std::move(local), mesh, extents, open.solution.result[0]);
}

}  // namespace detail

/// Runs a user-defined operation. `sharding_rule<Op>` states how its operands may be sharded,
/// `kernel` computes one rank's part of the result. An operation with a gradient, or one that is
/// traced, is declared as a struct instead, see operation.hpp.
///
///     auto y = apply_op<Scale>("scale", [](const Tensor<float, 2>& x) { .. return y; }, x);
///
/// @tparam Request  see request.hpp
/// @param name      for errors and traces
/// @param kernel    takes the local operands and returns the local result, a Tensor
/// @param x         DTensors on one mesh; or Tensors, on which the kernel is called directly
/// @collective      every rank of the mesh, if an operand or the result has to be redistributed
/// @throws Error    if the meshes differ, or dimensions of one factor have different extents
template <class Op, class... Request, class Kernel, class... X>
auto apply_op(const char* name, Kernel&& kernel, const X&... x) {
  constexpr bool computes = ((detail::call_level<X> < 2) && ...);
  static_assert(computes,
                "cleave: apply_op takes Tensors and DTensors: an operation that is traced or has a "
                "gradient is a struct with a kernel, for call_op");
  if constexpr (!computes) {
    return;
  } else if constexpr (!(is_dtensor<X> || ...)) {
    static_cast<void>(detail::OperandCheck<Op, X...>{});
    return kernel(x...);
  } else {
    return detail::apply_placed<Op, detail::Request<Request...>>(
        name, kernel, std::index_sequence_for<X...>{}, x...);
  }
}

}  // namespace cleave::inline v0
