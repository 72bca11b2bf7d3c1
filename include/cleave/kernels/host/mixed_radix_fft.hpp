// Discrete Fourier transforms of lines of complex numbers, without a library.
//
// Lengths whose prime factors are at most 31: the autosort algorithm of Stockham, with butterflies
// of 4, 2, 3, 5 and of any other factor (C. Van Loan, Computational Frameworks for the Fast Fourier
// Transform, SIAM 1992, section 1.7). Other lengths: a convolution with a chirp, by transforms of a
// power of two (L. Bluestein, IEEE Trans. Audio Electroacoust. 18, 1970).
#pragma once

#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/core/config.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// exp(-2πi k / n), accurate to the last bit but one: by symmetry, angles are at most π/4.
template <class T>
std::complex<T> root_of_unity(index_t k, index_t n) {
  constexpr double pi = 3.14159265358979323846;
  const index_t eighth = 8 * (k % n) / n;  // of the circle
  const index_t rest = 8 * (k % n) - (eighth + eighth % 2) * n;
  const double angle = pi * double(rest) / double(4 * n);  // in [-π/4, π/4]
  const double c = std::cos(angle), s = std::sin(angle);
  const std::array<std::array<double, 2>, 4> turned{{{c, -s}, {-s, -c}, {-c, s}, {s, c}}};
  const auto& value = turned[std::size_t((eighth + 1) / 2 % 4)];
  return {T(value[0]), T(value[1])};
}

/// a · b, without the standard's treatment of infinities.
template <class T>
std::complex<T> product_of(const std::complex<T>& a, const std::complex<T>& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// -i · a
template <class T>
std::complex<T> turned_back(const std::complex<T>& a) {
  return {a.imag(), -a.real()};
}

}  // namespace detail

/// The transform y[k] = sum over j of x[j] · exp(-2πi jk / n) for lines of n elements.
template <class T>
class MixedRadixFft {
 public:
  using Complex = std::complex<T>;

  /// @cost O(n log n)
  explicit MixedRadixFft(index_t n) : n_(n) {
    index_t left = n;
    for (const index_t p : {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31})
      while (left > 1 && left % p == 0) radix_.push_back(int(p)), left /= p;
    if (left > 1) prepare_chirp();
    else prepare_roots();
  }

  /// The number of elements of scratch memory.
  index_t scratch() const { return chirp_.empty() ? n_ : 2 * inner_->n_; }

  /// Transforms lines in place: element k of line r is x[k · lines + r].
  /// @param scratch  room for scratch() · lines
  void operator()(Complex* x, Complex* scratch, index_t lines = 1) const {
    if (!chirp_.empty()) return by_convolution(x, scratch, lines);
    Complex *from = x, *to = scratch;
    index_t stride = lines, left = n_;
    const Complex* root = root_.data();
    for (const int p : radix_) {
      left /= p;
      pass(p, from, to, left, stride, root);
      root += left * (p - 1);
      stride *= p;
      std::swap(from, to);
    }
    if (from != x)
      for (index_t i = 0; i < n_ * lines; ++i) x[i] = from[i];
  }

 private:
  /// The powers of roots of unity that each pass multiplies by: after those of a pass, the next
  /// one's.
  void prepare_roots() {
    index_t left = n_;
    for (const int p : radix_) {
      const index_t length = left;
      left /= p;
      for (index_t j = 0; j < left; ++j)
        for (index_t r = 1; r < p; ++r) root_.push_back(detail::root_of_unity<T>(j * r, length));
      if (p > 5 && circle_[std::size_t(p)].empty())
        for (index_t k = 0; k < p; ++k)
          circle_[std::size_t(p)].push_back(detail::root_of_unity<T>(k, p));
    }
  }

  void prepare_chirp() {
    index_t length = 1;
    while (length < 2 * n_ - 1) length *= 2;
    inner_ = std::make_unique<MixedRadixFft>(length);
    std::vector<Complex> filter(std::size_t(length), Complex{}), scratch(filter.size());
    for (index_t k = 0; k < n_; ++k) {
      chirp_.push_back(detail::root_of_unity<T>(k * k % (2 * n_), 2 * n_));
      filter[std::size_t(k)] = filter[std::size_t((length - k) % length)] =
          std::conj(chirp_.back());
    }
    (*inner_)(filter.data(), scratch.data());
    for (Complex& value : filter) value /= T(length);
    filter_ = std::move(filter);
  }

  void by_convolution(Complex* x, Complex* scratch, index_t lines) const {
    const index_t length = inner_->n_;
    Complex* const rest = scratch + length * lines;
    const auto each = [lines](index_t count, const auto& f) {
      for (index_t k = 0; k < count; ++k)
        for (index_t i = k * lines; i < (k + 1) * lines; ++i) f(std::size_t(k), i);
    };
    each(n_, [&](std::size_t k, index_t i) { scratch[i] = detail::product_of(x[i], chirp_[k]); });
    for (index_t i = n_ * lines; i < length * lines; ++i) scratch[i] = Complex{};
    (*inner_)(scratch, rest, lines);
    each(length, [&](std::size_t k, index_t i) {  // the inverse transform is that of conjugates
      scratch[i] = std::conj(detail::product_of(scratch[i], filter_[k]));
    });
    (*inner_)(scratch, rest, lines);
    each(n_, [&](std::size_t k, index_t i) {
      x[i] = detail::product_of(std::conj(scratch[i]), chirp_[k]);
    });
  }

  /// Element k of part q of group j is from[k + stride · (j + left · q)]; element k of result r of
  /// group j is to[k + stride · (p · j + r)].
  void pass(int p, const Complex* from, Complex* to, index_t left, index_t stride,
            const Complex* root) const {
    const auto each = [&]<int P>(std::integral_constant<int, P>) {
      for (index_t j = 0; j < left; ++j, root += P - 1) {
        const Complex* const a = from + stride * j;
        Complex* const b = to + stride * P * j;
        for (index_t k = 0; k < stride; ++k) {
          std::array<Complex, std::size_t(P)> in;
          for (index_t q = 0; q < P; ++q) in[std::size_t(q)] = a[k + stride * left * q];
          butterfly(in);
          b[k] = in[0];
          for (index_t r = 1; r < P; ++r)
            b[k + stride * r] = detail::product_of(in[std::size_t(r)], root[r - 1]);
        }
      }
    };
    switch (p) {
      case 2: return each(std::integral_constant<int, 2>{});
      case 3: return each(std::integral_constant<int, 3>{});
      case 4: return each(std::integral_constant<int, 4>{});
      case 5: return each(std::integral_constant<int, 5>{});
      default: return pass_of_prime(p, from, to, left, stride, root);
    }
  }

  static void butterfly(std::array<Complex, 2>& x) { x = {x[0] + x[1], x[0] - x[1]}; }
  static void butterfly(std::array<Complex, 3>& x) {
    constexpr T sin_60 = T(0.866025403784438646763723170752936183);
    const Complex sum = x[1] + x[2], middle = x[0] - T(0.5) * sum;
    const Complex side = detail::turned_back(sin_60 * (x[1] - x[2]));
    x = {x[0] + sum, middle + side, middle - side};
  }
  static void butterfly(std::array<Complex, 4>& x) {
    const Complex a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3];
    const Complex d = detail::turned_back(x[1] - x[3]);
    x = {a + c, b + d, a - c, b - d};
  }
  static void butterfly(std::array<Complex, 5>& x) {
    constexpr T cos_72 = T(0.309016994374947424102293417182819059);
    constexpr T cos_144 = T(-0.809016994374947424102293417182819059);
    constexpr T sin_72 = T(0.951056516295153572116439333379382143);
    constexpr T sin_144 = T(0.587785252292473129168705954639072769);
    const Complex s1 = x[1] + x[4], s2 = x[2] + x[3], d1 = x[1] - x[4], d2 = x[2] - x[3];
    const Complex m1 = x[0] + cos_72 * s1 + cos_144 * s2, m2 = x[0] + cos_144 * s1 + cos_72 * s2;
    const Complex t1 = detail::turned_back(sin_72 * d1 + sin_144 * d2);
    const Complex t2 = detail::turned_back(sin_144 * d1 - sin_72 * d2);
    x = {x[0] + s1 + s2, m1 + t1, m2 + t2, m2 - t2, m1 - t1};
  }

  void pass_of_prime(index_t p, const Complex* from, Complex* to, index_t left, index_t stride,
                     const Complex* root) const {
    const std::vector<Complex>& circle = circle_[std::size_t(p)];
    for (index_t j = 0; j < left; ++j, root += p - 1)
      for (index_t k = 0; k < stride; ++k)
        for (index_t r = 0; r < p; ++r) {
          const Complex* const a = from + k + stride * j;
          Complex sum = a[0];
          for (index_t q = 1; q < p; ++q)
            sum += detail::product_of(a[stride * left * q], circle[std::size_t(q * r % p)]);
          to[k + stride * (p * j + r)] = r == 0 ? sum : detail::product_of(sum, root[r - 1]);
        }
  }

  index_t n_;
  std::vector<int> radix_{};
  std::vector<Complex> root_{};
  std::array<std::vector<Complex>, 32> circle_{};  ///< exp(-2πi k / p) for factors p above 5
  std::vector<Complex> chirp_{}, filter_{};        ///< for prime factors above 31
  std::unique_ptr<MixedRadixFft> inner_{};
};

}  // namespace cleave::inline v0::kernels
