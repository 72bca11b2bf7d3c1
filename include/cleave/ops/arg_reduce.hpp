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
#include <cleave/kernels/host/arg_reduce_dim.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/dim.hpp>
#include <cleave/ops/map.hpp>
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

/// One arg reduction: the steps share what the solver said and what the local kernel found.
template <class Op, int Dim, class Request, class X>
class ArgReduction {
  using T = typename X::value_type;
  using Device = typename X::device_type;
  using Mesh = typename X::mesh_type;
  static constexpr int rank = X::dims - 1;
  using Pairs = Call<ArgReduce<X::dims, Dim>, Request, X>;
  template <class E>
  using Local = Tensor<E, rank, Device>;
  template <class E>
  using Candidates = DTensor<E, rank, Mesh, typename Pairs::Computed>;

 public:
  ArgReduction(const char* name, const X& x) : call_(name, x), x_(x) {
    if (x.shape()[Dim] == 0 && Shape(call_.shape()).product() > 0)
      throw Error(name, "there are no elements to choose from", x.context());
  }

  auto run() const {
    constexpr bool combines = Pairs::solution.computed.has_partial();
    const auto local = call_.template local<0>(x_);
    std::array<index_t, std::size_t(rank)> extents{};
    for (int d = 0; d < rank; ++d)
      extents[std::size_t(d)] = local.shape()[std::size_t(d + (d >= Dim))];
    const Local<index_t> indices(extents);
    if constexpr (!combines) {
      find(local, static_cast<T*>(nullptr), indices);
      return call_.result(indices, x_);
    } else {
      const Local<T> values(extents);
      find(local, values.data(), indices);
      if constexpr (packs_into_key<T>)
        if (x_.shape()[Dim] <= index_t(0xffffffffu)) return combine_keys(values, indices);
      return combine_in_two(values, indices);
    }
  }

 private:
  void find(const typename X::local_type& local, T* values, const Local<index_t>& indices) const {
    const Box box = call_.local_box(Pairs::solution.required[0], Shape(x_.shape()));
    arg_reduce_dim<Op>(kernels::On<Device>{}, kernels::read(local), Dim, box.begin[Dim], values,
                       indices.data());
  }

  /// The placements of the result: without the reductions, or as asked for.
  static constexpr Layout final_layout() {
    Layout layout = Pairs::solution.result;
    for (int a = 0; a < layout.axes; ++a)
      if (layout[a].is_partial()) layout[a] = Placement::replicate();
    return layout;
  }
  using Final = placements_t<final_layout().packed(), Mesh::axis_count>;

  template <class E, class F, class... In>
  static Local<E> mapped(const F& f, const Local<In>&... in) {
    const Local<E> out((in.shape(), ...));
    map_elements(kernels::On<Device>{}, f, kernels::write(out), kernels::read(in)...);
    return out;
  }

  template <class E>
  Candidates<E> candidates(const Local<E>& local) const {
    return {local, x_.mesh(), call_.shape()};
  }

  auto combine_keys(const Local<T>& values, const Local<index_t>& indices) const {
    const auto keys = redistribute_to<Final>(
        candidates(mapped<std::uint64_t>(KeyOfPair<Op, T>{}, values, indices)), call_.name());
    return DTensor<index_t, rank, Mesh, Final>(mapped<index_t>(IndexOfKey{}, keys.local()),
                                               x_.mesh(), call_.shape());
  }

  auto combine_in_two(const Local<T>& values, const Local<index_t>& indices) const {
    // values are reduced under Op, indices under Min: the axes are the same
    using Extremes = placements_t<with_op(Op::value).packed(), Mesh::axis_count>;
    using Everywhere = placements_t<reduced_layout().packed(), Mesh::axis_count>;
    const DTensor<T, rank, Mesh, Extremes> mine(values, x_.mesh(), call_.shape());
    const auto best = redistribute_to<Everywhere>(mine, call_.name());
    return redistribute_to<Final>(
        candidates(mapped<index_t>(IndexOfBest<T>{}, values, best.local(), indices)), call_.name());
  }

  static constexpr Layout with_op(ReduceOp op) {
    Layout layout = Pairs::solution.computed;
    for (int a = 0; a < layout.axes; ++a)
      if (layout[a].is_partial()) layout[a] = Placement::partial(op);
    return layout;
  }
  static constexpr Layout reduced_layout() {
    Layout layout = Pairs::solution.computed;
    for (int a = 0; a < layout.axes; ++a)
      if (layout[a].is_partial()) layout[a] = Placement::replicate();
    return layout;
  }

  Pairs call_;
  const X& x_;
};

template <class Op, class Request, class X, class D>
auto arg_reduce(const char* name, const X& x, D) {
  using T = typename X::value_type;
  static_assert(!is_complex<T>, "cleave: complex numbers have no order");
  constexpr int d = dim_index<X::dims>(D{});
  if constexpr (is_dtensor<X>) return ArgReduction<Op, d, Request, X>(name, x).run();
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
