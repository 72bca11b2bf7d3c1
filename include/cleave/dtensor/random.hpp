// Random arrays, newly made or filled in place: uniform, normal, truncated normal, integers,
// booleans. Every rank draws its own part without communication, and the elements are the same on
// any mesh, under any placements, on the host and on a GPU.
//
// The bits of an element depend only on the seed, the number of earlier draws and the element's
// global index (core/random_state.hpp). A DTensor is drawn with the random state of its ranks, a
// Tensor with a state that the caller passes: equal states give equal elements.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <cleave/core/error.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/manual_seed.hpp>
#include <cleave/kernels/distributions.hpp>
#include <cleave/kernels/host/map_indexed.hpp>
#include <cleave/tensor/overlap.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Sets the elements in a box of a global array to f(global index).
template <class F, class T, int Rank, class Device>
void set_elements(const F& f, const Box& box, const Shape& shape,
                  const Tensor<T, Rank, Device>& x) {
  const auto out = kernels::write(x);
  constexpr kernels::On<Device> on;
  static_assert(
      requires { map_indexed(on, f, box, shape, out); },
      "cleave: random arrays of this device are drawn by its kernels: include "
      "<cleave/cuda.hpp> in a file that nvcc compiles");
  note_change(Device{}, x.storage());
  if (!is_dry()) map_indexed(on, f, box, shape, out);
}

/// The same for what this rank owns of a distributed array.
template <class F, class T, int Rank, class Mesh, class P>
void set_owned(const F& f, const DTensor<T, Rank, Mesh, P>& x) {
  x.each_local_box([&](const Box& box, const Box& local) {
    set_elements(f, box, Shape(x.shape()), x.to_local()[local]);
  });
}

/// Sets the elements of a DTensor to f(index), where f = of(the state of a draw).
///
/// @collective with CLEAVE_CHECK=collective every rank of the mesh
template <class Of, class T, int Rank, class Mesh, class P>
auto fill_from(const char* operation, const Of& of, const DTensor<T, Rank, Mesh, P>& x) {
  constexpr Layout layout = DTensor<T, Rank, Mesh, P>::layout;
  static_assert(!layout.has_partial(),
                "cleave: a Partial tensor cannot be filled; redistribute it first");
  require_distinct_elements(operation, x.to_local().view(), [&] { return x.context(); });
  const RandomState state = take_draws(x.mesh().state(), layout, operation);
  set_owned(of(state), x);
  return x;
}

/// The same for a local tensor, with the caller's state.
template <class Of, class T, int Rank, class Device>
auto fill_from(const char* operation, const Of& of, const Tensor<T, Rank, Device>& x,
               RandomState& state) {
  require_distinct_elements(operation, x.view());
  const Shape shape(x.shape());
  set_elements(of(take_draws(state)), Box::of(shape), shape, x);
  return x;
}

/// Draws every element from a distribution.
template <class F, class X, class... State>
auto fill_drawn(const char* operation, const F& f, const X& x, State&... state) {
  const auto of = [&](const RandomState& at) { return kernels::Drawn<F>{f, at}; };
  return fill_from(operation, of, x, state...);
}

template <Element T, std::size_t Rank>
auto make_local(const index_t (&extents)[Rank]) {
  return Tensor<T, int(Rank)>(std::to_array(extents));
}

/// The distributions. @throws Error if the parameters are outside their domain
template <class T>
constexpr kernels::Uniform<T> uniform_of(double low, double high) {
  static_assert(!std::is_integral_v<T>,
                "cleave: a uniform distribution requires a floating-point type");
  if (!(low < high))
    throw Error("uniform",
                "no number lies in [" + std::to_string(low) + ", " + std::to_string(high) + ")");
  if constexpr (is_complex<T>) {
    using R = typename T::value_type;
    return {T(R(low), R(low)), T(R(high), R(high))};
  } else {
    using A = accumulator_t<T>;
    return {T(A(low)), T(A(high))};
  }
}

template <class T>
constexpr kernels::Normal<T> normal_of(double mean, double deviation) {
  static_assert(!std::is_integral_v<T>,
                "cleave: a normal distribution requires a floating-point type");
  if (!(deviation >= 0))
    throw Error("normal", "the standard deviation is " + std::to_string(deviation) +
                              "; it must not be negative");
  using A = accumulator_t<T>;
  if constexpr (is_complex<T>) {
    using R = typename T::value_type;
    return {A(R(mean)), A(R(deviation))};
  } else {
    return {A(mean), A(deviation)};
  }
}

template <class T>
kernels::TruncatedNormal<T> truncated_normal_of(double mean, double deviation, double low,
                                                double high) {
  static_assert(!std::is_integral_v<T> && !is_complex<T>,
                "cleave: trunc_normal_ requires a real floating-point type");
  const auto fail = [&](const std::string& why) { throw Error("trunc_normal_", why); };
  if (!(deviation > 0)) fail("the standard deviation must be positive");
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high))
    fail("the bounds must be finite, with low < high");
  const kernels::TruncatedNormal<T> f(mean, deviation, low, high);
  if (!f.is_possible())
    fail("a normal number of mean " + std::to_string(mean) + " and standard deviation " +
         std::to_string(deviation) + " almost never falls into [" + std::to_string(low) + ", " +
         std::to_string(high) + "]");
  return f;
}

template <class T>
constexpr kernels::WholeNumbers<T> whole_numbers(std::int64_t low, std::int64_t high) {
  static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>,
                "cleave: randint requires an integer element type");
  if (high <= low)
    throw Error("randint",
                "no number lies in [" + std::to_string(low) + ", " + std::to_string(high) + ")");
  return {low, std::uint64_t(high) - std::uint64_t(low)};
}

constexpr void require_probability(const char* operation, double probability) {
  if (!(probability >= 0 && probability <= 1))
    throw Error(operation,
                "the probability is " + std::to_string(probability) + "; it must be in [0, 1]");
}

template <class T>
constexpr kernels::Bernoulli<T> bernoulli_of(double probability) {
  static_assert(!is_complex<T>, "cleave: bernoulli requires a real element type");
  require_probability("bernoulli", probability);
  return {probability};
}

}  // namespace detail

/// Uniform numbers in [0, 1): `rand<float>({64, 256}, mesh, Shard<0>{}, Replicate{})`.
///
/// @collective every rank of the world calls it, so that their states stay equal; communicates only
///             with CLEAVE_CHECK=collective, to compare the states
/// @throws Error if an extent is negative; with CLEAVE_CHECK=collective, if the states of the ranks
///             differ (names the ranks)
template <Element T, std::size_t Rank, class Mesh, class... P>
auto rand(const index_t (&extents)[Rank], const Mesh& mesh, P... placements) {
  return detail::fill_drawn("rand", detail::uniform_of<T>(0, 1),
                            detail::make_empty<T>(extents, mesh, placements...));
}

/// Normal numbers of mean 0 and variance 1. @see rand
template <Element T, std::size_t Rank, class Mesh, class... P>
auto randn(const index_t (&extents)[Rank], const Mesh& mesh, P... placements) {
  return detail::fill_drawn("randn", detail::normal_of<T>(0, 1),
                            detail::make_empty<T>(extents, mesh, placements...));
}

/// Uniform integers in [low, high). @throws Error if there are none @see rand
template <Element T, std::size_t Rank, class Mesh, class... P>
auto randint(std::int64_t low, std::int64_t high, const index_t (&extents)[Rank], const Mesh& mesh,
             P... placements) {
  return detail::fill_drawn("randint", detail::whole_numbers<T>(low, high),
                            detail::make_empty<T>(extents, mesh, placements...));
}

/// Booleans, true with the given probability. @throws Error if it is not in [0, 1] @see rand
template <std::size_t Rank, class Mesh, class... P>
auto bernoulli(double probability, const index_t (&extents)[Rank], const Mesh& mesh,
               P... placements) {
  return detail::fill_drawn("bernoulli", detail::bernoulli_of<bool>(probability),
                            detail::make_empty<bool>(extents, mesh, placements...));
}

/// The same in a local tensor: a state equal to that of a mesh's ranks gives the same numbers.
template <Element T, std::size_t Rank>
auto rand(const index_t (&extents)[Rank], RandomState& state) {
  return detail::fill_drawn("rand", detail::uniform_of<T>(0, 1), detail::make_local<T>(extents),
                            state);
}
template <Element T, std::size_t Rank>
auto randn(const index_t (&extents)[Rank], RandomState& state) {
  return detail::fill_drawn("randn", detail::normal_of<T>(0, 1), detail::make_local<T>(extents),
                            state);
}
template <Element T, std::size_t Rank>
auto randint(std::int64_t low, std::int64_t high, const index_t (&extents)[Rank],
             RandomState& state) {
  return detail::fill_drawn("randint", detail::whole_numbers<T>(low, high),
                            detail::make_local<T>(extents), state);
}
template <std::size_t Rank>
auto bernoulli(double probability, const index_t (&extents)[Rank], RandomState& state) {
  return detail::fill_drawn("bernoulli", detail::bernoulli_of<bool>(probability),
                            detail::make_local<bool>(extents), state);
}

/// Sets all elements to uniform numbers in [low, high). @return x
///
/// @collective as `rand`
/// @throws Error if no number lies in [low, high)
template <class X>
  requires is_dtensor<X>
X uniform_(const X& x, double low = 0, double high = 1) {
  return detail::fill_drawn("uniform_", detail::uniform_of<typename X::value_type>(low, high), x);
}
template <class X>
  requires is_tensor<X>
X uniform_(const X& x, RandomState& state, double low = 0, double high = 1) {
  return detail::fill_drawn("uniform_", detail::uniform_of<typename X::value_type>(low, high), x,
                            state);
}

/// Sets all elements to normal numbers. @return x
/// @collective as `rand`
/// @throws Error if the deviation is negative
template <class X>
  requires is_dtensor<X>
X normal_(const X& x, double mean = 0, double deviation = 1) {
  return detail::fill_drawn("normal_", detail::normal_of<typename X::value_type>(mean, deviation),
                            x);
}
template <class X>
  requires is_tensor<X>
X normal_(const X& x, RandomState& state, double mean = 0, double deviation = 1) {
  return detail::fill_drawn("normal_", detail::normal_of<typename X::value_type>(mean, deviation),
                            x, state);
}

/// Sets all elements to numbers of a normal distribution truncated to [low, high]. @return x
/// @collective as `rand`
/// @throws Error if the deviation is not positive, or the interval has practically no probability
template <class X>
  requires is_dtensor<X>
X trunc_normal_(const X& x, double mean = 0, double deviation = 1, double low = -2,
                double high = 2) {
  using T = typename X::value_type;
  return detail::fill_drawn("trunc_normal_",
                            detail::truncated_normal_of<T>(mean, deviation, low, high), x);
}
template <class X>
  requires is_tensor<X>
X trunc_normal_(const X& x, RandomState& state, double mean = 0, double deviation = 1,
                double low = -2, double high = 2) {
  using T = typename X::value_type;
  return detail::fill_drawn("trunc_normal_",
                            detail::truncated_normal_of<T>(mean, deviation, low, high), x, state);
}

/// Sets each element to 1 with the given probability, else to 0. @return x
/// @collective as `rand`
/// @throws Error if the probability is not in [0, 1]
template <class X>
  requires is_dtensor<X>
X bernoulli_(const X& x, double probability = 0.5) {
  return detail::fill_drawn("bernoulli_", detail::bernoulli_of<typename X::value_type>(probability),
                            x);
}
template <class X>
  requires is_tensor<X>
X bernoulli_(const X& x, RandomState& state, double probability = 0.5) {
  return detail::fill_drawn("bernoulli_", detail::bernoulli_of<typename X::value_type>(probability),
                            x, state);
}

}  // namespace cleave::inline v0
