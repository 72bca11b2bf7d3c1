// Selecting slices of an array by index, such as rows of an embedding, and summing slices by index:
// index_select, embedding, index_add.
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/host/gather_rows.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace detail {

/// A view of x with the `count` dimensions from `at` on moved to the front.
template <class T>
kernels::Strided<T> moved_first(const kernels::Strided<T>& x, int at, int count) {
  kernels::Strided<T> result{x.data, {}, {}};
  const auto add = [&](int from, int to) {
    for (int d = from; d < to; ++d) {
      result.extents[result.extents.dims++] = x.extents[d];
      result.strides[result.strides.dims++] = x.strides[d];
    }
  };
  add(at, at + count);
  add(0, at);
  add(at + count, x.extents.dims);
  return result;
}

/// "adec": letters of `dims` dimensions, with those of `indices` in place of dimension `at`.
constexpr RuleText indexed_letters(int dims, int indices, int at) {
  return joined(dim_letters(0, at), dim_letters(dims, dims + indices), dim_letters(at + 1, dims));
}

/// Sums of g by index, with the placements of x. 16-bit elements are summed in float.
template <class Op, class X, class G, class... I>
constexpr auto sums_like(const X& x, const Op& op, const G& g, const I&... indices) {
  using T = typename G::value_type;
  if constexpr (std::is_same_v<accumulator_t<T>, T>) return call_as(like(x), op, g, indices...);
  else return cast<T>(call_as(like(x), op, cast<accumulator_t<T>>(g), indices...));
}

template <class I>
[[noreturn]] void throw_no_such_index(const cleave::Task& task, const I& wrong, index_t extent) {
  task.fail("index " + std::to_string(wrong) + " is not in [0, " + std::to_string(extent) + ")");
}

}  // namespace detail

namespace ops {

template <int D>
struct IndexAdd;

/// Slices of x along dimension D. If D is sharded, a rank stores zeros for the slices of other
/// ranks; the result is the sum over ranks.
///
///     // y[R,R,R] = index_select(x[R,R],  i[R,R])
///     // y[S0,R,R] = index_select(x[R,R], i[S0,R])    indices are sharded
///     // y[P]     = index_select(x[S0,R], i[R,R])     x is sharded along the dimension
template <int D>
struct IndexSelect {
  static constexpr const char* name = "index_select";
  static constexpr const char* partials =
      "sum,R->sum; avg,R->avg; max,R->max; min,R->min; product,R->product";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 2>& dims) {
    using cleave::detail::dim_letters;
    return cleave::detail::factors_text(dim_letters(0, dims[0]),
                                        dim_letters(dims[0], dims[0] + dims[1]),
                                        cleave::detail::indexed_letters(dims[0], dims[1], D));
  }

  static void kernel(const auto& on, const Task& task, const auto& y, const auto& x,
                     const auto& indices) {
    const index_t total = task.in[0].shape[D];
    const auto wrong = gather_rows(on, cleave::detail::moved_first(x, D, 1), indices,
                                   cleave::detail::moved_first(y, D, indices.extents.dims),
                                   kernels::RowRange{task.in_box->begin[D], total, name});
    if (wrong) cleave::detail::throw_no_such_index(task, *wrong, total);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x,
                                 const auto& indices) {
    return cleave::detail::sums_like(x, IndexAdd<D>{shape_of(x)[D]}, g, indices);
  }
};

/// Sums of the slices of x that have the same index, in an array whose dimension D has `extent`.
template <int D>
struct IndexAdd {
  index_t extent = 0;

  static constexpr const char* name = "index_add";
  static constexpr const char* partials = "sum,R->sum; avg,R->avg";
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 2>& dims) {
    const int of_result = dims[0] - dims[1] + 1;
    using cleave::detail::dim_letters;
    return cleave::detail::factors_text(cleave::detail::indexed_letters(of_result, dims[1], D),
                                        dim_letters(of_result, of_result + dims[1]),
                                        dim_letters(0, of_result));
  }
  constexpr Shape extents() const { return Shape::filled(1, extent); }

  template <class T>
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y, const auto& x,
              const auto& indices) const {
    fill_elements(on, y, T(0));
    const auto wrong = scatter_add_rows(on, cleave::detail::moved_first(x, D, indices.extents.dims),
                                        indices, cleave::detail::moved_first(y, D, 1),
                                        kernels::RowRange{task.box->begin[D], extent, name});
    if (wrong) cleave::detail::throw_no_such_index(task, *wrong, extent);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&,
                                 const auto& indices) {
    return call_op(IndexSelect<D>{}, g, indices);
  }
};

}  // namespace ops

namespace detail {

template <class I>
constexpr void require_indices() {
  using T = typename I::value_type;
  static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>,
                "cleave: indices must be integers");
}

}  // namespace detail

/// Selects slices of x along a dimension, in the order of a list of indices:
/// `index_select(x, dim<1>{}, columns)`.
///
/// @param indices  [i..], integers in [0, extent of the dimension)
/// @return    the shape of x, with the dimensions of `indices` in place of the dimension;
///            Partial<Sum> on the axes that shard it. The gradient is computed directly with the
///            placements of x
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error on the ranks that hold an index out of range; on a GPU from the next call that
///         waits for the device
template <class... R, AnyTensor X, int D, AnyTensor I>
constexpr auto index_select(const X& x, dim<D>, const I& indices) {
  detail::require_indices<I>();
  return call_op<R...>(ops::IndexSelect<detail::dim_index<X::dims>(dim<D>{})>{}, x, indices);
}
CLEAVE_USAGE(index_select, "index_select(x, dim<0>{}, indices)")

/// Selects rows of a table: `embedding(weight, tokens)` is [tokens.., d] for a weight [v, d]. Rows
/// or columns may be sharded. @see index_select
template <class... R, AnyTensor W, AnyTensor I>
constexpr auto embedding(const W& weight, const I& indices) {
  static_assert(W::dims == 2, "cleave: the weight of an embedding must be a matrix");
  return index_select<R...>(weight, dim<0>{}, indices);
}
CLEAVE_USAGE(embedding, "embedding(weight, indices)")

/// Sums slices of x by index, the reverse of index_select; starts from zeros.
///
/// @param x        [.., i.., ..], with the dimensions of `indices` from dimension D on
/// @param indices  [i..], integers in [0, extent)
/// @param extent   of dimension D of the result
/// @return    [.., extent, ..]; Partial<Sum> on the axes that shard indices
/// @cost      on a GPU the indices are sorted, so that sums have the same bits in every run
/// @throws Error as index_select, or if extent is negative
template <class... R, AnyTensor X, int D, AnyTensor I>
constexpr auto index_add(const X& x, dim<D>, const I& indices, index_t extent) {
  detail::require_indices<I>();
  static_assert(X::dims >= I::dims, "cleave: index_add has the dimensions of the indices in x");
  if (extent < 0)
    throw Error("index_add", "the extent is negative: " + std::to_string(extent),
                detail::context_of(x));
  constexpr int at = detail::dim_index<X::dims - I::dims + 1>(dim<D>{});
  return call_op<R...>(ops::IndexAdd<at>{extent}, x, indices);
}
CLEAVE_USAGE(index_add, "index_add(x, dim<0>{}, indices, extent)")

}  // namespace cleave::inline v0
