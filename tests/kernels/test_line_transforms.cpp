#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
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
  const auto call = [n](LineTransformKind kind, auto& line, auto& result) {
    const Transform<T> transform(kind, n);
    std::vector<std::complex<T>> scratch(static_cast<std::size_t>(transform.scratch()));
    transform(line.data(), result.data(), scratch.data());
  };
  const auto x = line_of<T>(n);
  double worst = 0;
  const auto check = [&](const std::vector<std::complex<T>>& found,
                         const std::vector<Wide>& right) {
    worst = std::max(worst, distance(found, right));
  };
  auto from = x, y = x;
  call(LineTransformKind::forward, from, y);
  check(y, naive_line(x, -1));
  call(LineTransformKind::inverse, from, y);
  check(y, naive_line(x, 1));

  const auto count = static_cast<std::size_t>(n);
  std::vector<std::complex<T>> numbers, half(std::size_t(n / 2 + 1));
  std::vector<T> real_parts, back(count);
  for (const std::complex<T>& value : x)
    numbers.push_back(value.real()), real_parts.push_back(value.real());
  const std::vector<Wide> spectrum = naive_line(numbers, -1);
  call(LineTransformKind::real, real_parts, half);
  check(half, {spectrum.begin(), spectrum.begin() + n / 2 + 1});

  for (std::size_t k = 0; k < half.size(); ++k)
    half[k] = {T(spectrum[k].real()), T(spectrum[k].imag())};
  call(LineTransformKind::hermitian, half, back);
  std::vector<Wide> scaled;
  for (const std::complex<T>& value : numbers)
    scaled.push_back(Wide(value.real()) * (long double)n);
  check({back.begin(), back.end()}, scaled);
  return worst;
}

/// The sums of a cosine or sine transform of type 1 to 4, as SciPy's documentation has them.
template <class T>
std::vector<Wide> naive_waves(const std::vector<T>& x, int type, bool is_sine) {
  const auto n = index_t(x.size());
  std::vector<Wide> y(x.size());
  for (index_t k = 0; k < n; ++k)
    for (index_t j = 0; j < n; ++j) {
      index_t product = 0, period = 0;  // the angle: π product / period
      long double weight = 2;
      if (type == 1 && !is_sine) product = j * k, period = n - 1;
      if (type == 1 && is_sine) product = (j + 1) * (k + 1), period = n + 1;
      if (type == 2) product = (2 * j + 1) * (is_sine ? k + 1 : k), period = 2 * n;
      if (type == 3) product = (2 * k + 1) * (is_sine ? j + 1 : j), period = 2 * n;
      if (type == 4) product = (2 * j + 1) * (2 * k + 1), period = 4 * n;
      if (type == 1 && !is_sine && (j == 0 || j == n - 1)) weight = 1;
      if (type == 3 && j == (is_sine ? n - 1 : 0)) weight = 1;
      const long double angle =
          3.14159265358979323846264338327950288L * (long double)(product % (2 * period)) / period;
      y[std::size_t(k)] +=
          weight * (is_sine ? std::sin(angle) : std::cos(angle)) * (long double)x[std::size_t(j)];
    }
  return y;
}

/// The largest error of cosine and sine transforms of lines of n elements.
template <template <class> class Transform, class T>
double worst_error_of_waves(index_t n) {
  std::vector<T> x;
  for (const std::complex<T>& value : line_of<T>(n)) x.push_back(value.real());
  double worst = 0;
  for (const bool is_sine : {false, true})
    for (int type = 1; type <= 4; ++type) {
      if (type == 1 && !is_sine && n == 1) continue;
      const auto first = is_sine ? LineTransformKind::sine1 : LineTransformKind::cosine1;
      const Transform<T> transform(LineTransformKind(int(first) + type - 1), n);
      std::vector<std::complex<T>> scratch(static_cast<std::size_t>(transform.scratch()));
      auto from = x, y = x;
      transform(from.data(), y.data(), scratch.data());
      worst = std::max(worst, distance(std::vector<std::complex<T>>(y.begin(), y.end()),
                                       naive_waves(x, type, is_sine)));
    }
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
    CHECK(worst_error_of_waves<Transform, double>(n) <= 5e-16 * (1 + std::log2(double(n))));
    CHECK(worst_error_of_waves<Transform, float>(n) <= 2.6e-7 * (1 + std::log2(double(n))));
  }
}

/// Interleaved lines, a few and many, have the bits of one alone, and the right values.
template <template <class> class Transform>
void check_interleaved() {
  for (const index_t n : {1, 2, 12, 37, 64, 77, 2050})
    for (const LineTransformKind kind : {LineTransformKind::forward, LineTransformKind::inverse}) {
      const Transform<double> transform(kind, n, true);
      const auto x = line_of<double>(n);
      const auto transformed = [&](index_t lines, index_t which) {
        const index_t apart = transform.stride(n, lines);
        std::vector<std::complex<double>> all(std::size_t(n * apart), 0.25), found;
        std::vector<std::complex<double>> scratch(std::size_t(apart * transform.scratch()));
        for (index_t k = 0; k < n; ++k) all[std::size_t(k * apart + which)] = x[std::size_t(k)];
        transform.interleaved(all.data(), lines, scratch.data());
        for (index_t k = 0; k < n; ++k) found.push_back(all[std::size_t(k * apart + which)]);
        return found;
      };
      CAPTURE(n);
      const auto alone = transformed(1, 0);
      if (n < 100)
        CHECK(distance(alone, naive_line(x, kind == LineTransformKind::forward ? -1 : 1)) <=
              2.5e-16 * (1 + std::log2(double(n))));
      for (const index_t lines : {2, 3, 4}) CHECK(transformed(lines, lines - 1) == alone);
      if (n < 2048)
        for (const index_t lines : {5, 15, 16}) CHECK(transformed(lines, lines - 1) == alone);
    }
}

/// Requires of its lines what FFTW does.
struct Aligned : kernels::PlainLineTransform<float> {
  using PlainLineTransform::PlainLineTransform;
  static constexpr bool interleaves(bool) { return false; }
  template <class In, class Out>
  void operator()(const In* from, Out* to, Complex* scratch) const {
    CHECK(reinterpret_cast<std::uintptr_t>(from) % 16 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(to) % 16 == 0);
    PlainLineTransform::operator()(from, to, scratch);
  }
};

}  // namespace

TEST_CASE("the bits of a line depend neither on the lines beside it nor on their number") {
  check_interleaved<kernels::PlainLineTransform>();
  check_interleaved<kernels::LineTransform>();
}

TEST_CASE(
    "transforms of lines are sums of roots of unity, or of cosines or sines, for all lengths") {
  check_lengths<kernels::PlainLineTransform>();
  check_lengths<kernels::LineTransform>();
}

TEST_CASE("a plan is executed on lines that are aligned to 16 bytes, whatever their lengths") {
  constexpr index_t rows = 7;
  for (const index_t n : {1, 5, 6, 9}) {
    const index_t half = n / 2 + 1;
    const auto lines = [](auto& values, index_t length, index_t apart) {
      using Value = std::remove_reference_t<decltype(values[0])>;
      return kernels::Strided<Value>{values.data(), Shape(std::array<index_t, 2>{rows, length}),
                                     Shape(std::array<index_t, 2>{apart, 1})};
    };
    std::vector<std::complex<float>> modes(std::size_t(rows * (n + 1)));
    std::vector<float> numbers(modes.size());
    const auto& as_given = modes;
    const auto& real_ones = numbers;
    using Complex = std::complex<float>;
    for (const index_t apart : {n, n + 1}) {
      CAPTURE(n);
      CAPTURE(apart);
      kernels::detail::LinesBy<Aligned, Complex, Complex>(LineTransformKind::forward, n, 1, 1,
                                                          lines(as_given, n, apart),
                                                          lines(modes, n, apart), 1)();
      kernels::detail::LinesBy<Aligned, float, Complex>(LineTransformKind::real, n, 1, 1,
                                                        lines(real_ones, n, apart),
                                                        lines(modes, half, half), 1)();
      kernels::detail::LinesBy<Aligned, Complex, float>(LineTransformKind::hermitian, n, 1, 1,
                                                        lines(as_given, half, half),
                                                        lines(numbers, n, apart), 1)();
    }
  }
}

TEST_CASE("lines may be transformed where they lie") {
  for (const index_t n : {6, 128, 210, 512}) {
    const std::vector<std::complex<double>> x = line_of<double>(3 * n);
    for (const int d : {0, 1}) {
      const Shape shape(d == 0 ? std::array<index_t, 2>{n, 3} : std::array<index_t, 2>{3, n});
      const Shape strides(std::array<index_t, 2>{shape[1], 1});
      const auto transform = [&](const auto& from, auto& to) {
        kernels::transform_lines(
            kernels::On<Host>{}, LineTransformKind::forward, n, 1, 1,
            kernels::Strided<const std::complex<double>>{from.data(), shape, strides},
            kernels::Strided<std::complex<double>>{to.data(), shape, strides}, d);
      };
      auto stays = x, moves = x;
      transform(x, moves);
      transform(stays, stays);
      CAPTURE(n);
      CHECK(stays == moves);
    }
  }
}
