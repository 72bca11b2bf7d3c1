#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/kernels/host/fourier_lines.hpp>
#include <cleave/kernels/host/plain_line_transform.hpp>

using namespace cleave;
using kernels::LineTransformKind;

namespace {

using Wide = std::complex<long double>;

/// A line with elements of all sizes in [-1, 1].
template <class T>
std::vector<std::complex<T>> line_of(index_t n) {
  std::vector<std::complex<T>> line;
  for (index_t i = 0; i < n; ++i)
    line.push_back({T(std::sin(double(3 * i * i + 1))), T(std::cos(double(7 * i + i * i)))});
  return line;
}

/// The sums over j of x[j] · exp(sign · 2πi jk / n).
template <class T>
std::vector<Wide> naive_line(const std::vector<std::complex<T>>& x, int sign) {
  const index_t n = index_t(x.size());
  std::vector<Wide> y(x.size());
  for (index_t k = 0; k < n; ++k)
    for (index_t j = 0; j < n; ++j) {
      const long double angle =
          sign * 2 * 3.14159265358979323846264338327950288L * (long double)(j * k % n) / n;
      const std::complex<T>& value = x[std::size_t(j)];
      y[std::size_t(k)] +=
          Wide(value.real(), value.imag()) * Wide(std::cos(angle), std::sin(angle));
    }
  return y;
}

/// The distance of two lines, relative to the size of the second one.
template <class T>
double distance(const std::vector<std::complex<T>>& a, const std::vector<Wide>& b) {
  long double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::norm(Wide(a[i].real(), a[i].imag()) - b[i]);
    size += std::norm(b[i]);
  }
  return size == 0 ? double(difference) : double(std::sqrt(difference / size));
}

/// The largest error of the kinds of a transform for lines of n elements.
template <template <class> class Transform, class T>
double worst_error(index_t n) {
  const auto call = [n](LineTransformKind kind, std::vector<std::complex<T>>& line) {
    const Transform<T> transform(kind, n);
    std::vector<std::complex<T>> scratch(static_cast<std::size_t>(transform.scratch()));
    transform(line.data(), scratch.data());
  };
  const auto x = line_of<T>(n);
  double worst = 0;
  const auto check = [&](const std::vector<std::complex<T>>& found,
                         const std::vector<Wide>& right) {
    worst = std::max(worst, distance(found, right));
  };
  auto y = x;
  call(LineTransformKind::forward, y);
  check(y, naive_line(x, -1));
  y = x;
  call(LineTransformKind::inverse, y);
  check(y, naive_line(x, 1));

  const auto count = static_cast<std::size_t>(n);
  std::vector<std::complex<T>> numbers, packed(count);  // the real parts of x
  for (index_t i = 0; i < n; ++i) {
    numbers.push_back(x[std::size_t(i)].real());
    reinterpret_cast<T*>(packed.data())[i] = x[std::size_t(i)].real();
  }
  const std::vector<Wide> spectrum = naive_line(numbers, -1);
  call(LineTransformKind::real, packed);
  packed.resize(std::size_t(n / 2 + 1));
  check(packed, {spectrum.begin(), spectrum.begin() + n / 2 + 1});

  std::vector<std::complex<T>> back(count);
  for (index_t k = 0; k < n / 2 + 1; ++k)
    back[std::size_t(k)] = {T(spectrum[std::size_t(k)].real()), T(spectrum[std::size_t(k)].imag())};
  call(LineTransformKind::hermitian, back);
  std::vector<std::complex<T>> result;
  std::vector<Wide> scaled;
  for (index_t i = 0; i < n; ++i) {
    result.push_back(reinterpret_cast<T*>(back.data())[i]);
    scaled.push_back(Wide(numbers[std::size_t(i)].real()) * (long double)n);
  }
  check(result, scaled);
  return worst;
}

template <template <class> class Transform>
void check_lengths() {
  std::vector<index_t> lengths;
  for (index_t n = 1; n <= 40; ++n) lengths.push_back(n);
  for (const index_t n : {48, 49, 60, 64, 97, 101, 121, 128, 210, 251, 256, 360})
    lengths.push_back(n);
  for (const index_t n : lengths) {
    CAPTURE(n);
    CHECK(worst_error<Transform, double>(n) <= 2.5e-16 * (1 + std::log2(double(n))));
    CHECK(worst_error<Transform, float>(n) <= 1.3e-7 * (1 + std::log2(double(n))));
  }
}

}  // namespace

TEST_CASE("the transforms of lines are sums of roots of unity, for all lengths") {
  check_lengths<kernels::PlainLineTransform>();
  check_lengths<kernels::LineTransform>();
}
