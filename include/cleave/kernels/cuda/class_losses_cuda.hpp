// Cross-entropy losses of rows of logits on a GPU, and their gradient: one launch each.
#pragma once

#include <array>
#include <cmath>

#include <cleave/kernels/cuda/fused_rows.hpp>
#include <cleave/kernels/cuda/report_wrong_index.hpp>
#include <cleave/kernels/cuda/whole_rows_cuda.hpp>
#include <cleave/kernels/row_range.hpp>

namespace cleave::inline v0 {

namespace cuda::detail {

template <class T, class I>
struct ClassLossRow : RowsOf<T> {
  static constexpr int arrays = 3;
  using typename RowsOf<T>::Item;

  const I* index;
  T* loss;
  index_t ignored;
  double smoothing;
  IndexCheck exists;

  __device__ void move(const index_t (&offset)[arrays]) {
    this->x.data += offset[0], index += offset[1], loss += offset[2];
  }
  template <class Items>
  __device__ void operator()(Items& row) const {
    const ExpTotal<Item> total = exp_total(row);
    Item shifted = Item(0);
    if (smoothing != 0) shifted = row.template sum<Item>([&](Item a) { return a - total.largest; });
    if (!row.leads()) return;
    const index_t at = index_t(*index);
    if (!kernels::is_counted(at, ignored) || !exists(at)) {
      *loss = T(Item(0));
      return;
    }
    const Item rest = std::log(total.sum);
    const Item own = rest - (Item(this->x.data[at * this->x.step]) - total.largest);
    const Item share = Item(smoothing);
    *loss =
        T(smoothing == 0 ? own : (1 - share) * own + share * (rest - shifted / Item(row.size())));
  }
};

template <class T, class I>
struct ClassSlopeRow : RowsOf<T> {
  static constexpr int arrays = 4;
  using typename RowsOf<T>::Item;

  RowArray<T> dx;
  const T* g;
  const I* index;
  index_t ignored;
  double smoothing;

  __device__ void move(const index_t (&offset)[arrays]) {
    this->x.data += offset[0], dx.data += offset[1], g += offset[2], index += offset[3];
  }
  template <class Items>
  __device__ void operator()(Items& row) const {
    constexpr int V = Items::width;
    const ExpTotal<Item> total = exp_total(row);
    if (row.size() == 0) return;
    const index_t own = index_t(*index);
    const bool counts = kernels::is_counted(own, ignored);
    const Item slope = Item(*g), even = Item(smoothing / double(row.size()));
    row.write(dx, [&](const Pack<Item, V>& items, index_t i) {
      Pack<T, V> slopes;
      for (int k = 0; k < V; ++k) {
        const Item target = even + (i + k == own ? Item(1 - smoothing) : Item(0));
        const Item y = std::exp(items.values[k] - total.largest) / total.sum;
        slopes.values[k] = T(counts ? (y - target) * slope : Item(0));
      }
      return slopes;
    });
  }
};

/// The strides of an array with one element per row.
inline Shape strides_per_row(const Shape& strides) {
  return Shape(std::array<index_t, 2>{strides[0], 0});
}

}  // namespace cuda::detail

namespace kernels {

/// The cross-entropy of rows, log(sum(exp(x))) - x[class], in the order of the current stream.
///
/// @param x          [n, c], any strides
/// @param classes    [n]; rows of the class `ignored` have loss 0. Another class outside
///                   [0, c) gives loss 0 and is reported by the next wait on the host
/// @param smoothing  the fraction of the target spread evenly over all classes
/// @param losses     [n]
/// @cost   one launch; reads x once, with smoothing again what exceeds the rows of softmax_rows
/// @throws Error if the launch fails
template <class T, class I>
void class_losses(On<Cuda>, const Strided<const T>& x, const Strided<const I>& classes,
                  index_t ignored, double smoothing, const Strided<T>& losses) {
  using namespace cuda::detail;
  if (x.extents[0] == 0) return;
  constexpr int width = pack_width<T>();
  const auto rows = loops_over_rows(
      x.extents, 1,
      std::array{x.strides, strides_per_row(classes.strides), strides_per_row(losses.strides)});
  launch_rows<width>("cross_entropy",
                     ClassLossRow<T, I>{{row_array<width>(x, 1, rows, 0)},
                                        classes.data,
                                        losses.data,
                                        ignored,
                                        smoothing,
                                        IndexCheck({0, x.extents[1], "cross_entropy"})},
                     rows, x.extents[1], x.strides[1]);
}

/// dx = (softmax(x) - target) · g per row, 0 in rows that do not count, likewise.
///
/// @param g   [n], the gradient of the losses
/// @param dx  [n, c]
/// @cost      one launch; reads x once, writes dx once, as softmax_rows
template <class T, class I>
void class_slopes(On<Cuda>, const Strided<const T>& g, const Strided<const T>& x,
                  const Strided<const I>& classes, index_t ignored, double smoothing,
                  const Strided<T>& dx) {
  using namespace cuda::detail;
  if (x.extents.product() == 0) return;
  constexpr int width = pack_width<T>();
  const auto rows = loops_over_rows(x.extents, 1,
                                    std::array{x.strides, dx.strides, strides_per_row(g.strides),
                                               strides_per_row(classes.strides)});
  launch_rows<width>("cross_entropy",
                     ClassSlopeRow<T, I>{{row_array<width>(x, 1, rows, 0)},
                                         row_array<width>(dx, 1, rows, 1),
                                         g.data,
                                         classes.data,
                                         ignored,
                                         smoothing},
                     rows, x.extents[1], x.strides[1]);
}

}  // namespace kernels

}  // namespace cleave::inline v0
