// Reductions over dimensions: sum, mean, prod, max, min.
//
// A rank reduces what it has. Where a reduced dimension is sharded, the result is Partial: the
// reduction over ranks waits until someone needs it (and may then be a reduce-scatter).
//
//     // y[S0]   = sum(x[S0,R], dim<1>)
//     // y[P]    = sum(x[S1],   dim<1>)
//     // y[Pmax] = max(x[S0])
#pragma once

#include <array>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/host/reduce_dims.hpp>
#include <cleave/ops/call.hpp>
#include <cleave/ops/dim.hpp>

namespace cleave {

/// The reduction of the dimensions in `Mask` of an array with `Rank` dimensions by Op.
///
/// @tparam Keeps  whether partial operands may stay partial
template <class Op, int Rank, unsigned Mask, bool Keeps>
struct Reduce {};

/// Sums of sums, maxima of maxima, .. may be taken in any order; sums and averages too.
template <class Op, int Rank, unsigned Mask, bool Keeps>
struct sharding_rule<Reduce<Op, Rank, Mask, Keeps>> {
  static constexpr RuleText factors = detail::reduction_factors(Rank, Mask);
  static constexpr ReduceOp reduction = Op::value;
  static constexpr const char* partials = [] {
    if constexpr (!Keeps) return "";
    else if constexpr (std::is_same_v<Op, Sum>) return "sum->sum; avg->avg";
    else if constexpr (std::is_same_v<Op, Max>) return "max->max";
    else if constexpr (std::is_same_v<Op, Min>) return "min->min";
    else return "product->product";
  }();
};

namespace detail {

/// What a reduction of T has as elements: bools are counted.
template <class Op, class T>
using reduced_t =
    std::conditional_t<std::is_same_v<T, bool> && std::is_same_v<Op, Sum>, index_t, T>;

/// What a rank contributes; typed by elements, like every kernel.
///
/// @param mask    the dimensions that go, as many as Result has less
/// @param finish  what becomes of each local result
template <class Op, class Result, class Local, class Finish>
Result reduce_local(const Local& x, unsigned mask, const Finish& finish) {
  std::array<index_t, std::size_t(Result::dims)> extents{};
  for (std::size_t d = 0, n = 0; d < std::size_t(Local::dims); ++d)
    if (!(mask >> d & 1u)) extents[n++] = x.shape()[d];
  const Result out(extents);
  reduce_dims<Op>(kernels::On<typename Result::device_type>{}, kernels::read(x), mask,
                  kernels::write(out), finish);
  return out;
}

template <class Op, unsigned Mask, class Request, class X, class Finish = kernels::Same>
auto reduce_dtensor(const char* name, const X& x, const Finish& finish = {}) {
  using T = typename X::value_type;
  using R = reduced_t<Op, T>;
  using Call = Call<Reduce<Op, X::dims, Mask, std::is_same_v<T, R>>, Request, X>;
  using Result = Tensor<R, Call::dims, typename Call::Device>;
  return Call(name, x).run(
      [&](const typename X::local_type& local) {
        return reduce_local<Op, Result>(local, Mask, finish);
      },
      x);
}

/// How many elements become one.
template <unsigned Mask, class X>
index_t reduced_count(const X& x) {
  index_t count = 1;
  for (std::size_t d = 0; d < std::size_t(X::dims); ++d)
    if (Mask >> d & 1u) count *= x.shape()[d];
  return count;
}

template <class Op, unsigned Mask, class Request, class X>
auto extreme(const char* name, const X& x) {
  static_assert(!is_complex<typename X::value_type>, "cleave: complex numbers have no order");
  if constexpr (is_dtensor<X>)
    if (reduced_count<Mask>(x) == 0 && reduced_count<~Mask>(x) > 0 && x.mesh().is_member())
      throw Error(name, "there are no elements to choose from", x.context());
  return reduce_dtensor<Op, Mask, Request>(name, x);
}

}  // namespace detail

/// The sum over all elements, or over the dimensions of a `dim`. Integers wrap; bools are counted.
///
/// @return without the summed dimensions; Partial<Sum> on the axes that shard one of them
/// @collective every rank of the mesh, if x has to be redistributed
template <class... R, AnyTensor X, class D = every_dim>
auto sum(const X& x, D = {}) {
  return detail::reduce_dtensor<Sum, detail::checked_mask<X, D>(), detail::Request<R...>>("sum", x);
}

/// The mean, likewise: Partial<Sum> of what the ranks contribute to it, shards even or not. NaN
/// for no elements.
template <class... R, AnyTensor X, class D = every_dim>
auto mean(const X& x, D = {}) {
  using T = typename X::value_type;
  static_assert(!std::is_integral_v<T>, "cleave: a mean is no whole number; cast first");
  constexpr unsigned mask = detail::checked_mask<X, D>();
  return detail::reduce_dtensor<Sum, mask, detail::Request<R...>>(
      "mean", x, kernels::DividedBy<T>(detail::reduced_count<mask>(x)));
}

/// The product, likewise.
template <class... R, AnyTensor X, class D = every_dim>
auto prod(const X& x, D = {}) {
  return detail::reduce_dtensor<Product, detail::checked_mask<X, D>(), detail::Request<R...>>(
      "prod", x);
}

/// The largest element, likewise; a NaN if there is one.
/// @throws Error if there is no element to choose
template <class... R, AnyTensor X, class D = every_dim>
auto max(const X& x, D = {}) {
  return detail::extreme<Max, detail::checked_mask<X, D>(), detail::Request<R...>>("max", x);
}

/// The smallest element, likewise.
template <class... R, AnyTensor X, class D = every_dim>
auto min(const X& x, D = {}) {
  return detail::extreme<Min, detail::checked_mask<X, D>(), detail::Request<R...>>("min", x);
}

}  // namespace cleave
