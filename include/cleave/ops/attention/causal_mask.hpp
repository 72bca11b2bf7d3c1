// The causal mask of products of queries and keys: query i sees keys 0 to i.
//
//     // y[S0,S1] = causal_mask(x[S0,S1], fill)     by global index: no communication
#pragma once

#include <cleave/core/dtype.hpp>
#include <cleave/ops/elementwise/elementwise.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/shapes/triangle.hpp>

namespace cleave::inline v0 {

namespace ops {

/// Keeps x[.., i, j] where j <= i, by global index; `fill` elsewhere.
struct CausalMask {
  double fill = 0;

  static constexpr const char* name = "causal_mask";
  static constexpr bool needs_box = true;
  static constexpr auto factors = Elementwise::factors<1>;
  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    const int row = task.box->dims() - 2;
    kernels::copy_triangle<false>(on, x, y, task.box->begin[row] - task.box->begin[row + 1],
                                  T(accumulator_t<T>(fill)));
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&...) { return tril(g); }
};

}  // namespace ops

/// Masks the last two dimensions: x[.., i, j] where j <= i, by global index, `fill` elsewhere. Any
/// dimension may be sharded.
template <class... R, AnyTensor X>
constexpr auto causal_mask(const X& x, double fill) {
  static_assert(X::dims >= 2, "cleave: causal_mask requires at least two dimensions");
  return call_op<R...>(ops::CausalMask{fill}, x);
}
CLEAVE_USAGE(causal_mask, "causal_mask(x, fill)")

}  // namespace cleave::inline v0
