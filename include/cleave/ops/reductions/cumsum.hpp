// Cumulative sums along a dimension.
//
//     // y[S0] = cumsum(x[S0], dim<1>{})
//     // y[S1] = cumsum(x[S1], dim<1>{})      an exchange of the ranks' totals
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/kernels/host/running_sums.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>

namespace cleave::inline v0 {

namespace ops {

/// y[i] = x[0] + .. + x[i] along dimension D; if reversed, the sum from x[i] to the end. Bools are
/// counted.
template <int D>
struct CumSum {
  bool reversed = false;

  static constexpr const char* name = "cumsum";
  template <class T>
  using result_of = std::conditional_t<std::is_same_v<T, bool>, index_t, T>;
  template <class T>
  static constexpr const char* partials_for() {
    return std::is_same_v<T, bool> ? "" : "sum->sum; avg->avg";
  }
  static constexpr auto factors = cleave::detail::reduction_factors<0>;
  static constexpr RuleText reads = cleave::detail::same_extent_reads(D);
  static constexpr int scans = D;
  void kernel(const auto& on, const Task&, const auto& y, const auto& x) const {
    running_sums(on, x, D, reversed, y);
  }
  template <class Device, class T>
  static void add_totals(kernels::On<Device> on, const kernels::Strided<T>& y,
                         const kernels::Strided<const T>& totals) {
    const auto sum = [&](const kernels::Strided<T>& to, kernels::Strided<const T> more) {
      more.extents = to.extents;
      map_elements(on, Add{}, to, kernels::Strided<const T>{to.data, to.extents, to.strides}, more);
    };
    const index_t count = totals.extents[D];
    kernels::Strided<const T> before = every(totals, D, 0, 0, 1);
    std::shared_ptr<void> storage;
    if (count > 1) {
      kernels::Strided<T> all{nullptr, before.extents, row_major_strides(before.extents)};
      storage = allocate_bytes(Device{}, std::size_t(all.extents.product()) * sizeof(T));
      all.data = static_cast<T*>(storage.get());
      copy_elements(on, before, all);
      for (index_t i = 1; i < count; ++i) sum(all, every(totals, D, i, 1, 1));
      before = every(kernels::Strided<const T>{all.data, all.extents, all.strides}, D, 0, 0, 1);
    }
    sum(y, before);
  }
  // x[i] contributes to y[i], y[i + 1], ..
  template <class G, class Y, class X>
    requires(!std::is_integral_v<typename X::value_type>)
  constexpr auto gradient(wrt<0>, const G& g, const Y&, const X&) const {
    return call_op(CumSum{!reversed}, g);
  }
};

}  // namespace ops

/// Cumulative sums along a dimension: y[i] = x[0] + .. + x[i]. Integers wrap; bools are counted.
///
/// Along a sharded dimension each rank sums its own elements, then adds the sum, in rank order, of
/// the totals of the ranks before it: sums of floats on different meshes may differ in the last
/// digits, as those of `sum` do.
///
/// @return     the shape of x, sharded as x is; int64 for bools
/// @collective every rank of the mesh, if the dimension is sharded
/// @cost       receives an element per line and rank before that has elements
template <class... R, AnyTensor X, int D>
constexpr auto cumsum(const X& x, dim<D>) {
  return call_op<R...>(ops::CumSum<detail::dim_index<X::dims>(dim<D>{})>{}, x);
}
CLEAVE_USAGE(cumsum, "cumsum(x, dim<0>{})")

}  // namespace cleave::inline v0
