// Transforms and functions of wave numbers on the test's device, against sums of roots of unity.
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>

#include <doctest/doctest.h>

#include <cleave/dtensor/distribute.hpp>
#include <cleave/ops/shapes/transpose.hpp>
#include <cleave/ops/transforms/spectral.hpp>

#include "device.hpp"
#include "naive.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;
using namespace cleave::axes;

namespace fourier_on_device {
namespace {

template <class T>
using Volume = Tensor<T, 3>;

template <class T>
Volume<T> volume(const std::array<index_t, 3>& shape) {
  const Volume<T> x(shape);
  for (index_t i = 0; i < x.size(); ++i) {
    const double a = std::sin(double(5 * i * i + 2)), b = std::cos(double(3 * i));
    if constexpr (is_complex<T>) x.data()[i] = T(std::complex(a, b));
    else x.data()[i] = T(a);
  }
  return x;
}

/// The sums over j of x[j] · exp(sign · 2πi jk / n) along dimension d.
template <class T>
Volume<std::complex<double>> naive_lines(const Volume<T>& x, int d, int sign) {
  using Complex = std::complex<double>;
  const Volume<Complex> y(x.shape());
  const auto shape = x.shape();
  const index_t n = shape[std::size_t(d)];
  for (naive::Indices index : naive::all_indices(naive::to_indices(Shape(shape)))) {
    const index_t k = index[std::size_t(d)];
    Complex& sum = y(index[0], index[1], index[2]);
    sum = 0;
    for (index_t j = 0; j < n; ++j) {
      index[std::size_t(d)] = j;
      sum += Complex(x(index[0], index[1], index[2])) *
             std::polar(1., sign * 2 * 3.14159265358979323846 * double(j * k % n) / double(n));
    }
  }
  return y;
}

/// The largest difference of elements of a transform, times `factor`, and of the expected array, of
/// which the transform may have fewer along the last dimension.
template <class Y>
double largest_difference(const Y& found, double factor, const Volume<std::complex<double>>& y) {
  const auto on_host = found.to(Host{}).clone();
  const auto shape = on_host.shape();
  double worst = 0;
  for (index_t i = 0; i < shape[0]; ++i)
    for (index_t j = 0; j < shape[1]; ++j)
      for (index_t k = 0; k < shape[2]; ++k) {
        const double difference =
            std::abs(std::complex<double>(on_host(i, j, k)) * factor - y(i, j, k));
        if (!(difference <= worst)) worst = difference;  // NaN, too
        if (std::isnan(worst)) return worst;
      }
  return worst;
}

template <class T, int D>
void check_lines(const std::array<index_t, 3>& shape) {
  CAPTURE(D);
  const double limit = sizeof(T) == sizeof(double) ? 1e-13 : 2e-5;
  const auto x = volume<std::complex<T>>(shape);
  const double n = double(shape[std::size_t(D)]);
  const auto placed = x.to(TestDevice{});
  CHECK(largest_difference(fft(placed, dim<D>{}), 1, naive_lines(x, D, -1)) < limit);
  CHECK(largest_difference(ifft(placed, dim<D>{}), n, naive_lines(x, D, 1)) < limit);
  CHECK(largest_difference(fft(placed, dim<D>{}, Norm::forward), n, naive_lines(x, D, -1)) < limit);

  const auto numbers = volume<T>(shape);
  const auto half = rfft(numbers.to(TestDevice{}), dim<D>{});
  CHECK(half.shape()[std::size_t(D)] == shape[std::size_t(D)] / 2 + 1);
  CHECK(largest_difference(half, 1, naive_lines(numbers, D, -1)) < limit);
  // imaginary parts without a conjugate do not count
  if (D == 2 && shape[2] < 3)
    CHECK(largest_difference(irfft(add(half, std::complex<T>(0, 1)), dim<D>{}, shape[2]), 1,
                             cast<std::complex<double>>(numbers)) < limit);
  const auto back = irfft(half, dim<D>{}, shape[std::size_t(D)]);
  CHECK(largest_difference(back, 1, cast<std::complex<double>>(numbers)) < limit);
  CHECK(largest_difference(half, 1, naive_lines(numbers, D, -1)) < limit);  // x is as it was
}

/// The inverse of -Δ for functions of period 2π.
struct Inverse {
  CLEAVE_HOST_DEVICE double operator()(const WaveNumbers<3>& k) const {
    return k.norm2() == 0 ? 1 : 1 / k.norm2();
  }
};
struct Slope {
  CLEAVE_HOST_DEVICE std::complex<double> operator()(const WaveNumbers<3>& k) const {
    return {0, k[1]};
  }
};

}  // namespace

TEST_CASE("lines of any length and spacing are transformed on the device") {
  on_ranks({1}, [](World&) {
    for (const auto& shape : {std::array<index_t, 3>{4, 6, 5}, {3, 2, 8}, {7, 1, 2}, {1, 3, 1}}) {
      check_lines<double, 0>(shape);
      check_lines<double, 1>(shape);
      check_lines<double, 2>(shape);
      check_lines<float, 0>(shape);
      check_lines<float, 1>(shape);
      check_lines<float, 2>(shape);
    }
    const auto x = volume<std::complex<double>>({4, 3, 5});
    const auto turned = permute(x.to(TestDevice{}), dim<2, 0, 1>{});
    CHECK(largest_difference(fft(turned, dim<1>{}), 1,
                             permute(naive_lines(x, 0, -1), dim<2, 0, 1>{}).clone()) < 1e-13);
    CHECK(fft(Volume<std::complex<double>>({3, 0, 2}).to(TestDevice{})).size() == 0);
  });
}

TEST_CASE("slabs on devices are transformed with one exchange each way") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()}, TestDevice{});
    const std::array<index_t, 3> shape{5, 6, 4};
    const auto x = volume<double>(shape);
    const auto placed = distribute_tensor(x, mesh, Shard<0>{});
    const auto expected = naive_lines(naive_lines(naive_lines(x, 2, -1), 1, -1), 0, -1);
    const auto y = rfft(placed, dim<0, 1, 2>{});
    CHECK(largest_difference(y.full_tensor(), 1, expected) < 1e-13);
    CHECK(largest_difference(fft(placed).full_tensor(), 1, expected) < 1e-13);
    CHECK(largest_difference(irfft(y, dim<0, 1, 2>{}, 4).full_tensor(), 1,
                             cast<std::complex<double>>(x)) < 1e-14);

    const Volume<double> waves(shape), slopes(shape);
    for (const naive::Indices& i : naive::all_indices({5, 6, 4})) {
      const double step = 2 * 3.14159265358979323846;
      const double a = step * double(i[0]) / 5, b = step * double(i[1]) / 6,
                   c = step * double(i[2]) / 4;
      waves(i[0], i[1], i[2]) = std::sin(2 * a) * std::cos(b) + std::cos(b + c);
      slopes(i[0], i[1], i[2]) =
          -std::sin(2 * a) * std::sin(b) / 5 - std::sin(b + c) / 2;  // of the solution
    }
    const auto solved = spectral(distribute_tensor(waves, mesh, Shard<1>{}), Inverse{});
    CHECK(largest_difference(spectral(solved, Slope{}).full_tensor(), 1,
                             cast<std::complex<double>>(slopes)) < 1e-14);
  });
}

}  // namespace fourier_on_device
