// Merging and splitting dimensions: flatten, unflatten, reshape.
//
// The result's placements are known at compile time: shards of these dimensions become shards of
// the merged one, or of the first new one. Where shards of both end at the same elements, nothing
// is communicated, and the result is a view if strides allow it; otherwise ranks receive what they
// lack.
//
//     // y[S0,R]     = flatten(x[S0,R,R], dim<0, 1>{})    12 x 4 becomes 48: no communication
//     // y[S0,R]     = flatten(x[S0,R,R], dim<0, 1>{})    6 x 4 becomes 24 over four ranks: an
//     exchange
//     // y[S0,R]     = flatten(x[R,S1,R], dim<0, 1>{})    an exchange
//     // y[R,S1,R]   = unflatten(x[R,S1], dim<1>{}, {heads, width})
//     // y[S0,R]     = reshape(x[R,S1,R], {-1, width})    an exchange
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace detail {

/// "ab(cd)e": the letters of `dims` dimensions, `count` of them from `first` on in parentheses.
constexpr RuleText grouped_letters(int dims, int first, int count) {
  if (count == 1) return dim_letters(0, dims);
  RuleText text = dim_letters(0, first);
  text += '(';
  text += dim_letters(first, first + count);
  text += ')';
  text += dim_letters(first + count, dims);
  return text;
}

/// "bada": the letters of dimensions [first, end), each read by `reader`.
constexpr RuleText all_read_by(int first, int end, char reader) {
  RuleText pairs;
  for (int d = first; d < end; ++d) pairs += char('a' + d), pairs += reader;
  return pairs;
}

/// Whether dimensions [first, end) of an array merge into one; sets its stride.
constexpr bool merges(const ArrayRef& x, int first, int end, index_t& stride) {
  index_t next = -1;  // the stride required of the preceding dimension
  for (int d = end - 1; d >= first; --d) {
    if (x.extents[d] == 1) continue;
    if (next < 0) stride = x.strides[d];
    else if (x.strides[d] != next) return false;
    next = x.strides[d] * x.extents[d];
  }
  if (next < 0) stride = 1;
  return true;
}

}  // namespace detail

namespace ops {

/// Merges `Count` dimensions, from First on, into one.
template <int First, int Count>
struct Flatten {
  index_t extent = 0;  ///< of the merged dimension

  static constexpr const char* name = "flatten";
  static constexpr const char* partials = moves_elements;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::dim_letters(0, dims[0]),
                                detail::grouped_letters(dims[0], First, Count));
  }
  static constexpr RuleText reads(const std::array<int, 1>&) {
    return detail::all_read_by(First + 1, First + Count, char('a' + First));
  }
  static constexpr Regrouping regrouping(int) { return {First, Count, 1}; }
  constexpr Shape extents() const { return Shape::filled(Count > 1 ? 1 : 0, extent); }
  static void view(const Task& task) {
    const ArrayRef& x = *task.in;
    index_t stride = 1;
    if (!detail::merges(x, First, First + Count, stride)) return;
    task.out->data = x.data;
    for (int d = 0; d < task.out->dims; ++d)
      task.strides[d] = d == First ? stride : x.strides[d < First ? d : d + Count - 1];
  }
  template <class X>
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const X& x);
};

/// Splits dimension `First` into `Count` dimensions, of which the last varies fastest.
template <int First, int Count>
struct Unflatten {
  std::array<index_t, std::size_t(Count)> extent{};

  static constexpr const char* name = "unflatten";
  static constexpr const char* partials = moves_elements;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    const int of_result = dims[0] + Count - 1;
    return detail::factors_text(detail::grouped_letters(of_result, First, Count),
                                detail::dim_letters(0, of_result));
  }
  static constexpr Regrouping regrouping(int) { return {First, 1, Count}; }
  constexpr Shape extents() const { return Count > 1 ? Shape(extent) : Shape{}; }
  static void view(const Task& task) {
    const ArrayRef &x = *task.in, &y = *task.out;
    task.out->data = x.data;
    for (int d = 0; d < y.dims; ++d) task.strides[d] = x.strides[d <= First ? d : d - Count + 1];
    task.strides[First + Count - 1] = x.strides[First];
    for (int d = First + Count - 2; d >= First; --d)
      task.strides[d] = task.strides[d + 1] * y.extents[d + 1];
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    return call_op(Flatten<First, Count>{shape_of(x)[First]}, g);
  }
};

template <int First, int Count>
template <class X>
constexpr auto Flatten<First, Count>::gradient(wrt<0>, const auto& g, const auto&, const X& x) {
  Unflatten<First, Count> op;
  const Shape shape = shape_of(x);
  for (int i = 0; i < Count; ++i) op.extent[std::size_t(i)] = shape[First + i];
  return call_op(op, g);
}

/// Gives the elements, in row-major order, `Count` other extents.
template <int Count>
struct Reshape {
  std::array<index_t, std::size_t(Count)> extent{};

  static constexpr const char* name = "reshape";
  static constexpr const char* partials = moves_elements;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::factors_text(detail::dim_letters(0, dims[0]),
                                detail::dim_letters(dims[0], dims[0] + Count));
  }
  static constexpr RuleText replicated(const std::array<int, 1>& dims) {
    return detail::dim_letters(dims[0], dims[0] + Count);
  }
  static constexpr RuleText reads(const std::array<int, 1>& dims) {
    return detail::all_read_by(0, Count > 0 ? dims[0] : 0, char('a' + dims[0]));
  }
  static constexpr Regrouping regrouping(int dims) { return {0, dims, Count}; }
  constexpr Shape extents() const { return Shape(extent); }
  static void view(const Task& task) {
    const ArrayRef& x = *task.in;
    index_t stride = 1;
    if (detail::merges(x, 0, x.dims, stride) && stride == 1) task.out->data = x.data;
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) {
    constexpr int dims = std::remove_cvref_t<decltype(x)>::dims;
    return call_op(Reshape<dims>{to_array<dims>(shape_of(x))}, g);
  }
};

}  // namespace ops

namespace detail {

/// Replaces an extent of -1 by the one that makes the product equal to `size`.
/// @throws Error if there is no such extent
template <std::size_t Count, class X>
constexpr std::array<index_t, Count> completed(const char* name, const index_t (&extents)[Count],
                                               index_t size, const X& x) {
  std::array<index_t, Count> result{};
  index_t known = 1;
  int open = 0;
  for (const index_t extent : extents)
    if (extent == -1) ++open;
    else known *= extent;
  const bool fits = open == 0 ? known == size : open == 1 && known > 0 && size % known == 0;
  bool negative = false;
  for (std::size_t d = 0; d < Count; ++d) {
    negative = negative || extents[d] < -1;
    result[d] = extents[d] == -1 && fits ? size / known : extents[d] < 0 ? 0 : extents[d];
  }
  if ((!fits || negative) && knows_extents(x)) {
    const Shape shape(std::to_array(extents));
    throw Error(name,
                std::to_string(size) + " elements do not fit into extents " + to_string(shape) +
                    (open > 0 ? "; at most one of them may be -1" : ""),
                context_of(x));
  }
  return result;
}

/// Whether the dimensions of a `dim` are consecutive.
template <int Rank, int First, int... D>
constexpr bool are_neighbours(dim<First, D...>) {
  int next = dim_index<Rank>(dim<First>{});
  return ((dim_index<Rank>(dim<D>{}) == ++next) && ...);
}

template <int First, int Count, class... R, class X>
constexpr auto flatten_dims(const X& x) {
  const Shape shape = shape_of(x);
  index_t extent = 1;
  for (int d = First; d < First + Count; ++d) extent *= shape[d];
  return call_op<R...>(ops::Flatten<First, Count>{extent}, x);
}

}  // namespace detail

/// Merges consecutive dimensions into one, the last varying fastest: `flatten(x, dim<0, 1>{})`.
///
/// @return a view of the local elements where strides allow it, else a copy. Shards of these
///         dimensions become shards of the merged one
/// @collective every rank of the mesh, if another one than the first of these dimensions is
/// sharded,
///         or the extent of the first one is not divisible by the number of its shards
/// @cost   receives the elements of the rank's part of the result that are not in its part of x;
///         nothing where shards end at the same elements
template <class... R, AnyTensor X, int First, int... D>
constexpr auto flatten(const X& x, dim<First, D...>) {
  static_assert(detail::are_neighbours<X::dims>(dim<First, D...>{}),
                "cleave: flatten names dimensions that follow each other: dim<1, 2>{}");
  constexpr int first = detail::dim_index<X::dims>(dim<First>{});
  return detail::flatten_dims<first, 1 + int(sizeof...(D)), R...>(x);
}
/// Merges all dimensions into one. Otherwise as above.
template <class... R, AnyTensor X>
constexpr auto flatten(const X& x) {
  static_assert(X::dims > 0, "cleave: flatten requires a dimension");
  return detail::flatten_dims<0, X::dims, R...>(x);
}
CLEAVE_USAGE(flatten, "flatten(x), flatten(x, dim<0, 1>{})")

/// Splits a dimension, the last of the new ones varying fastest: `unflatten(x, dim<1>{}, {n, -1})`.
///
/// @param extents  of the new dimensions; one may be -1 and is inferred
/// @return  a view of the local elements, or a copy after an exchange. Shards of the dimension are
///          then shards of the first new one
/// @collective  every rank of the mesh, if the extent of the first new one is not divisible by the
///         number of shards, or a requested placement needs it
/// @cost   as of flatten
/// @throws Error on all ranks, if the product of the extents is not the extent of the dimension
template <class... R, AnyTensor X, int D, std::size_t Count>
constexpr auto unflatten(const X& x, dim<D>, const index_t (&extents)[Count]) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  return call_op<R...>(ops::Unflatten<d, int(Count)>{detail::completed(
                           ops::Unflatten<d, int(Count)>::name, extents, shape_of(x)[d], x)},
                       x);
}
CLEAVE_USAGE(unflatten, "unflatten(x, dim<0>{}, {2, 3})")

/// Gives the elements, in row-major order, other extents: `reshape(x, {-1, 64})`.
///
/// Which dimensions stay is not known at compile time: shards of any dimension become shards of the
/// first one, Partial placements are kept. `flatten` and `unflatten` keep shards of others.
///
/// @param extents  the new extents; one may be -1 and is inferred
/// @return  a view of the local elements if they are contiguous, else a copy
/// @collective  every rank of the mesh, if x is sharded
/// @cost    as of flatten
/// @throws Error if the product of the extents is not the number of elements
template <class... R, AnyTensor X, std::size_t Count>
constexpr auto reshape(const X& x, const index_t (&extents)[Count]) {
  return call_op<R...>(ops::Reshape<int(Count)>{detail::completed(
                           ops::Reshape<int(Count)>::name, extents, shape_of(x).product(), x)},
                       x);
}
CLEAVE_USAGE(reshape, "reshape(x, {4, 6})")

}  // namespace cleave::inline v0
