// The gradient of a rank's addend of a Partial: the derivative of the reduced value with respect to
// what this rank contributes.
//
//     sum      g
//     avg      g / n
//     max, min g where this rank's candidate was chosen, divided by the number of ranks with equal
//              candidates; 0 elsewhere
//     product  g times the conjugate of the product of the other ranks' factors
#pragma once

#include <cleave/dtensor/redistribution_spec.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0::tape {

/// The pending reductions whose derivative depends on the addends.
struct NonlinearOps {
  bool extreme = false;  ///< max or min
  bool product = false;

  constexpr bool any() const { return extreme || product; }
};
constexpr NonlinearOps nonlinear_ops(const Layout& layout) {
  NonlinearOps ops;
  for (int a = 0; a < layout.axes; ++a) {
    if (!layout[a].is_partial()) continue;
    const ReduceOp op = layout[a].op;
    ops.extreme = ops.extreme || op == ReduceOp::max || op == ReduceOp::min;
    ops.product = ops.product || op == ReduceOp::product;
  }
  return ops;
}

/// The axes of the reduction that is performed first: the last partial axis, and those before it
/// with the same op.
constexpr AxisMask innermost_reduction(const Layout& layout) {
  AxisMask axes = 0;
  const Placement* first = nullptr;
  for (int a = layout.axes; a-- > 0;) {
    if (!layout[a].is_partial()) continue;
    if (first == nullptr) first = &layout[a];
    if (layout[a].op != first->op) break;
    axes |= 1u << a;
  }
  return axes;
}

/// The derivative of a value with respect to this rank's addend.
///
/// @tparam Extreme,Product  the `nonlinear_ops` of `layout`
/// @param g       the gradient of the value, the same on all ranks of an axis that is Partial
/// @param addend  what this rank contributes under `layout`; not read if there are only sums and
///                averages
/// @param shape   global extents
/// @collective    every rank of the mesh, if there are nonlinear ops
/// @cost          for each max and min two all-reduces of the local elements over its axes, for
///                each product two; one for each reduction within one of these
template <bool Extreme, bool Product, class Local>
Local addend_gradient(Local g, Local addend, Layout layout, const typename Local::Extents& shape,
                      const MeshState& mesh) {
  using T = typename Local::value_type;
  while (layout.has_partial()) {
    const AxisMask axes = innermost_reduction(layout);
    Layout reduced = layout;
    ReduceOp op{};
    for (int a = 0; a < layout.axes; ++a)
      if (axes >> a & 1u) op = layout[a].op, reduced[a] = Placement::replicate();
    // reduces over these axes only; other partials remain pending
    const auto all_reduced = [&](const Local& x, ReduceOp by) {
      Layout from = reduced;
      for (int a = 0; a < layout.axes; ++a)
        if (axes >> a & 1u) from[a] = Placement::partial(by);
      return cleave::detail::redistribute_local(x, {from, reduced}, mesh, shape, "backward");
    };
    if (op == ReduceOp::avg)
      g = div(g, cleave::detail::converted<kernels::real_t<T>>(double(mesh.size(axes))));
    if constexpr (Extreme || Product) {
      // the addend becomes that of the reductions that remain, if one of them reads it
      const bool is_read = nonlinear_ops(reduced).any();
      if (op == ReduceOp::sum || op == ReduceOp::avg) {
        if (is_read) addend = all_reduced(addend, op);
      } else if (op == ReduceOp::product) {
        if constexpr (Product) {
          const Local zeros = all_reduced(call_op(cleave::detail::IsZero{}, addend), ReduceOp::sum);
          const Local rest =
              all_reduced(call_op(cleave::detail::OrOne{}, addend), ReduceOp::product);
          g = mul(g, conj(call_op(cleave::detail::ProductOfOthers{}, addend, rest, zeros)));
          if (is_read) addend = mul(rest, call_op(cleave::detail::IsZero{}, zeros));
        }
      } else if constexpr (Extreme) {
        const Local value = all_reduced(addend, op);
        const Local chosen = equals(addend, value);
        g = mul(div(g, all_reduced(chosen, ReduceOp::sum)), chosen);
        addend = value;
      }
    }
    layout = reduced;
  }
  return g;
}

}  // namespace cleave::inline v0::tape
