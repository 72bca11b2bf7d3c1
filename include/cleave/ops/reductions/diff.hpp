// Differences of neighbours along a dimension.
//
//     // y[S0] = diff(x[S0], dim<0>{})    an exchange of one element per rank
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/shapes/slice.hpp>

namespace cleave::inline v0 {

namespace ops {

/// y[i] = x[i + 1] - x[i] along dimension D, `order` times.
template <int D>
struct Diff {
  index_t order = 1;
  index_t extent = 0;  ///< of the result

  static constexpr const char* name = "diff";
  template <class T>
  static constexpr const char* partials_for() {
    return std::is_same_v<T, bool> ? "" : "sum->sum; avg->avg";
  }
  static constexpr auto factors = cleave::detail::new_extent_factors<D>;
  static constexpr auto reads = cleave::detail::new_extent_reads<D>;
  constexpr Shape extents() const { return Shape::filled(1, extent); }
  constexpr DimMap read_map(int, int, const OperandRef*) const { return {1, 1, 0, order}; }

  template <class Device, class T>
  void kernel(kernels::On<Device> on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    if (y.extents.product() == 0) return;
    const index_t count = y.extents[D];
    kernels::Strided<const T> from =
        every(x, D, task.box->begin[D] - task.in_box->begin[D], 1, count + order);
    if (order == 0) return copy_elements(on, from, y);
    std::shared_ptr<void> kept;
    for (index_t left = order; left > 0; --left) {
      const index_t length = count + left - 1;
      kernels::Strided<T> to = y;
      std::shared_ptr<void> storage;
      if (left > 1) {
        to.extents[D] = length;
        to.strides = row_major_strides(to.extents);
        storage = allocate_bytes(Device{}, std::size_t(to.extents.product()) * sizeof(T));
        to.data = static_cast<T*>(storage.get());
      }
      map_elements(on, Sub{}, to, every(from, D, 1, 1, length), every(from, D, 0, 1, length));
      from = {to.data, to.extents, to.strides};
      kept = std::move(storage);
    }
  }

  // the differences of g between zeros, with a sign per order
  static constexpr unsigned gradient_reads = 0;
  template <class G, class Y, class X>
    requires(!std::is_integral_v<typename X::value_type>)
  constexpr auto gradient(wrt<0>, const G& g, const Y&, const X& x) const {
    const auto padded = call_op(Embed<D>{extent + 2 * order, order, 1}, g);
    const Diff of{order, shape_of(x)[D]};
    const auto slope = cleave::detail::call_as(cleave::detail::like(x), of, padded);
    using T = typename X::value_type;
    return mul(slope, T(order % 2 == 0 ? 1 : -1));
  }
};

}  // namespace ops

/// Differences of neighbours along a dimension: y[i] = x[i + 1] - x[i], repeated `order` times:
/// `diff(x, dim<0>{}, 2)`. Integers wrap; of bools, whether neighbours differ.
///
/// @return     the extents of x, along the dimension `order` fewer, at least 0; sharded as x is
/// @collective every rank of the mesh, if the dimension is sharded
/// @cost       receives the elements of x that the rank's part of the result reads and that are not
///             in its part of x
/// @throws Error if order is negative
template <class... R, AnyTensor X, int D>
constexpr auto diff(const X& x, dim<D>, index_t order = 1) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  if (order < 0)
    throw Error("diff", "the order must be at least 0, not " + std::to_string(order),
                detail::context_of(x));
  const index_t n = shape_of(x)[d], extent = n > order ? n - order : 0;
  return call_op<R...>(ops::Diff<d>{order, extent}, x);
}
CLEAVE_USAGE(diff, "diff(x, dim<0>{}), diff(x, dim<0>{}, order)")

}  // namespace cleave::inline v0
