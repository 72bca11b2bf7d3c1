// Selecting and summing elements along a dimension by index: gather, scatter_add.
//
//     // y[S0,R] = gather(x[S0,R], dim<1>{}, i[S0,R])     no communication
//     // y[P]    = gather(x[S1],   dim<1>{}, i[R])        x is sharded along the dimension
#pragma once

#include <array>
#include <memory>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/dense.hpp>
#include <cleave/kernels/host/gather_rows.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/indices/index_numbers.hpp>
#include <cleave/ops/indices/index_select.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace kernels {

/// The number of an element in a contiguous table, from its index along a dimension: `rows` for an
/// element of another rank, outside [0, rows] for an index out of range.
struct ElementNumber {
  index_t inner;  ///< stride of the dimension in the table
  index_t count;  ///< indices per line
  index_t first;  ///< this rank holds indices [first, first + here) of total
  index_t here;
  index_t total[1];
  index_t rows;  ///< elements of the table

  template <class I>
  CLEAVE_HOST_DEVICE index_t operator()(index_t position, const I& index) const {
    const index_t at = index_t(index);
    if (at < 0) return at;
    if (at >= total[0]) return rows + 1 + (at - total[0]);
    if (at < first || at >= first + here) return rows;
    return (position / (inner * count) * here + at - first) * inner + position % inner;
  }
};

/// @param table  extents of the table
/// @param range  the indices of dimension `dim` on this rank
template <class Device, class I>
auto element_numbers(On<Device> on, const Strided<const I>& indices, const Shape& table, int dim,
                     const RowRange& range) {
  ElementNumber number{1,          indices.extents[dim], range.first,
                       table[dim], {range.total},        table.product()};
  for (int d = dim + 1; d < table.dims; ++d) number.inner *= table[d];
  return IndexNumbers<ElementNumber, Device>(on, number, indices);
}

/// Contiguous elements as an array of one dimension.
template <class T>
Strided<T> in_a_row(const Strided<T>& x) {
  return {x.data, Shape::filled(1, x.extents.product()), Shape::filled(1, 1)};
}

}  // namespace kernels

namespace ops {

template <int D>
struct ScatterAdd;

/// y[.., i, ..] = x[.., indices[.., i, ..], ..] along dimension D. If D is sharded, a rank stores
/// zeros for the elements of other ranks; the result is the sum over ranks.
template <int D>
struct Gather {
  static constexpr const char* name = "gather";
  static constexpr const char* partials =
      "sum,R->sum; avg,R->avg; max,R->max; min,R->min; product,R->product";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 2>& dims) {
    const RuleText chosen = detail::letters_with(dims[0], D);
    return detail::factors_text(detail::dim_letters(0, dims[0]), chosen, chosen);
  }

  template <class T>
  static void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x, const auto& indices) {
    const auto numbers = kernels::element_numbers(
        on, indices, x.extents, D, kernels::RowRange{task.in_box->begin[D], task.in[0].shape[D]});
    std::shared_ptr<void> memory;
    numbers.require(
        task,
        gather_rows(on, kernels::in_a_row(densely(on, x, memory)),
                    kernels::in_a_row(numbers.view()), kernels::in_a_row(y), numbers.range(name)),
        indices);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x,
                                 const auto& indices) {
    return cleave::detail::sums_like(x, ScatterAdd<D>{shape_of(x)[D]}, g, indices);
  }
};

/// Sums of the elements of x that have the same index along dimension D, whose extent is `extent`.
template <int D>
struct ScatterAdd {
  index_t extent = 0;

  static constexpr const char* name = "scatter_add";
  static constexpr const char* partials = "sum,R->sum; avg,R->avg";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 2>& dims) {
    const RuleText chosen = detail::letters_with(dims[0], D);
    return detail::factors_text(chosen, chosen, detail::dim_letters(0, dims[0]));
  }
  constexpr Shape extents() const { return Shape::filled(1, extent); }

  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x, const auto& indices) const {
    fill_elements(on, y, T(0));
    const auto numbers = kernels::element_numbers(on, indices, y.extents, D,
                                                  kernels::RowRange{task.box->begin[D], extent});
    std::shared_ptr<void> memory;
    numbers.require(task,
                    scatter_add_rows(on, kernels::in_a_row(densely(on, x, memory)),
                                     kernels::in_a_row(numbers.view()), kernels::in_a_row(y),
                                     numbers.range(name)),
                    indices);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&,
                                 const auto& indices) {
    return call_op(Gather<D>{}, g, indices);
  }
};

}  // namespace ops

/// Selects elements along a dimension by index: y[i, j] = x[i, indices[i, j]] for
/// `gather(x, dim<1>{}, indices)`.
///
/// @param indices  integers in [0, extent of the dimension); same extents as x, except along the
///                 dimension
/// @return    the shape of `indices`; Partial<Sum> on the axes that shard the dimension of x. The
///            gradient is computed directly with the placements of x
/// @cost      memory for one number per index
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error on the ranks that hold an index out of range; on a GPU from the next call that
///         waits for the device
template <class... R, AnyTensor X, int D, AnyTensor I>
constexpr auto gather(const X& x, dim<D>, const I& indices) {
  detail::require_indices<I>();
  static_assert(X::dims == I::dims, "cleave: gather requires indices with as many dimensions as x");
  return call_op<R...>(ops::Gather<detail::dim_index<X::dims>(dim<D>{})>{}, x, indices);
}
CLEAVE_USAGE(gather, "gather(x, dim<0>{}, indices)")

/// gather, with the arguments in the order of NumPy's take_along_axis.
template <class... R, AnyTensor X, AnyTensor I, int D>
constexpr auto take_along_dim(const X& x, const I& indices, dim<D> along) {
  return gather<R...>(x, along, indices);
}
CLEAVE_USAGE(take_along_dim, "take_along_dim(x, indices, dim<0>{})")

/// Sums elements by index along a dimension, the reverse of gather: y[i, indices[i, j]] += x[i, j]
/// for `scatter_add(x, dim<1>{}, indices, extent)`, starting from zeros.
///
/// @param indices  integers in [0, extent); same extents as x
/// @param extent   of dimension D of the result
/// @return    the shape of x, except along D; Partial<Sum> on the axes that shard D in x
/// @cost      as gather. On a GPU the indices are sorted, so that sums have the same bits in every
///            run
/// @throws Error as gather, or if extent is negative
template <class... R, AnyTensor X, int D, AnyTensor I>
constexpr auto scatter_add(const X& x, dim<D>, const I& indices, index_t extent) {
  detail::require_indices<I>();
  static_assert(X::dims == I::dims,
                "cleave: scatter_add requires indices with as many dimensions as x");
  if (extent < 0)
    throw Error("scatter_add", "the extent is negative: " + std::to_string(extent),
                detail::context_of(x));
  return call_op<R...>(ops::ScatterAdd<detail::dim_index<X::dims>(dim<D>{})>{extent}, x, indices);
}
CLEAVE_USAGE(scatter_add, "scatter_add(x, dim<0>{}, indices, extent)")

}  // namespace cleave::inline v0
