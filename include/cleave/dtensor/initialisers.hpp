// Initial values of weights: constant, Xavier, Kaiming, orthogonal, with the gains, fan-in and
// fan-out of PyTorch's `torch.nn.init`. All fill a tensor in place; the values are the same on any
// mesh.
//
// A weight [out, in, ..] has fan-in in * .. and fan-out out * .., where .. are the extents of a
// convolution's window.
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <cleave/dtensor/random.hpp>
#include <cleave/kernels/host/orthonormal_rows.hpp>

namespace cleave::inline v0 {

/// The nonlinearity that follows a layer.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// The factor on the deviation of a layer's weights that preserves the variance through the
/// nonlinearity: PyTorch's `calculate_gain`.
/// @param slope  of leaky_relu for negative inputs
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

/// The variance that Kaiming initialisation preserves: of the forward values (`in`), or of the
/// gradients (`out`).
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

/// If fan-in or fan-out is 0, the deviation is not finite, and there are no elements to set.
template <class X, class... State>
X uniform_of_deviation(const X& x, double deviation, State&... state) {
  const double bound = std::sqrt(3.0) * deviation;
  return std::isfinite(bound) ? uniform_(x, state..., -bound, bound) : uniform_(x, state...);
}
template <class X, class... State>
X normal_of_deviation(const X& x, double deviation, State&... state) {
  return normal_(x, state..., 0, std::isfinite(deviation) ? deviation : 1);
}

/// A matrix [rows, columns] with orthonormal rows, or columns if there are fewer, times the gain.
inline std::vector<double> orthogonal_matrix(index_t rows, index_t columns, double gain,
                                             const RandomState& state) {
  const index_t few = rows < columns ? rows : columns, many = rows < columns ? columns : rows;
  const auto place = [&](index_t i, index_t j) {  // where the matrix has element j of vector i
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

/// Copies the elements of a box from a whole global array in host memory.
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
    x.to_local().fill_(value);
  } else {
    x.fill_(value);
  }
  return x;
}

/// Uniform numbers of variance gain^2 * 2 / (fan-in + fan-out).
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

/// Normal numbers of mean 0, with the variance of `xavier_uniform_`.
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

/// Uniform numbers of variance gain^2 / fan-in, or gain^2 / fan-out.
///
/// K. He, X. Zhang, S. Ren, J. Sun: Delving deep into rectifiers. ICCV 2015.
/// @param slope  of leaky_relu for negative inputs; 0 for relu
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

/// Normal numbers of mean 0, with the variance of `kaiming_uniform_`.
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

/// A uniformly distributed orthogonal matrix times the gain: the rows of [out, in * ..] are
/// orthonormal, or the columns if there are fewer.
///
/// A. M. Saxe, J. L. McClelland, S. Ganguli: Exact solutions to the nonlinear dynamics of learning
/// in deep linear neural networks. ICLR 2014.
/// @collective as `rand`
/// @cost  every rank computes the whole matrix, on the host and in double precision: with k the
///        smaller extent, 2 k * size multiplications and additions, memory for 2 * size numbers,
///        no communication
template <class X>
  requires is_dtensor<X>
X orthogonal_(const X& x, double gain = 1) {
  static_assert(!X::layout.has_partial(),
                "cleave: a Partial tensor cannot be filled; redistribute it first");
  detail::require_distinct_elements("orthogonal_", x.to_local().view(),
                                    [&] { return x.context(); });
  const RandomState state = detail::take_draws(x.mesh().state(), X::layout, "orthogonal_");
  if (x.mesh().is_member()) {
    const std::vector<double> whole = detail::orthogonal_for(x, gain, state);
    x.each_local_box([&](const Box& box, const Box& local) {
      detail::set_part(whole, box, Shape(x.shape()), x.to_local()[local]);
    });
  }
  return x;
}
template <class X>
  requires is_tensor<X>
X orthogonal_(const X& x, RandomState& state, double gain = 1) {
  detail::require_distinct_elements("orthogonal_", x.view());
  const Shape shape(x.shape());
  detail::set_part(detail::orthogonal_for(x, gain, detail::take_draws(state)), Box::of(shape),
                   shape, x);
  return x;
}

}  // namespace cleave::inline v0
