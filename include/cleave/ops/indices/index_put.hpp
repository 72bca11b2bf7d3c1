// Reading and writing elements of an array that several arrays of indices name together: index_get,
// index_put. They index the leading dimensions, which may be sharded.
//
//     // y[R]     = index_get(x[R,R], {i[R], j[R]})        y[n] = x[i[n], j[n]]
//     // y[P]     = index_get(x[S0,S1], ..)                x is sharded along indexed dimensions
//     // y[S0,S1] = index_put(x[S0,S1], {i, j}, v)         i, j, v replicated: no communication
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <tuple>

#include <cleave/kernels/copy.hpp>
#include <cleave/kernels/dense.hpp>
#include <cleave/kernels/host/gather_rows.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/indices/index_numbers.hpp>
#include <cleave/ops/indices/index_select.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0 {

/// Requests that `index_put` adds to the elements instead of replacing them.
struct accumulate_t {};
inline constexpr accumulate_t accumulate{};

namespace kernels {

/// The row of a table [rows, ..] from K indices in an array: `rows` for a row of another rank,
/// outside [0, rows] for indices out of range.
template <int K>
struct RowNumber {
  index_t begin[K];  ///< this rank holds indices [begin, begin + here) of total
  index_t here[K];
  index_t total[K];
  index_t rows;

  template <class... I>
  CLEAVE_HOST_DEVICE index_t operator()(index_t, const I&... index) const {
    const index_t at[] = {index_t(index)...};
    index_t row = 0;
    bool found = true;
    for (int k = 0; k < K; ++k) {
      if (at[k] < 0) return at[k];
      if (at[k] >= total[k]) return rows + 1 + (at[k] - total[k]);
      found = found && at[k] >= begin[k] && at[k] < begin[k] + here[k];
      row = row * here[k] + at[k] - begin[k];
    }
    return found ? row : rows;
  }
};

/// x [a, b, .., r..] as [a b .., r..]. @tparam K how many dimensions become rows. @pre x is dense
template <int K, class T>
Strided<T> rows_of(const Strided<T>& x) {
  Strided<T> table{x.data, Shape::filled(1, 1), Shape::filled(1, 1)};
  for (int d = 0; d < K; ++d) table.extents[0] *= x.extents[d];
  for (int d = K; d < x.extents.dims; ++d) {
    table.strides[0] *= x.extents[d];
    table.extents[table.extents.dims++] = x.extents[d];
    table.strides[table.strides.dims++] = x.strides[d];
  }
  return table;
}

/// The row numbers that K arrays of indices name in this rank's part of an array.
///
/// @param box    global indices of this rank's part
/// @param total  global extents
template <int K, class Device, class... I>
auto row_numbers(On<Device> on, const Box& box, const index_t* total,
                 const Strided<const I>&... indices) {
  RowNumber<K> number{};
  number.rows = 1;
  for (int k = 0; k < K; ++k) {
    number.begin[k] = box.begin[k];
    number.here[k] = box.extent(k);
    number.total[k] = total[k];
    number.rows *= number.here[k];
  }
  return IndexNumbers<RowNumber<K>, Device>(on, number, indices...);
}

}  // namespace kernels

namespace detail {

/// "nbc" for an array of `dims` dimensions, the first `indexed` of which the dimensions of the
/// indices replace.
constexpr RuleText put_letters(int dims, int indices, int indexed) {
  return joined(dim_letters(dims, dims + indices), dim_letters(indexed, dims));
}

/// "operands..,n,n->result"
constexpr RuleText put_factors(RuleText text, int dims, int indices, int count,
                               const RuleText& result) {
  for (int k = 0; k < count; ++k) {
    if (text.size > 0) text += ',';
    text += dim_letters(dims, dims + indices);
  }
  return joined(text, "->", result);
}

}  // namespace detail

namespace ops {

struct IndexPutBase {
  static constexpr const char* name = "index_put";
  static constexpr const char* partials = "";
  static constexpr bool needs_box = true;
};

template <int K>
struct IndexSum;

/// y[n.., r..] = x[i[n..], j[n..], .., r..], of K arrays of indices. A rank stores zeros for the
/// elements of other ranks; the result is the sum over ranks.
template <int K>
struct IndexGet : IndexPutBase {
  static constexpr const char* name = "index_get";
  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using namespace cleave::detail;
    return put_factors(dim_letters(0, dims[0]), dims[0], dims[1], K,
                       put_letters(dims[0], dims[1], K));
  }

  template <class Device, class T>
  static void kernel(kernels::On<Device> on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x, const auto&... indices) {
    const auto numbers = kernels::row_numbers<K>(on, *task.in_box, task.in[0].shape, indices...);
    std::shared_ptr<void> memory;
    numbers.require(task,
                    gather_rows(on, kernels::rows_of<K>(densely(on, x, memory)), numbers.view(), y,
                                numbers.range(name)),
                    indices...);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x,
                                 const auto&... indices) {
    IndexSum<K> op;
    for (int k = 0; k < K; ++k) op.extent[k] = shape_of(x)[k];
    return cleave::detail::sums_like(x, op, g, indices...);
  }
};

/// y[i[n..], j[n..], .., r..] += x[n.., r..], starting from zeros.
template <int K>
struct IndexSum : IndexPutBase {
  index_t extent[K] = {};  ///< of the indexed dimensions

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using namespace cleave::detail;
    const int of_result = dims[0] - dims[1] + K;
    return put_factors(put_letters(of_result, dims[1], K), of_result, dims[1], K,
                       dim_letters(0, of_result));
  }
  constexpr Shape extents() const {
    Shape fresh;
    for (int k = 0; k < K; ++k) fresh[fresh.dims++] = extent[k];
    return fresh;
  }

  template <class Device, class T>
  void kernel(kernels::On<Device> on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x, const auto&... indices) const {
    fill_elements(on, y, T(0));
    const auto numbers = kernels::row_numbers<K>(on, *task.box, extent, indices...);
    numbers.require(
        task, scatter_add_rows(on, x, numbers.view(), kernels::rows_of<K>(y), numbers.range(name)),
        indices...);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&,
                                 const auto&... indices) {
    return call_op(IndexGet<K>{}, g, indices...);
  }
};

/// y = x with elements replaced by a number.
template <int K, class T>
struct IndexFill : IndexPutBase {
  T value{};

  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using namespace cleave::detail;
    const RuleText all = dim_letters(0, dims[0]);
    return put_factors(all, dims[0], dims[1], K, all);
  }
  template <std::size_t N>
  static constexpr RuleText replicated(const std::array<int, N>& dims) {
    return cleave::detail::dim_letters(dims[0], dims[0] + dims[1]);
  }

  template <class Device>
  void kernel(kernels::On<Device> on, const Task& task, const kernels::Strided<T>& y,
              const kernels::Strided<const T>& x, const auto& first, const auto&... rest) const {
    const std::shared_ptr<void> memory = allocate_bytes(Device{}, sizeof(T));
    kernels::Strided<T> one{static_cast<T*>(memory.get()), {}, {}};
    fill_elements(on, one, value);
    kernels::Strided<const T> values{one.data, first.extents, {}};
    for (int d = K; d < y.extents.dims; ++d) values.extents[values.extents.dims++] = y.extents[d];
    values.strides = Shape::filled(values.extents.dims, 0);
    put<K>(on, task, y, x, values, first, rest...);
  }
  template <int Of, class Device>
  static void put(kernels::On<Device> on, const Task& task, const kernels::Strided<T>& y,
                  const kernels::Strided<const T>& x, const kernels::Strided<const T>& values,
                  const auto&... indices) {
    copy_elements(on, x, y);
    const auto numbers = kernels::row_numbers<Of>(on, *task.box, task.in[0].shape, indices...);
    numbers.require(
        task, put_rows(on, values, numbers.view(), kernels::rows_of<Of>(y), numbers.range(name)),
        indices...);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&,
                                 const auto&... indices) {
    return call_op(IndexFill{}, g, indices...);
  }
};

/// y = x with y[i[n..], j[n..], .., r..] = v[n.., r..]; the last value of an element remains.
template <int K>
struct IndexPut : IndexPutBase {
  template <std::size_t N>
  static constexpr RuleText factors(const std::array<int, N>& dims) {
    using namespace cleave::detail;
    const RuleText all = dim_letters(0, dims[0]);
    return put_factors(joined(all, ',', put_letters(dims[0], dims[2], K)), dims[0], dims[2], K,
                       all);
  }
  template <std::size_t N>
  static constexpr RuleText replicated(const std::array<int, N>& dims) {
    return cleave::detail::dim_letters(dims[0], dims[0] + dims[2]);
  }

  template <class Device, class T>
  static void kernel(kernels::On<Device> on, const Task& task, const kernels::Strided<T>& y,
                     const kernels::Strided<const T>& x, const kernels::Strided<const T>& values,
                     const auto&... indices) {
    IndexFill<K, T>::template put<K>(on, task, y, x, values, indices...);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto&, const auto&,
                                 const auto&... indices) {
    using T = typename std::remove_cvref_t<decltype(g)>::value_type;
    return call_op(IndexFill<K, T>{}, g, indices...);
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto&, const auto&,
                                 const auto&... indices) {
    return call_op(IndexGet<K>{}, g, indices...);
  }
};

}  // namespace ops

namespace detail {

template <class X, class First, class... I>
constexpr void require_index_arrays() {
  (require_indices<First>(), ..., require_indices<I>());
  static_assert(((First::dims == I::dims) && ...),
                "cleave: arrays of indices that name elements together have equal extents");
  static_assert(int(sizeof...(I)) < X::dims,
                "cleave: there are more arrays of indices than dimensions");
}

}  // namespace detail

/// Elements that several arrays of indices name together: y[n] = x[i[n], j[n]] for
/// `index_get(x, std::tie(i, j))`. With fewer arrays than dimensions, each names a slice.
///
/// @param indices  integers, in [0, extent) of the leading dimensions of x; equal extents
/// @return    the extents of an array of indices, then those of the other dimensions of x;
///            Partial<Sum> on the axes that shard the indexed dimensions
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error on the ranks that hold an index out of range; on a GPU from the next call that
///         waits for the device
template <class... R, AnyTensor X, class... I>
constexpr auto index_get(const X& x, const std::tuple<I...>& indices) {
  detail::require_index_arrays<X, std::remove_cvref_t<I>...>();
  return std::apply(
      [&](const auto&... i) { return call_op<R...>(ops::IndexGet<int(sizeof...(I))>{}, x, i...); },
      indices);
}
CLEAVE_USAGE(index_get, "index_get(x, std::tie(i, j))")

/// Returns x with elements replaced that several arrays of indices name together: y[i[n], j[n]] =
/// values[n] for `index_put(x, std::tie(i, j), values)`. No communication if indices and values are
/// replicated, no matter which dimensions of x are sharded: every rank writes its own elements.
///
/// @param indices  as in index_get
/// @param values   the extents of an array of indices, then those of the other dimensions of x; or
///                 a number. If indices repeat, the last value remains, and the gradient is that of
///                 values of different elements
/// @return    an array like x
/// @collective every rank of the mesh, if an operand has to be redistributed
/// @throws Error as index_get
template <class... R, AnyTensor X, class... I, AnyOperand V>
constexpr auto index_put(const X& x, const std::tuple<I...>& indices, const V& values) {
  detail::require_index_arrays<X, std::remove_cvref_t<I>...>();
  constexpr int K = int(sizeof...(I));
  using T = typename X::value_type;
  return std::apply(
      [&](const auto&... i) {
        if constexpr (AnyTensor<V>)
          return call_op<R...>(ops::IndexPut<K>{}, x, detail::same_type<T>(values), i...);
        else return call_op<R...>(ops::IndexFill<K, T>{{}, detail::same_type<T>(values)}, x, i...);
      },
      indices);
}

/// The same, but adds the values to the elements; if indices repeat, all values are added.
template <class... R, AnyTensor X, class... I, AnyTensor V>
constexpr auto index_put(const X& x, const std::tuple<I...>& indices, const V& values,
                         accumulate_t) {
  detail::require_index_arrays<X, std::remove_cvref_t<I>...>();
  ops::IndexSum<int(sizeof...(I))> op;
  for (int k = 0; k < int(sizeof...(I)); ++k) op.extent[k] = shape_of(x)[k];
  return std::apply(
      [&](const auto&... i) { return add<R...>(x, detail::sums_like(x, op, values, i...)); },
      indices);
}
CLEAVE_USAGE(index_put, "index_put(x, std::tie(i, j), values)")

}  // namespace cleave::inline v0
