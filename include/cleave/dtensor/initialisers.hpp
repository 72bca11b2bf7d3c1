// Initial values of weights: constant, Xavier, Kaiming, orthogonal, with the gains and the numbers
// of inputs and outputs that PyTorch has. All fill a tensor in place; the values are the same on
// any mesh.
//
// A weight [out, in, ..] has in * .. inputs and out * .. outputs, where .. are the extents of a
// convolution's window.
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <cleave/dtensor/random.hpp>
#include <cleave/kernels/host/orthonormal_rows.hpp>

namespace cleave {

/// What follows a layer.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// What a layer's weights are larger by, so that the variance stays through the nonlinearity.
/// @param slope  of leaky_relu, below zero
inline double gain_of(Nonlinearity after, double slope = 0.01) {
  switch (after) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid: return 1;
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::sqrt(2.0);
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu: return 0.75;
  }
  return 1;
}

/// Whose variance Kaiming's initial values keep: that of values forward, or of gradients backward.
enum class Fan { in, out };

namespace detail {

template <class X>
inline constexpr bool is_fillable = is_tensor<X> || is_dtensor<X>;

struct Fans {
  double in, out;
};
template <class X>
Fans fans_of(const X& x) {
  static_assert(X::dims >= 2,
                "cleave: this initialiser requires at least two dimensions: outputs and inputs");
  const Shape shape(x.shape());
  double window = 1;
  for (int d = 2; d < shape.dims; ++d) window *= double(shape[d]);
  return {double(shape[1]) * window, double(shape[0]) * window};
}

template <class X>
double kaiming_deviation(const X& x, double slope, Fan fan, Nonlinearity after) {
  const Fans fans = fans_of(x);
  return gain_of(after, slope) / std::sqrt(fan == Fan::in ? fans.in : fans.out);
}
template <class X>
double xavier_deviation(const X& x, double gain) {
  const Fans fans = fans_of(x);
  return gain * std::sqrt(2 / (fans.in + fans.out));
}

/// Without inputs or outputs the deviation is not finite, and there are no elements.
template <class X, class... State>
X uniform_of_deviation(const X& x, double deviation, State&... state) {
  const double bound = std::sqrt(3.0) * deviation;
  return std::isfinite(bound) ? uniform_(x, state..., -bound, bound) : uniform_(x, state...);
}
template <class X, class... State>
X normal_of_deviation(const X& x, double deviation, State&... state) {
  return normal_(x, state..., 0, std::isfinite(deviation) ? deviation : 1);
}

/// An orthogonal matrix [rows, columns]: its rows are orthonormal, or its columns if they are fewer.
inline std::vector<double> orthogonal_matrix(index_t rows, index_t columns, double gain,
                                             const RandomState& state) {
  const index_t few = rows < columns ? rows : columns, many = rows < columns ? columns : rows;
  const auto place = [&](index_t i, index_t j) {  // of vector i, element j, in the matrix
    return rows < columns ? i * columns + j : j * columns + i;
  };
  const kernels::Normal<double> normal{0, 1};
  std::vector<double> vectors(std::size_t(few * many)), matrix(std::size_t(few * many));
  for (index_t i = 0; i < few; ++i)
    for (index_t j = 0; j < many; ++j)
      vectors[std::size_t(i * many + j)] = normal(state.bits(place(i, j)));
  kernels::orthonormalize_rows(few, many, vectors.data());
  for (index_t i = 0; i < few; ++i)
    for (index_t j = 0; j < many; ++j)
      matrix[std::size_t(place(i, j))] = gain * vectors[std::size_t(i * many + j)];
  return matrix;
}

/// Sets the elements of a box of a global array to those of a whole one in the host's memory.
template <class T, int Rank, class Device>
void set_part(const std::vector<double>& whole, const Box& box, const Shape& shape,
              const Tensor<T, Rank, Device>& x) {
  const auto element = [&](index_t i) { return T(accumulator_t<T>(whole[std::size_t(i)])); };
  if constexpr (std::is_same_v<Device, Host>) {
    set_elements(element, box, shape, x);
  } else {
    const Tensor<T, Rank> part(x.shape());
    set_elements(element, box, shape, part);
    x.copy_(part.to(Device{}));
  }
}

template <class X>
std::vector<double> orthogonal_for(const X& x, double gain, const RandomState& state) {
  using T = typename X::value_type;
  static_assert(X::dims >= 2 && !std::is_integral_v<T> && !is_complex<T>,
                "cleave: orthogonal_ requires at least two dimensions of real numbers");
  const Shape shape(x.shape());
  index_t columns = 1;
  for (int d = 1; d < shape.dims; ++d) columns *= shape[d];
  return orthogonal_matrix(shape[0], columns, gain, state);
}

}  // namespace detail

/// Sets all elements to one value. @return x, as all initialisers do
template <class X>
  requires detail::is_fillable<X>
X constant_(const X& x, const typename X::value_type& value) {
  if constexpr (is_dtensor<X>) {
    static_assert(!X::layout.has_partial(),
                  "cleave: a Partial tensor cannot be filled; redistribute it first");
    x.local().fill_(value);
  } else {
    x.fill_(value);
  }
  return x;
}

/// Uniform numbers of variance gain^2 * 2 / (inputs + outputs).
///
/// X. Glorot, Y. Bengio: Understanding the difficulty of training deep feedforward neural networks.
/// AISTATS 2010.
/// @collective as `rand`
template <class X>
  requires is_dtensor<X>
X xavier_uniform_(const X& x, double gain = 1) {
  return detail::uniform_of_deviation(x, detail::xavier_deviation(x, gain));
}
template <class X>
  requires is_tensor<X>
X xavier_uniform_(const X& x, RandomState& state, double gain = 1) {
  return detail::uniform_of_deviation(x, detail::xavier_deviation(x, gain), state);
}

/// Normal numbers of the same variance.
template <class X>
  requires is_dtensor<X>
X xavier_normal_(const X& x, double gain = 1) {
  return detail::normal_of_deviation(x, detail::xavier_deviation(x, gain));
}
template <class X>
  requires is_tensor<X>
X xavier_normal_(const X& x, RandomState& state, double gain = 1) {
  return detail::normal_of_deviation(x, detail::xavier_deviation(x, gain), state);
}

/// Uniform numbers of variance gain^2 / inputs, or outputs.
///
/// K. He, X. Zhang, S. Ren, J. Sun: Delving deep into rectifiers. ICCV 2015.
/// @param slope  of leaky_relu, below zero: 0 for relu
/// @collective as `rand`
template <class X>
  requires is_dtensor<X>
X kaiming_uniform_(const X& x, double slope = 0, Fan fan = Fan::in,
                   Nonlinearity after = Nonlinearity::leaky_relu) {
  return detail::uniform_of_deviation(x, detail::kaiming_deviation(x, slope, fan, after));
}
template <class X>
  requires is_tensor<X>
X kaiming_uniform_(const X& x, RandomState& state, double slope = 0, Fan fan = Fan::in,
                   Nonlinearity after = Nonlinearity::leaky_relu) {
  return detail::uniform_of_deviation(x, detail::kaiming_deviation(x, slope, fan, after), state);
}

/// Normal numbers of the same variance.
template <class X>
  requires is_dtensor<X>
X kaiming_normal_(const X& x, double slope = 0, Fan fan = Fan::in,
                  Nonlinearity after = Nonlinearity::leaky_relu) {
  return detail::normal_of_deviation(x, detail::kaiming_deviation(x, slope, fan, after));
}
template <class X>
  requires is_tensor<X>
X kaiming_normal_(const X& x, RandomState& state, double slope = 0, Fan fan = Fan::in,
                  Nonlinearity after = Nonlinearity::leaky_relu) {
  return detail::normal_of_deviation(x, detail::kaiming_deviation(x, slope, fan, after), state);
}

/// An orthogonal matrix, each with equal probability, times the gain: of [out, in * ..] the rows are
/// orthonormal, or the columns where they are fewer.
///
/// A. M. Saxe, J. L. McClelland, S. Ganguli: Exact solutions to the nonlinear dynamics of learning
/// in deep linear neural networks. ICLR 2014.
/// @collective as `rand`
/// @cost  every rank computes the whole matrix, on the host and in double precision: with k the
///        smaller extent, 2 k * size multiplications and additions, and memory for 2 * size numbers.
///        Nothing is communicated
template <class X>
  requires is_dtensor<X>
X orthogonal_(const X& x, double gain = 1) {
  static_assert(!X::layout.has_partial(),
                "cleave: a Partial tensor cannot be filled; redistribute it first");
  const RandomState state = detail::take_draws(x.mesh().state(), X::layout, "orthogonal_");
  if (x.mesh().is_member())
    detail::set_part(detail::orthogonal_for(x, gain, state), x.local_box(), Shape(x.shape()),
                     x.local());
  return x;
}
template <class X>
  requires is_tensor<X>
X orthogonal_(const X& x, RandomState& state, double gain = 1) {
  const Shape shape(x.shape());
  detail::set_part(detail::orthogonal_for(x, gain, detail::take_draws(state)), Box::of(shape),
                   shape, x);
  return x;
}

}  // namespace cleave
