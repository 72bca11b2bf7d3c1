// argmin and argmax: the index of the smallest or largest element along a dimension.
//
// If the dimension is sharded, every rank finds its candidate, and all-reduces combine the
// (value, global index) pairs. With elements of up to 32 bits a pair is packed into a 64-bit key,
// ordered by better value, then by lower index, so that one min all-reduce suffices. Larger
// elements take two: one of the values, then one of the indices where the value is the best.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/kernels/host/arg_reduce_dim.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/unsharded_dims.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/reductions/reduce.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Whether (value, index) pairs of T fit into 64 bits.
template <class T>
inline constexpr bool packs_into_key = sizeof(T) <= 4;

/// Maps a value to a number that is smaller for better values. NaNs are best, and all equal.
template <class Op, class T>
CLEAVE_HOST_DEVICE constexpr std::uint32_t value_key(const T& value) {
  std::uint32_t rising = 0;
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    rising = std::uint32_t(value);
  } else if constexpr (std::is_integral_v<T>) {
    rising = std::uint32_t(std::int32_t(value)) ^ 0x80000000u;
  } else {
    const float number = float(value);
    if (number != number) return 0;
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, number == 0.0f ? 0.0f : number);
    rising = bits >> 31 ? ~bits : bits | 0x80000000u;
  }
  return std::is_same_v<Op, Max> ? ~rising : rising;
}

/// The largest key, for ranks without a candidate.
inline constexpr std::uint64_t no_key = std::numeric_limits<std::uint64_t>::max();

/// The `partials` rows of functions of candidate (value, index) pairs: results combine by min.
template <class By>
constexpr const char* pair_rows(bool with_best) {
  if constexpr (std::is_same_v<By, Max>) return with_best ? "max,R,max->min" : "max,max->min";
  else return with_best ? "min,R,min->min" : "min,min->min";
}

/// Packs a pair into a key, ordered by better value, then by lower index.
template <class By>
struct KeyOfPair : Elementwise {
  static constexpr const char* name = std::is_same_v<By, Max> ? "argmax" : "argmin";
  static constexpr const char* partials = pair_rows<By>(false);
  template <class T>
  CLEAVE_HOST_DEVICE std::uint64_t operator()(const T& value, const index_t& index) const {
    if (index == kernels::no_index) return no_key;
    return std::uint64_t(value_key<By>(value)) << 32 | std::uint64_t(index);
  }
};

struct IndexOfKey : Elementwise {
  static constexpr const char* name = "index_of_key";
  CLEAVE_HOST_DEVICE index_t operator()(const std::uint64_t& key) const {
    return index_t(key & 0xffffffffu);
  }
};

/// The index of a pair whose value is the best of all ranks, `no_index` for other pairs.
template <class By>
struct IndexOfBest : Elementwise {
  static constexpr const char* name = std::is_same_v<By, Max> ? "argmax" : "argmin";
  static constexpr const char* partials = pair_rows<By>(true);
  template <class T>
  CLEAVE_HOST_DEVICE index_t operator()(const T& value, const T& best, const index_t& index) const {
    const bool same = value == best || (kernels::is_nan(value) && kernels::is_nan(best));
    return same ? index : kernels::no_index;
  }
};

}  // namespace detail

namespace ops {

/// The indices of the extreme elements along a dimension that is not sharded.
template <class By, int D>
struct ArgReduceWhole {
  using result = index_t;
  static constexpr const char* name = std::is_same_v<By, Max> ? "argmax" : "argmin";
  static constexpr RuleText replicated = detail::letter_of(D);
  static constexpr auto factors = detail::reduction_factors<(1u << D)>;
  template <class T>
  static void kernel(const auto& on, const Task&, const auto& y,
                     const kernels::Strided<const T>& x) {
    arg_reduce_dim<By>(on, x, D, 0, static_cast<T*>(nullptr), y.data);
  }
};

/// A rank's candidates along a dimension: extreme values and their global indices. The indices are
/// meaningful only together with the values.
template <class By, int D>
struct ArgCandidates {
  template <class T>
  using result_of = Types<T, index_t>;
  static constexpr const char* name = std::is_same_v<By, Max> ? "argmax" : "argmin";
  static constexpr ReduceOp reduction = By::value;
  static constexpr bool needs_box = true;
  static constexpr RuleText factors(const std::array<int, 1>& dims) {
    return detail::joined(detail::reduction_factors<(1u << D)>(dims), ',',
                          detail::dim_letters(0, dims[0], 1u << D));
  }
  static void kernel(const auto& on, const Task& task, const auto& values, const auto& indices,
                     const auto& x) {
    arg_reduce_dim<By>(on, x, D, task.in_box->begin[D], values.data, indices.data);
  }
};

/// The indices of the extreme elements along a dimension, sharded or not.
template <class By, int D>
struct ArgReduce : Composite {
  static constexpr const char* name = std::is_same_v<By, Max> ? "argmax" : "argmin";

  static constexpr bool takes_request = true;

  template <class Request, class X>
  static constexpr auto body(const Request& request, const X& x) {
    if constexpr (!detail::may_shard<(1u << D), X>())
      return detail::call_as(request, ArgReduceWhole<By, D>{}, x);
    else return of_candidates(request, x, call_op(ArgCandidates<By, D>{}, x));
  }

 private:
  template <class Request, class X, class Values, class Indices>
  static constexpr auto of_candidates(const Request& request, const X& x,
                                      const std::tuple<Values, Indices>& found) {
    const auto& [values, indices] = found;
    if constexpr (detail::packs_into_key<typename X::value_type>)
      if (shape_of(x)[D] <= index_t(0xffffffffu))
        return call_op(detail::IndexOfKey{},
                       reduced(request, call_op(detail::KeyOfPair<By>{}, values, indices)));
    return reduced(request, call_op(detail::IndexOfBest<By>{}, values, resolve(values), indices));
  }

  /// The smallest of all ranks' keys, under the requested placements.
  template <class Request, class X>
  static constexpr auto reduced(const Request& request, const X& keys) {
    if constexpr (detail::asks_placements<Request>)
      return detail::call_as(request, Redistribute{}, keys);
    else return resolve(keys);
  }
};

}  // namespace ops

namespace detail {

template <class By, class... R, class X, class D>
constexpr auto arg_reduce(const char* name, const X& x, D) {
  static_assert(!is_complex<typename X::value_type>, "cleave: complex numbers have no order");
  constexpr int d = dim_index<X::dims>(D{});
  require_candidates<(1u << d)>(name, x);
  return call_op<R...>(ops::ArgReduce<By, d>{}, x);
}

}  // namespace detail

/// Returns the index of the smallest element along a dimension: the lowest index among equal
/// elements, or the index of the first NaN if there is one.
///
/// @return int64, x.shape without dimension D; never Partial: the axes that shard D are reduced
/// @collective every rank of the mesh, if the dimension is sharded or x has to be redistributed
/// @cost    one all-reduce of 8 bytes per result if the dimension is sharded; two for 64-bit
///          elements
/// @throws Error if the dimension has extent 0 and the result is not empty
template <class... R, AnyTensor X, int D>
constexpr auto argmin(const X& x, dim<D> over) {
  return detail::arg_reduce<Min, R...>("argmin", x, over);
}
CLEAVE_USAGE(argmin, "argmin(x, dim<0>{})")

/// Returns the index of the largest element along a dimension, otherwise as argmin.
template <class... R, AnyTensor X, int D>
constexpr auto argmax(const X& x, dim<D> over) {
  return detail::arg_reduce<Max, R...>("argmax", x, over);
}
CLEAVE_USAGE(argmax, "argmax(x, dim<0>{})")

}  // namespace cleave::inline v0
