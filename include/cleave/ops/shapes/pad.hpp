// Padding a dimension with zeros, with a value or with elements of the array.
//
// The result is sharded as the operand is: along a sharded dimension, ranks receive what their part
// of the result reads.
//
//     // y[S0,R]  = pad(x[S0,R], dim<1>{}, 2, 2)     // no communication
//     // y[S0,S1] = pad(x[S0,S1], dim<1>{}, 2, 2)    // an exchange over the second axis
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/kernels/copy.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/redistribute_op.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/ops/shapes/roll.hpp>
#include <cleave/ops/shapes/slice.hpp>
#include <cleave/ops/shapes/squeeze.hpp>

namespace cleave::inline v0 {

/// What padding repeats of x: its elements mirrored at the first and the last one, which are not
/// repeated (2 1 | 0 1 2 | 1 0), the first and the last one (0 0 | 0 1 2 | 2 2), or the other end
/// (1 2 | 0 1 2 | 0 1).
enum class PadMode : std::uint8_t { reflect, replicate, circular };

namespace ops {

/// x padded with a value on both sides of dimension D.
template <int D, class T>
struct Pad {
  index_t extent = 0;
  index_t before = 0;
  T value{};

  static constexpr const char* name = "pad";
  static constexpr const char* partials = "max->max; min->min";
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr auto reads = detail::new_extent_reads<D>;
  constexpr Shape extents() const { return Shape::filled(1, extent); }
  constexpr DimMap read_map(int, int, const OperandRef*) const { return {1, 1, -before, -before}; }
  void kernel(const auto& on, const Task& task, const kernels::Strided<T>& y, const auto& x) const {
    fill_elements(on, y, value);
    place_slices(on, x, y, D, task.box->begin[D], before + task.in_box->begin[D]);
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    return detail::call_as(detail::like(x), Slice<D>{before, 1, shape_of(x)[D]}, g);
  }
};

/// x padded by its own elements on both sides of dimension D.
template <int D, PadMode Mode>
struct PadRepeated {
  index_t extent = 0;
  index_t before = 0;

  static constexpr const char* name = "pad";
  static constexpr const char* partials = moves_elements;
  static constexpr auto factors = detail::new_extent_factors<D>;
  static constexpr auto reads = detail::new_extent_reads<D>;
  constexpr Shape extents() const { return Shape::filled(1, extent); }
  constexpr DimMap read_map(int, int, const OperandRef*) const {
    constexpr Beyond beyond[] = {Beyond::reflect, Beyond::nearest, Beyond::repeat};
    return {1, 1, -before, -before, beyond[int(Mode)]};
  }
  void kernel(const auto& on, const Task& task, const auto& y, const auto& x) const {
    const index_t n = task.in->shape[D], first = task.box->begin[D], start = task.in_box->begin[D];
    if constexpr (Mode == PadMode::circular)
      return copy_periods(on, x, y, D, first - before - start, n);
    // the indices [begin, end) of y that read x[from], x[from + step], ..
    const auto part = [&](index_t begin, index_t end, index_t from, index_t step) {
      const index_t skipped = std::max<index_t>(first - begin, 0);
      const index_t count = std::min(end, first + y.extents[D]) - (begin + skipped);
      if (count > 0)
        copy_elements(on, every(x, D, from + skipped * step - start, step, count),
                      every(y, D, begin + skipped - first, 1, count));
    };
    constexpr index_t step = Mode == PadMode::reflect ? -1 : 0;
    part(0, before, -step * before, step);
    part(before, before + n, 0, 1);
    part(before + n, extent, n - 1 + step, step);
  }
  static constexpr unsigned gradient_reads = 0;
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    const index_t n = shape_of(x)[D], after = extent - before - n;
    const auto side = [&](index_t begin, index_t count) {
      return call_op(Slice<D>{begin, 1, count}, g);
    };
    const auto at = [&](index_t begin, const auto& part) {
      return detail::call_as(detail::like(x), Embed<D>{n, begin, 1}, part);
    };
    const auto middle = detail::call_as(detail::like(x), Slice<D>{before, 1, n}, g);
    const auto front = side(0, before), back = side(before + n, after);
    if constexpr (Mode == PadMode::circular) {
      return add(add(middle, at(n - before, front)), at(0, back));
    } else if constexpr (Mode == PadMode::reflect) {
      return add(add(middle, at(1, call_op(Flip<D>{}, front))),
                 at(n - 1 - after, call_op(Flip<D>{}, back)));
    } else {
      const auto sum_of = [&](const auto& part) {
        return unsqueeze(call_op(Reduce<Sum, (1u << D)>{}, part), dim<D>{});
      };
      return add(add(middle, at(0, sum_of(front))), at(n - 1, sum_of(back)));
    }
  }
};

}  // namespace ops

namespace detail {

/// The extent of dimension d after padding. @throws Error if a length is negative
template <class X>
constexpr index_t padded_extent(const X& x, int d, index_t before, index_t after) {
  return shape_of(x)[d] + checked_length("pad", x, before) + checked_length("pad", x, after);
}

}  // namespace detail

/// Pads a dimension with `before` zeros at its front and `after` zeros at its end.
///
/// @collective every rank of the mesh, if the dimension is sharded: otherwise as slice
/// @throws Error if a length is negative
template <class... R, AnyTensor X, int D>
constexpr auto pad(const X& x, dim<D>, index_t before, index_t after) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  return call_op<R...>(ops::Embed<d>{detail::padded_extent(x, d, before, after), before, 1}, x);
}
/// Pads a dimension with a value other than zero. Partial sums are reduced first.
template <class... R, AnyTensor X, int D>
constexpr auto pad(const X& x, dim<D>, index_t before, index_t after,
                   const typename X::value_type& value) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  return call_op<R...>(
      ops::Pad<d, typename X::value_type>{detail::padded_extent(x, d, before, after), before,
                                          value},
      x);
}
/// Pads a dimension with elements of x: `pad<PadMode::reflect>(x, dim<1>{}, 2, 2)`.
///
/// @cost receives the elements of x that the rank's part of the result reads beyond its part of x
/// @throws Error if a length is negative, or more than x has: its extent, or one less for
///         `reflect`; if x has no elements to replicate
template <PadMode Mode, class... R, AnyTensor X, int D>
constexpr auto pad(const X& x, dim<D>, index_t before, index_t after) {
  constexpr int d = detail::dim_index<X::dims>(dim<D>{});
  const index_t extent = detail::padded_extent(x, d, before, after), n = shape_of(x)[d];
  const index_t most = Mode == PadMode::reflect ? n - 1 : n, longest = std::max(before, after);
  const bool fits = Mode == PadMode::replicate ? n > 0 || longest == 0 : longest <= most;
  if (!fits && !(n == 0 && longest == 0) && detail::knows_extents(x))
    throw Error("pad",
                "a side of " + std::to_string(longest) + " elements is longer than the extent " +
                    std::to_string(n) + " allows",
                detail::context_of(x));
  return call_op<R...>(ops::PadRepeated<d, Mode>{extent, before}, x);
}
CLEAVE_USAGE(pad,
             "pad(x, dim<0>{}, before, after), pad(x, dim<0>{}, before, after, value), "
             "pad<PadMode::reflect>(x, dim<0>{}, before, after)")

}  // namespace cleave::inline v0
