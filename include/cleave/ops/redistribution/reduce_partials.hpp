// Several pending reductions at once: one all-reduce instead of one per tensor.
#pragma once

#include <tuple>
#include <type_traits>

#include <cleave/comm/collective.hpp>
#include <cleave/dtensor/dtensor.hpp>
#include <cleave/ops/engine/operand.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Whether all partials of both layouts have one op and are on the same axes.
constexpr bool same_partials(const Layout& x, const Layout& y) {
  int op = -1;  // of the partials seen so far
  for (const Layout& layout : {x, y}) {
    for (int a = 0; a < layout.axes; ++a) {
      if (!layout[a].is_partial()) continue;
      if (op >= 0 && op != int(layout[a].op)) return false;
      op = int(layout[a].op);
    }
  }
  return x.partial_axes() == y.partial_axes();
}

template <class X>
using reduced_dtensor = DTensor<typename X::value_type, X::dims, typename X::mesh_type,
                                without_partials_t<typename X::placements_type>>;

}  // namespace detail

/// Reduces every Partial of the operands to Replicate, with one all-reduce for all operands.
///
///     auto [sums, counts] = reduce_partials(partial_sums, partial_counts);
///
/// @param first,rest  on one mesh, of one element type, Partial with one op on the same axes
/// @return     a tuple of DTensors; they share one allocation
/// @collective every rank of the mesh
/// @cost       one all-reduce of the local elements of all operands over the partial axes
/// @throws Error if the meshes differ
template <class First, class... Rest>
  requires(is_dtensor<First> && (is_dtensor<Rest> && ...))
auto reduce_partials(const First& first, const Rest&... rest) {
  using T = typename First::value_type;
  using Device = typename First::device_type;
  static_assert((std::is_same_v<typename First::mesh_type, typename Rest::mesh_type> && ...),
                "cleave: the operands of an operation are on meshes of different types");
  static_assert((std::is_same_v<T, typename Rest::value_type> && ...),
                "cleave: reduce_partials requires operands of the same element type");
  static_assert(detail::same_partials(First::layout, First::layout) &&
                    (detail::same_partials(First::layout, Rest::layout) && ...),
                "cleave: reduce_partials requires operands that are Partial with the same "
                "operation on the same axes");
  if (!((first.mesh() == rest.mesh()) && ...))
    throw Error("reduce_partials", "the operands are on different meshes", first.context());

  constexpr Layout layout = First::layout;
  AxisMask axes = layout.partial_axes();
  const MeshState& mesh = first.mesh().state();
  for (int a = 0; a < layout.axes; ++a)
    if (mesh.extents()[a] == 1) axes &= ~(1u << a);

  const index_t count = (first.to_local().size() + ... + rest.to_local().size());
  const Tensor<T, 1, Device> packed({count});
  index_t at = 0;
  const auto place = [&]<class X>(const X& x) {
    const auto part =
        X::local_type::adopt(packed.data() + at, x.to_local().shape(), packed.storage());
    part.copy_(x.to_local());
    at += part.size();
    return detail::reduced_dtensor<X>::unchecked(part, x.mesh(), x.shape(), x.actual_layout());
  };
  std::tuple<detail::reduced_dtensor<First>, detail::reduced_dtensor<Rest>...> result{
      place(first), place(rest)...};
  if (axes != 0 && mesh.is_member()) {
    ReduceOp op{};
    for (int a = 0; a < layout.axes; ++a)
      if (layout[a].is_partial()) op = layout[a].op;
    mesh.group(axes)->run(Collective::all_reduce(op, packed.view(), packed.view())
                              .named("reduce_partials", mesh.label(axes).c_str()));
  }
  return result;
}

}  // namespace cleave::inline v0
