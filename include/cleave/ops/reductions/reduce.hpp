// Reductions over dimensions: sum, mean, prod, max, min.
//
// A rank reduces its local elements. If a reduced dimension is sharded, the result is Partial: the
// reduction over ranks is deferred until it is needed (and may then be a reduce-scatter).
//
//     // y[S0]   = sum(x[S0,R], dim<1>)
//     // y[P]    = sum(x[S1],   dim<1>)
//     // y[Pmax] = max(x[S0])
#pragma once

#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/kernels/host/reduce_dims.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/ops/elementwise/where.hpp>
#include <cleave/ops/engine/call_op.hpp>
#include <cleave/ops/engine/dim.hpp>
#include <cleave/ops/engine/usage.hpp>
#include <cleave/ops/shapes/transpose.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The number of elements that are reduced to one.
template <unsigned Mask, class X>
constexpr index_t reduced_count(const X& x) {
  return product_over(shape_of(x), Mask);
}

template <class By>
constexpr const char* reduction_name() {
  if constexpr (std::is_same_v<By, Sum>) return "sum";
  else if constexpr (std::is_same_v<By, Product>) return "prod";
  else if constexpr (std::is_same_v<By, Max>) return "max";
  else return "min";
}

/// The product of all elements but x, where `rest` is the product of the nonzero elements and
/// `zeros` the number of zeros; 0 where the arguments are inconsistent. Its gradient treats `zeros`
/// as a constant. @see Reduce::product_of_zeros
struct ProductOfOthers : Elementwise {
  using verified = Types<double, std::complex<double>>;
  static constexpr const char* constant = "the number of zeros is a count";
  static constexpr const char* name = "product_of_others";
  template <class T>
  CLEAVE_HOST_DEVICE T operator()(const T& x, const T& rest, const T& zeros) const {
    if (zeros == T(0)) return x == T(0) ? x : kernels::quotient(rest, x);
    return zeros == T(1) && x == T(0) ? rest : T(0);
  }
  static constexpr auto gradient(wrt<0>, const auto& g, const auto& y, const auto& x, const auto&,
                                 const auto& zeros) {
    const auto none = call_op(IsZero{}, resolve(zeros));
    return neg(mul(mul(g, conj(call_op(ProductOfOthers{}, x, y, zeros))), none));
  }
  static constexpr auto gradient(wrt<1>, const auto& g, const auto&, const auto& x, const auto&,
                                 const auto& zeros) {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    return mul(g, conj(call_op(ProductOfOthers{}, x, T(1), zeros)));
  }
};

}  // namespace detail

namespace ops {

/// The reduction over the dimensions in `Mask` by Sum, Product, Max or Min; sums of bools count.
/// Sums of sums, maxima of maxima, .. may be taken in any order, and so may sums and averages.
template <class By, unsigned Mask>
struct Reduce {
  static constexpr const char* name = detail::reduction_name<By>();
  static constexpr ReduceOp reduction = By::value;
  template <class T>
  using result_of =
      std::conditional_t<std::is_same_v<T, bool> && std::is_same_v<By, Sum>, index_t, T>;

  template <class T>
  static constexpr const char* partials_for() {
    if constexpr (!std::is_same_v<T, result_of<T>>) return "";
    else if constexpr (std::is_same_v<By, Sum>) return "sum->sum; avg->avg";
    else if constexpr (std::is_same_v<By, Max>) return "max->max";
    else if constexpr (std::is_same_v<By, Min>) return "min->min";
    else return "product->product";
  }
  static constexpr unsigned reduces = Mask;
  static constexpr auto factors = detail::reduction_factors<Mask>;
  static void kernel(const auto& on, const Task&, const auto& y, const auto& x) {
    reduce_dims<By>(on, x, Mask, y);
  }

  template <class G, class Y, class X>
    requires(!std::is_integral_v<typename X::value_type>)
  static constexpr auto gradient(wrt<0>, const G& g, const Y& y, const X& x) {
    if constexpr (std::is_same_v<By, Sum>) {
      return broadcast_dims<Mask>(g, x);
    } else if constexpr (std::is_same_v<By, Product>) {
      // the product of the other elements, also where some are zero
      const auto zeros = resolve(call_op(Reduce<Sum, Mask>{}, call_op(detail::IsZero{}, x)));
      const auto rest = resolve(call_op(Reduce<Product, Mask>{}, call_op(detail::OrOne{}, x)));
      const auto all_zeros = broadcast_dims<Mask>(zeros, x);
      const auto all_rest = broadcast_dims<Mask>(rest, x);
      const auto others = call_op(detail::ProductOfOthers{}, x, all_rest, all_zeros);
      const auto all_g = broadcast_dims<Mask>(g, x);
      if constexpr (detail::call_level<X> < 3) return mul(all_g, conj(others));
      else return mul(all_g, conj(add(others, product_of_zeros(x, all_rest, all_zeros))));
    } else {
      // equal extremes share the gradient
      const auto extreme = equals(x, broadcast_dims<Mask>(resolve(y), x));
      const auto shares = resolve(call_op(Reduce<Sum, Mask>{}, extreme));
      return mul(broadcast_dims<Mask>(div(g, shares), x), extreme);
    }
  }

 private:
  /// The term that ProductOfOthers lacks when gradients are differentiated again: its value is 0,
  /// its derivative that of the product with respect to an element that is 0, if this is the only
  /// zero or the only zero besides x.
  static constexpr auto product_of_zeros(const auto& x, const auto& rest, const auto& zeros) {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    const auto zero = where(cast<bool>(real(call_op(detail::IsZero{}, x))), x, T(0));
    const auto all = broadcast_dims<Mask>(resolve(call_op(Reduce<Sum, Mask>{}, zero)), x);
    return mul(call_op(detail::ProductOfOthers{}, x, rest, sub(zeros, 1)), sub(all, zero));
  }
};

/// A sum over `count` elements, divided by `count` before it is rounded.
template <unsigned Mask>
struct Mean {
  index_t count = 1;

  static constexpr const char* name = "mean";
  static constexpr const char* partials = "sum->sum; avg->avg";
  static constexpr unsigned reduces = Mask;
  static constexpr auto factors = detail::reduction_factors<Mask>;
  template <class T>
  void kernel(const auto& on, const Task&, const kernels::Strided<T>& y, const auto& x) const {
    reduce_dims<Sum>(on, x, Mask, y, kernels::DividedBy<T>(count));
  }
  constexpr auto gradient(wrt<0>, const auto& g, const auto&, const auto& x) const {
    using T = typename std::remove_cvref_t<decltype(x)>::value_type;
    return broadcast_dims<Mask>(div(g, detail::converted<kernels::real_t<T>>(double(count))), x);
  }
};

}  // namespace ops

namespace detail {

/// x summed over the dimensions of a mask, if there are any.
template <unsigned Mask, class X>
constexpr auto summed_over(const X& x) {
  if constexpr (Mask == 0) return waited(x);
  else return call_op(ops::Reduce<Sum, Mask>{}, x);
}

}  // namespace detail

/// Requests exact results, rounded once: `sum<exact>(x)`. @see exact_reductions.hpp
struct exact {};

namespace detail {

template <class... R>
inline constexpr bool asks_exact = (std::is_same_v<R, exact> || ...);

}  // namespace detail

/// The sum over all elements, or over the dimensions of a `dim`. Integers wrap; bools are counted.
///
/// @return x without the summed dimensions; Partial<Sum> on the axes that shard one of them
/// @collective every rank of the mesh, if x has to be redistributed
template <class... R, AnyTensor X, class D = every_dim>
  requires(!detail::asks_exact<R...>)
constexpr auto sum(const X& x, D = {}) {
  return call_op<R...>(ops::Reduce<Sum, detail::checked_mask<X, D>()>{}, x);
}
CLEAVE_USAGE(sum, "sum(x), sum(x, dim<0>{})")

/// The mean over all elements, or over the dimensions of a `dim`: Partial<Sum> of the ranks'
/// contributions, also for uneven shards. NaN for no elements.
template <class... R, AnyTensor X, class D = every_dim>
  requires(!detail::asks_exact<R...>)
constexpr auto mean(const X& x, D = {}) {
  static_assert(!std::is_integral_v<typename X::value_type>,
                "cleave: mean requires a floating-point element type; cast first");
  constexpr unsigned mask = detail::checked_mask<X, D>();
  return call_op<R...>(ops::Mean<mask>{detail::reduced_count<mask>(x)}, x);
}
CLEAVE_USAGE(mean, "mean(x), mean(x, dim<0>{})")

/// The product over all elements, or over the dimensions of a `dim`; Partial<Product> on the axes
/// that shard one of them.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto prod(const X& x, D = {}) {
  return call_op<R...>(ops::Reduce<Product, detail::checked_mask<X, D>()>{}, x);
}
CLEAVE_USAGE(prod, "prod(x), prod(x, dim<0>{})")

namespace detail {

/// @throws Error if there is a result without elements to choose from
template <unsigned Mask, class X>
constexpr void require_candidates(const char* name, const X& x) {
  if (reduced_count<Mask>(x) == 0 && reduced_count<~Mask>(x) > 0 && knows_extents(x))
    throw Error(name, "the reduced dimensions have no elements", context_of(x));
}

template <class By, class... R, class X, class D>
constexpr auto extreme(const X& x, D) {
  static_assert(!is_complex<typename X::value_type>, "cleave: complex numbers have no order");
  constexpr unsigned mask = checked_mask<X, D>();
  require_candidates<mask>(reduction_name<By>(), x);
  return call_op<R...>(ops::Reduce<By, mask>{}, x);
}

}  // namespace detail

/// The maximum over all elements, or over the dimensions of a `dim`; NaN if an element is NaN.
/// Partial<Max> on the axes that shard one of them.
/// @throws Error if the reduced dimensions have no elements
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto max(const X& x, D over = {}) {
  return detail::extreme<Max, R...>(x, over);
}
CLEAVE_USAGE(max, "max(x), max(x, dim<0>{})")

/// The minimum over all elements, or over the dimensions of a `dim`. Otherwise as max, with
/// Partial<Min>.
template <class... R, AnyTensor X, class D = every_dim>
constexpr auto min(const X& x, D over = {}) {
  return detail::extreme<Min, R...>(x, over);
}
CLEAVE_USAGE(min, "min(x), min(x, dim<0>{})")

CLEAVE_HELPER(reductions, ProductOfOthers, 3)

}  // namespace cleave::inline v0
