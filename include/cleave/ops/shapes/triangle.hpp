// Lower and upper triangles of matrices: tril, triu. The last two dimensions may be sharded: every
// rank knows the global indices of its elements.
//
//     // y[S0,S1] = tril(x[S0,S1])
#pragma once

#include <memory>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

namespace kernels {

/// x where `inside`, else `outside`.
template <class T>
struct InsideOf {
  T outside;

  CLEAVE_HOST_DEVICE T operator()(const T& x, const bool& inside) const {
    return inside ? x : outside;
  }
};

/// y[.., i, j] = x[.., i, j] where j - i <= bound (bound <= j - i if Upper), else `outside`.
///
/// Whether an element is inside depends on j - i only: an array holds one bool per difference, and
/// each row of y starts one element earlier in it.
///
/// @param bound  on j - i, in local indices
/// @cost  one pass over x; reads a bool per element
template <bool Upper, class Device, class T>
void copy_triangle(On<Device> on, const Strided<const T>& x, const Strided<T>& y, index_t bound,
                   const T& outside) {
  const int dims = y.extents.dims;
  const index_t rows = y.extents[dims - 2], columns = y.extents[dims - 1];
  if (y.extents.product() == 0) return;
  const index_t count = rows + columns - 1;  // differences 1 - rows .. columns - 1
  const std::shared_ptr<void> storage = allocate_bytes(Device{}, std::size_t(count));
  Strided<bool> inside{static_cast<bool*>(storage.get()), Shape::filled(1, count),
                       Shape::filled(1, 1)};
  const index_t wanted = bound + rows - (Upper ? 1 : 0);  // differences before the cut
  const index_t cut = wanted < 0 ? 0 : wanted > count ? count : wanted;
  fill_elements(on, every(inside, 0, 0, 1, cut), !Upper);
  fill_elements(on, every(inside, 0, cut, 1, count - cut), Upper);
  Strided<const bool> mask{inside.data + rows - 1, y.extents, Shape::filled(dims, 0)};
  mask.strides[dims - 2] = -1;
  mask.strides[dims - 1] = 1;
  map_elements(on, InsideOf<T>{outside}, y, x, mask);
}

}  // namespace kernels

namespace ops {

/// The elements on and below (above, if Upper) a diagonal of the last two dimensions, else 0.
template <bool Upper>
struct Triangle {
  index_t diagonal = 0;  ///< offset above the main diagonal

  static constexpr const char* name = Upper ? "triu" : "tril";
  static constexpr const char* partials = moves_elements;
  static constexpr bool needs_box = true;
  static constexpr auto factors = Elementwise::factors<1>;
  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x) const {
    const int row = task.box->dims() - 2;
    kernels::copy_triangle<Upper>(on, x, y,
                                  diagonal + task.box->begin[row] - task.box->begin[row + 1], T(0));
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&...) const { return call_op(*this, g); }
};

}  // namespace ops

/// The lower triangle of matrices: x[.., i, j] where j - i <= diagonal, else 0.
template <class... R, AnyTensor X>
constexpr auto tril(const X& x, index_t diagonal = 0) {
  static_assert(X::dims >= 2, "cleave: tril requires at least two dimensions");
  return call_op<R...>(ops::Triangle<false>{diagonal}, x);
}
CLEAVE_USAGE(tril, "tril(x), tril(x, diagonal)")

/// The upper triangle of matrices: x[.., i, j] where j - i >= diagonal, else 0.
template <class... R, AnyTensor X>
constexpr auto triu(const X& x, index_t diagonal = 0) {
  static_assert(X::dims >= 2, "cleave: triu requires at least two dimensions");
  return call_op<R...>(ops::Triangle<true>{diagonal}, x);
}
CLEAVE_USAGE(triu, "triu(x), triu(x, diagonal)")

}  // namespace cleave::inline v0
