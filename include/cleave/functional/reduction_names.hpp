// How a caller names a reduction: by a type (`Sum{}`), a value (`ReduceOp::sum`) or a word ("sum");
// and sums of elements that are multiplied by a number first.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/require_reduction.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/map_elements.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::functional {

/// A sum of elements that each rank multiplies by a number first. @see premul_sum
template <Element F>
struct PremulSum {
  F factor;
};

/// The sum over ranks of factor * x: every rank multiplies its elements, rounded to their type,
/// before they are added. Ranks may have different factors.
///
///     functional::all_reduce(x, functional::premul_sum(0.5), world)
template <Element F>
PremulSum<F> premul_sum(const F& factor) {
  return {factor};
}

template <class Op>
inline constexpr bool is_premul_sum = false;
template <class F>
inline constexpr bool is_premul_sum<PremulSum<F>> = true;

/// A type whose values name a reduction.
template <class Op>
concept Reduction = ReductionType<Op> || std::same_as<Op, ReduceOp> || is_premul_sum<Op> ||
                    std::convertible_to<const Op&, std::string_view>;

/// The reduction of that name, in lower or upper case.
/// @throws Error for an unknown name
inline ReduceOp reduction_named(std::string_view name, const char* operation) {
  const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  const auto is = [&](std::string_view candidate) {
    bool same = name.size() == candidate.size();
    for (std::size_t i = 0; same && i < name.size(); ++i) same = small(name[i]) == candidate[i];
    return same;
  };
  std::string known;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min,
                            ReduceOp::product, ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
    const std::string_view candidate = name_of(op);
    if (is(candidate)) return op;
    known += (known.empty() ? "" : ", ") + std::string(candidate);
  }
  if (is("premul_sum"))
    throw Error(operation, "premul_sum requires a factor: pass functional::premul_sum(factor)");
  throw Error(operation, "unknown reduction '" + std::string(name) + "'; use one of " + known);
}

namespace detail {

/// @throws Error for an unknown name
template <class Op>
ReduceOp value_of(const Op& op, const char* operation) {
  static_assert(Reduction<Op>,
                "cleave: this is not a reduction; pass a type (Sum{}), a value (ReduceOp::sum), a "
                "name in quotes or premul_sum(factor)");
  if constexpr (ReductionType<Op>) return Op::value;
  else if constexpr (std::same_as<Op, ReduceOp>) return op;
  else if constexpr (is_premul_sum<Op> || !Reduction<Op>) return ReduceOp::sum;
  else return reduction_named(op, operation);
}

/// Requires that elements T support the reduction: at compile time if `Op` is a type.
/// @throws Error if they do not
template <Element T, class Op>
void require_reduction(ReduceOp value, const char* operation) {
  if constexpr (ReductionType<Op>) {
    constexpr bool ordered = Op::value == ReduceOp::max || Op::value == ReduceOp::min;
    static_assert(!(ordered && is_complex<T>), "cleave: complex numbers have no order");
    static_assert(!(Op::value == ReduceOp::avg && std::is_integral_v<T>),
                  "cleave: averages of integers and bools are not defined");
    static_assert(!cleave::detail::is_bitwise(Op::value) || std::is_integral_v<T>,
                  "cleave: reductions of bits require integers or bools");
  }
  cleave::detail::require_reduction(operation, dtype_of<T>(), value);
}

/// a * factor, computed in the type in which sums of T are accumulated.
template <class T>
struct Multiplied {
  accumulator_t<T> factor;
  CLEAVE_HOST_DEVICE T operator()(const T& a) const {
    return T(kernels::times(accumulator_t<T>(a), factor));
  }
};

/// A row-major tensor of the elements times a number.
template <class T, int Rank, class Device, Element F>
Tensor<T, Rank, Device> times(const Tensor<T, Rank, Device>& x, const F& factor) {
  constexpr bool fits =
      is_complex<T> || (!is_complex<F> && (!std::is_integral_v<T> || std::is_integral_v<F>));
  static_assert(fits,
                "cleave: the factor of premul_sum is of a wider kind than the elements "
                "(integer < real < complex)");
  const Tensor<T, Rank, Device> result(x.shape());
  if constexpr (fits) {
    using A = accumulator_t<T>;
    Multiplied<T> multiplied{};
    if constexpr (is_complex<T> && !is_complex<F>)
      multiplied.factor = A(static_cast<typename A::value_type>(factor));
    else multiplied.factor = static_cast<A>(factor);
    map_elements(kernels::On<Device>{}, multiplied,
                 kernels::Strided<T>{result.data(), Shape(result.shape()), Shape(result.strides())},
                 kernels::Strided<const T>{x.data(), Shape(x.shape()), Shape(x.strides())});
  }
  return result;
}

}  // namespace detail

}  // namespace cleave::inline v0::functional
