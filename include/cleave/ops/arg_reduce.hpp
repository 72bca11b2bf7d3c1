// argmin and argmax: where along a dimension the extreme element is.
//
// Where the dimension is sharded, every rank finds its candidate, and one all-reduce combines
// (value, global index) pairs: for elements of up to 32 bits a pair fits into one 64-bit key whose
// order is "better value first, then lower index", so that the least key wins. Pairs of larger
// elements take two all-reduces: of the values, then of the indices of those who have it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/route.hpp>
#include <cleave/kernels/host/arg_reduce_dim.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/dim.hpp>
#include <cleave/placement/ownership.hpp>

namespace cleave {

/// The pairs of an arg reduction of dimension `Dim`: the least one wins.
template <int Rank, int Dim>
struct ArgReduce {};

template <int Rank, int Dim>
struct sharding_rule<ArgReduce<Rank, Dim>> {
  static constexpr RuleText factors = detail::reduction_factors(Rank, 1u << Dim);
  static constexpr ReduceOp reduction = ReduceOp::min;
};

namespace detail {

/// Whether (value, index) pairs of T fit into 64 bits.
template <class T>
inline constexpr bool packs_into_key = sizeof(T) <= 4;

/// The value as a number whose order is "better first". NaNs are best, and all alike.
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

/// A key that loses to all others, and the index in a key.
inline constexpr std::uint64_t no_key = std::numeric_limits<std::uint64_t>::max();
struct IndexOfKey {
  CLEAVE_HOST_DEVICE index_t operator()(std::uint64_t key) const {
    return index_t(key & 0xffffffffu);
  }
};

/// The pairs of a rank as keys.
template <class Op, class T>
struct KeyOfPair {
  CLEAVE_HOST_DEVICE std::uint64_t operator()(const T& value, index_t index) const {
    if (index == kernels::no_index) return no_key;
    return std::uint64_t(value_key<Op>(value)) << 32 | std::uint64_t(index);
  }
};

/// The index of a pair that has the best value of all ranks, or one that loses.
template <class T>
struct IndexOfBest {
  CLEAVE_HOST_DEVICE index_t operator()(const T& value, const T& best, index_t index) const {
    const bool same = value == best || (kernels::is_nan(value) && kernels::is_nan(best));
    return same ? index : kernels::no_index;
  }
};

/// What a rank finds along a dimension: extreme values, and their global indices.
template <class T, int Rank, class Device>
struct Candidates {
  Tensor<T, Rank, Device> values;
  Tensor<index_t, Rank, Device> indices;
};

/// @param first        the global index of the first element of that dimension
/// @param with_values  otherwise only the indices are kept
template <class Op, class T, int Rank, class Device>
Candidates<T, Rank - 1, Device> find_candidates(const Tensor<T, Rank, Device>& x, int dim,
                                                index_t first, bool with_values) {
  std::array<index_t, std::size_t(Rank - 1)> extents{};
  for (int d = 0; d < Rank - 1; ++d)
    extents[std::size_t(d)] = x.shape()[std::size_t(d + (d >= dim))];
  using Values = Tensor<T, Rank - 1, Device>;
  const Candidates<T, Rank - 1, Device> found{with_values ? Values(extents) : Values(),
                                              Tensor<index_t, Rank - 1, Device>(extents)};
  arg_reduce_dim<Op>(kernels::On<Device>{}, kernels::read(x), dim, first,
                     with_values ? found.values.data() : nullptr, found.indices.data());
  return found;
}

/// f of the elements of tensors of one shape.
template <class E, class F, class First, class... Rest>
Tensor<E, First::dims, typename First::device_type> mapped(const F& f, const First& first,
                                                           const Rest&... rest) {
  const Tensor<E, First::dims, typename First::device_type> out(first.shape());
  map_elements(kernels::On<typename First::device_type>{}, f, kernels::write(out),
               kernels::read(first), kernels::read(rest)...);
  return out;
}

/// Makes one choice of the candidates of all ranks; typed by elements, like every kernel.
///
/// @param indices   how keys or indices are reduced: under Min
/// @param extremes  how values are: under Op, on the same axes
/// @param fits      whether all indices have 32 bits
template <class Op, class T, int Rank, class Device>
Tensor<index_t, Rank, Device> choose(const Candidates<T, Rank, Device>& found, const Route& indices,
                                     const Route& extremes, bool fits, const CallFrame& call) {
  const auto shape = to_array<Rank>(call.result_shape());
  const auto reduce = [&](const auto& local, const Route& route) {
    return redistribute_local(local, route, call.mesh(), shape, call.name());
  };
  if constexpr (packs_into_key<T>)
    if (fits)
      return mapped<index_t>(
          IndexOfKey{},
          reduce(mapped<std::uint64_t>(KeyOfPair<Op, T>{}, found.values, found.indices), indices));
  const auto best = reduce(found.values, extremes);
  return reduce(mapped<index_t>(IndexOfBest<T>{}, found.values, best, found.indices), indices);
}

template <class Op, int Dim, class Request, class X>
auto arg_reduce_dtensor(const char* name, const X& x) {
  using Pairs = Call<ArgReduce<X::dims, Dim>, Request, X>;
  using Mesh = typename X::mesh_type;
  constexpr Layout computed = Pairs::solution.computed;
  const Pairs call(name, x);
  if (x.shape()[Dim] == 0 && call.result_shape().product() > 0 && x.mesh().is_member())
    throw Error(name, "there are no elements to choose from", x.context());
  const Box box = call.local_box(Pairs::solution.required[0], Shape(x.shape()));
  const auto found =
      find_candidates<Op>(call.template local<0>(x), Dim, box.begin[Dim], computed.has_partial());
  if constexpr (!computed.has_partial()) {
    return call.result(found.indices, x);
  } else {
    constexpr Placement everywhere = Placement::replicate();
    constexpr Layout last = Pairs::solution.result.with_partials_as(everywhere);
    constexpr Layout values = computed.with_partials_as(Placement::partial(Op::value));
    constexpr Layout best = computed.with_partials_as(everywhere);
    constexpr int axes = Mesh::axis_count, dims = Pairs::dims;
    return DTensor<index_t, dims, Mesh, placements_t<last.packed(), axes>>(
        choose<Op>(found, route_of<computed.packed(), last.packed(), axes, dims>,
                   route_of<values.packed(), best.packed(), axes, dims>,
                   x.shape()[Dim] <= index_t(0xffffffffu), call),
        x.mesh(), to_array<dims>(call.result_shape()));
  }
}

template <class Op, class Request, class X, class D>
auto arg_reduce(const char* name, const X& x, D) {
  using T = typename X::value_type;
  static_assert(!is_complex<T>, "cleave: complex numbers have no order");
  constexpr int d = dim_index<X::dims>(D{});
  if constexpr (is_dtensor<X>) return arg_reduce_dtensor<Op, d, Request>(name, x);
  else static_cast<void>(OperandCheck<ArgReduce<X::dims, d>, X>{});
}

}  // namespace detail

/// The index of the smallest element along a dimension, the lowest among equals; the first NaN if
/// there is one.
///
/// @return int64, without that dimension; never Partial: the axes that shard it are reduced
/// @collective every rank of the mesh, if the dimension is sharded or x has to be redistributed
/// @cost    one all-reduce of 8 bytes per result where the dimension is sharded; for elements of
///          64 bits two
/// @throws Error if there is no element to choose
template <class... R, AnyTensor X, int D>
auto argmin(const X& x, dim<D> over) {
  return detail::arg_reduce<Min, detail::Request<R...>>("argmin", x, over);
}

/// The index of the largest element along a dimension, likewise.
template <class... R, AnyTensor X, int D>
auto argmax(const X& x, dim<D> over) {
  return detail::arg_reduce<Max, detail::Request<R...>>("argmax", x, over);
}

}  // namespace cleave
