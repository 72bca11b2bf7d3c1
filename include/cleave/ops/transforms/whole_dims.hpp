// Computes along dimensions one after the other, each when every rank has it whole: a sharded one
// is exchanged for one that is not.
#pragma once

#include <type_traits>
#include <utility>

#include <cleave/kernels/strided.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/redistribution/redistribute.hpp>
#include <cleave/ops/transforms/exchange_in_halves.hpp>
#include <cleave/placement/placement.hpp>

namespace cleave::inline v0::detail {

/// The layout in which a dimension of the mask is whole that `layout` shards: the axes that shard
/// it shard another dimension instead, the nearest one that is whole, so that transforms there and
/// back end where they began; rather one that is transformed, too, than one of a batch. A dimension
/// without such a neighbour is brought together on every rank.
///
/// @param mask         dimensions that are still to be transformed
/// @param transformed  all dimensions of the transform
constexpr Layout with_a_whole_dim(const Layout& layout, int dims, unsigned mask,
                                  unsigned transformed) {
  const unsigned sharded = sharded_dims(layout);
  int from = -1, to = -1;
  for (int d = 0; d < dims; ++d)
    for (int e = 0; e < dims; ++e) {
      const auto distance = [&](int a, int b) {
        return (a < b ? b - a : a - b) + (transformed >> b & 1u ? 0 : dims);
      };
      if ((mask & sharded) >> d & 1u && !(sharded >> e & 1u) &&
          (from < 0 || distance(d, e) < distance(from, to)))
        from = d, to = e;
    }
  Layout result = layout;
  if (from < 0)  // all dimensions are sharded: two share one, or none is left
    for (int d = 0; d < dims; ++d)
      if (mask >> d & 1u) from = d;
  for (int e = 0; to < 0 && e < dims; ++e)
    if (e != from) to = e;
  for (int a = 0; a < layout.axes; ++a)
    if (layout[a].shards() && layout[a].dim == from)
      result[a] = to < 0 ? Placement::replicate() : Placement::shard(to);
  return result;
}

template <class X, unsigned Mask, unsigned All>
struct WithAWholeDim {
  static constexpr Layout layout = with_a_whole_dim(X::layout, X::dims, Mask, All);
};

/// Whether the next exchange of x can be split in halves, so that the last transform before it and
/// the first one after it overlap with it.
template <class X, unsigned Exchanged, unsigned All>
inline constexpr bool can_halve = [] {
  if constexpr (Exchanged != 0 && is_dtensor<X>) {
    if constexpr (std::is_same_v<typename X::device_type, Host> &&
                  !is_open_list<typename X::placements_type>) {
      constexpr Layout to = WithAWholeDim<X, Exchanged, All>::layout;
      return X::layout.is_box() && to.is_box() && batch_dim(X::layout, to, X::dims, All) >= 0;
    }
  }
  return false;
}();

/// The last dimension of a mask.
constexpr int last_dim(unsigned mask) {
  int d = 0;
  while (mask >> (d + 1)) ++d;
  return d;
}

/// Overwrites x with the result of an operation on lines.
void transform_in_place(const auto& lines, const auto& x) {
  if constexpr (is_dtensor<std::remove_cvref_t<decltype(x)>>) {
    transform_in_place(lines, x.to_local());
  } else {
    lines.kernel(kernels::On<Host>{}, cleave::Task{}, kernels::write(x), kernels::read(x));
  }
}

/// Calls the operations on lines `transform.lines<D>()` for the dimensions of the mask, each when
/// it is whole on every rank. Results that nobody else has are overwritten, and freed once they are
/// exchanged.
///
/// @tparam All    all dimensions of the transform of which these are a part
/// @tparam IsOwn  whether x is such a result
template <unsigned Mask, unsigned All, bool IsOwn = false, class X, class Transform>
constexpr auto each_when_whole(X x, const Transform& transform) {
  if constexpr (Mask == 0) {
    return x;
  } else if constexpr (call_level<X> == 2) {  // placements are values
    X y = x;
    for (unsigned left = Mask; left != 0;) {
      const Layout layout = y.layout();
      const unsigned whole = left & ~sharded_dims(layout);
      if (whole == 0) {
        y = y.redistribute(with_a_whole_dim(layout, X::dims, left, All));
        continue;
      }
      const int last = last_dim(whole);
      [&]<int... D>(std::integer_sequence<int, D...>) {
        const auto call = [&]<int E>(std::integral_constant<int, E>) {
          if constexpr ((Mask >> E & 1u) != 0)
            if (E == last) y = call_op(transform.template lines<E>(), y);
        };
        (call(std::integral_constant<int, D>{}), ...);
      }(std::make_integer_sequence<int, X::dims>{});
      left &= ~(1u << last);
    }
    return y;
  } else {
    constexpr unsigned whole = [] {
      if constexpr (is_dtensor<X>) return Mask & ~sharded_dims(X::layout);
      else return Mask;
    }();
    constexpr unsigned later = Mask & ~whole;
    if constexpr (can_halve<X, later, All> && (whole & (whole - 1)) == 0) {
      using To = placements_t<WithAWholeDim<X, later, All>>;
      constexpr Layout to = layout_of<To, X::dims>;
      constexpr int batch = batch_dim(X::layout, to, X::dims, All);
      constexpr int before = whole == 0 ? -1 : last_dim(whole);
      constexpr int after = last_dim(later & ~sharded_dims(to));
      constexpr unsigned last = later & ~(1u << after);
      if (pays_in_halves(x.mesh().state(), Shape(x.shape()), batch, sizeof(typename X::value_type)))
        return each_when_whole<last, All, true>(
            exchange_in_halves<before, after, batch, IsOwn, To>(x, transform), transform);
    }
    if constexpr (whole == 0) {
      const auto to = placements_as<placements_t<WithAWholeDim<X, Mask, All>>>(x.actual_layout());
      auto exchanged = X(std::move(x)).redistribute(to);  // reuses or frees the storage of a result
      return each_when_whole<Mask, All, IsOwn>(std::move(exchanged), transform);
    } else {
      constexpr int last = last_dim(whole);
      constexpr unsigned left = Mask & ~(1u << last);
      if constexpr (IsOwn && std::is_same_v<typename X::device_type, Host>) {
        transform_in_place(transform.template lines<last>(), x);
        return each_when_whole<left, All, true>(std::move(x), transform);
      } else {
        return each_when_whole<left, All, true>(call_op(transform.template lines<last>(), x),
                                                transform);
      }
    }
  }
}

/// The same for one dimension that `transform` changes to another element type.
template <int D, unsigned All, class X, class Transform>
constexpr auto when_whole(X x, const Transform& transform) {
  if constexpr (call_level<X> == 2) {
    const Layout layout = x.layout();
    if (sharded_dims(layout) >> D & 1u)
      return transform(x.redistribute(with_a_whole_dim(layout, X::dims, 1u << D, All)));
    return transform(x);
  } else if constexpr (is_dtensor<X>) {
    if constexpr ((sharded_dims(X::layout) >> D & 1u) != 0) {
      const auto to =
          placements_as<placements_t<WithAWholeDim<X, 1u << D, All>>>(x.actual_layout());
      const auto exchanged = X(std::move(x)).redistribute(to);
      return transform(exchanged);
    } else {
      return transform(x);
    }
  } else {
    return transform(x);
  }
}

}  // namespace cleave::inline v0::detail
