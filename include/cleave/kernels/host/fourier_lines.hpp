// Discrete Fourier, cosine and sine transforms along one dimension of an array: by FFTW if it was
// found, else by a kernel of our own. Each line is transformed alone, so the bits of a result
// depend on its line only, not on the extents and strides of the array that it is in.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/shape.hpp>
#include <cleave/kernels/element_arithmetic.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#if CLEAVE_HAS_FFTW
#include <cleave/kernels/host/fftw_line_transform.hpp>
#else
#include <cleave/kernels/host/plain_line_transform.hpp>
#endif
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::kernels {

#if CLEAVE_HAS_FFTW
template <class T>
using LineTransform = FftwLineTransform<T>;
#else
template <class T>
using LineTransform = PlainLineTransform<T>;
#endif

/// What cosine and sine transforms multiply the elements at the ends of x and y by. @see Waves
struct EndFactors {
  double of_x = 1, of_y = 1;
};

namespace detail {

/// The transform of lines of n elements, from a cache.
template <class Transform>
const Transform& line_transform(LineTransformKind kind, index_t n, bool interleaved) {
  struct Made {
    LineTransformKind kind;
    index_t n;
    bool interleaved;
    std::unique_ptr<const Transform> transform;
  };
  static std::mutex lock;
  static std::vector<Made> cache;
  const std::lock_guard guard(lock);
  for (const Made& made : cache)
    if (made.kind == kind && made.n == n && made.interleaved == interleaved) return *made.transform;
  cache.push_back({kind, n, interleaved, std::make_unique<const Transform>(kind, n, interleaved)});
  return *cache.back().transform;
}

/// Copies n rows of a few elements each.
template <class T>
void copy_rows(const T* from, index_t from_stride, T* to, index_t to_stride, index_t n,
               index_t lines) {
  const auto copy = [&](auto count) {
    for (index_t k = 0; k < n; ++k)
      std::memcpy(to + k * to_stride, from + k * from_stride, std::size_t(count) * sizeof(T));
  };
  if (lines == 16) copy(std::integral_constant<index_t, 16>{});  // unrolled
  else copy(lines);
}

/// transform_lines by a certain kernel. Lines are taken 16 at a time, fewer if they are long.
template <class Transform, class In, class Out>
class LinesBy {
 public:
  LinesBy(LineTransformKind kind, index_t n, double scale, double inner, const Strided<const In>& x,
          const Strided<Out>& y, int d, const EndFactors& ends = {})
      : kind_(kind),
        n_(n),
        scale_(T(scale)),
        inner_(T(inner)),
        ends_(ends),
        x_(x),
        y_(y),
        d_(d),
        is_interleaved_(are_complex && Transform::interleaves(d == x.extents.dims - 1)),
        transform_(line_transform<Transform>(kind, n, is_interleaved_)) {
    for (int e = 0; e < x.extents.dims; ++e)
      if (e != d) along_ = e;
  }

  void operator()() {
    if (x_.extents.product() == 0 || y_.extents.product() == 0) return;
    const index_t count = along_ < 0 ? 1 : x_.extents[along_];
    const index_t most = std::min(count, n_ > 2048 ? index_t(4) : index_t(16));
    const index_t wide = is_interleaved_ ? Transform::stride(n_, most) : 2 * most;
    buffer_.resize(std::size_t(wide * (apart() + transform_.scratch())));
    scratch_ = buffer_.data() + wide * apart();
    const unsigned rows = 1u << d_ | (along_ < 0 ? 0u : 1u << along_);
    const auto visit = [&](index_t from, index_t to) {
      for (index_t first = 0; first < count; first += most) {
        const index_t lines = std::min(most, count - first);
        const In* const in = x_.data + from + first * step(x_.strides);
        Out* const out = y_.data + to + first * step(y_.strides);
        if constexpr (are_complex) {
          if (is_interleaved_) {
            interleaved(in, out, lines);
            continue;
          }
        }
        one_by_one(in, out, lines);
      }
    };
    loops_besides(rows, x_.extents, x_.strides, y_.strides).each(visit);
  }

 private:
  using T = typename RealPart<In>::type;
  using Complex = std::complex<T>;
  static constexpr bool are_complex = is_complex<In> && is_complex<Out>;
  static constexpr bool are_real = !is_complex<In> && !is_complex<Out>;

  /// How far packed lines are apart: aligned to 16 bytes, as FFTW requires of all that a plan is
  /// executed on.
  index_t apart() const { return n_ + n_ % 2; }

  /// From a line to the next one.
  index_t step(const Shape& strides) const { return along_ < 0 ? 0 : strides[along_]; }

  /// Lines that are `apart` from each other.
  template <class E>
  View view(const E* data, index_t lines, index_t length, index_t apart, index_t stride) const {
    return View{const_cast<E*>(data), dtype_of<E>(), Shape(std::array<index_t, 2>{lines, length}),
                Shape(std::array<index_t, 2>{apart, stride})};
  }

  void interleaved(const Out* in, Out* out, index_t lines) {
    const index_t apart = Transform::stride(n_, lines);
    Complex* const packed = buffer_.data();
    if (step(x_.strides) == 1) copy_rows(in, x_.strides[d_], packed, apart, n_, lines);
    else
      strided_copy(view(in, lines, n_, step(x_.strides), x_.strides[d_]),
                   view(packed, lines, n_, 1, apart));
    transform_.interleaved(packed, lines, scratch_);
    multiply(packed, n_ * apart, scale_);
    if (step(y_.strides) == 1) copy_rows(packed, apart, out, y_.strides[d_], n_, lines);
    else
      strided_copy(view(packed, lines, n_, 1, apart),
                   view(out, lines, n_, step(y_.strides), y_.strides[d_]));
  }

  /// Whether lines may stay where they are.
  template <class E>
  bool are_aligned(const E* line, const Shape& strides) const {
    return strides[d_] == 1 && reinterpret_cast<std::uintptr_t>(line) % 16 == 0 &&
           step(strides) * index_t(sizeof(E)) % 16 == 0;
  }

  void one_by_one(const In* in, Out* out, index_t lines) {
    const index_t in_length = x_.extents[d_], out_length = y_.extents[d_];
    const bool packs_x = kind_ == LineTransformKind::hermitian || !are_aligned(in, x_.strides) ||
                         static_cast<const void*>(in) == out || ends_.of_x != 1;
    const bool copies_x = packs_x && x_.strides[d_] == 1;  // one at a time, into the L1 cache
    const bool packs_y = !are_aligned(out, y_.strides);
    In* const packed_in = reinterpret_cast<In*>(buffer_.data());
    Out* const packed_out = reinterpret_cast<Out*>(buffer_.data() + lines * apart());
    const index_t in_apart = copies_x  ? 0
                             : packs_x ? apart() * index_t(sizeof(Complex) / sizeof(In))
                                       : step(x_.strides);
    const index_t out_apart =
        packs_y ? apart() * index_t(sizeof(Complex) / sizeof(Out)) : step(y_.strides);
    if (packs_x && !copies_x)
      strided_copy(view(in, lines, in_length, step(x_.strides), x_.strides[d_]),
                   view(packed_in, lines, in_length, in_apart, 1));
    for (index_t r = 0; r < lines; ++r) {
      In* const from = (packs_x ? packed_in : const_cast<In*>(in)) + r * in_apart;
      Out* const to = (packs_y ? packed_out : out) + r * out_apart;
      if (copies_x) std::copy_n(in + r * step(x_.strides), in_length, from);
      if constexpr (is_complex<In>)
        if (kind_ == LineTransformKind::hermitian) weigh(from);
      if constexpr (are_real) weigh_end(from, ends_.of_x, &Waves::is_end_in);
      transform_(from, to, scratch_);
      if constexpr (are_real) weigh_end(to, ends_.of_y, &Waves::is_end_out);
      if constexpr (is_complex<Out>)
        if (kind_ == LineTransformKind::real) weigh(to);
      multiply(to, out_length, scale_);
    }
    if (packs_y)
      strided_copy(view(packed_out, lines, out_length, out_apart, 1),
                   view(out, lines, out_length, step(y_.strides), y_.strides[d_]));
  }

  /// Vectorised: no element can be an alias of `factor`, a copy.
  template <class E>
  static void multiply(E* x, index_t count, T factor) {
    if (factor == 1) return;
    for (index_t k = 0; k < count; ++k) x[k] *= factor;
  }

  void weigh(Complex* line) const { multiply(line + 1, (n_ - 1) / 2, inner_); }

  void weigh_end(T* line, double factor, bool (Waves::*is_end)(index_t, index_t) const) const {
    if (factor == 1) return;
    const Waves waves(kind_);
    if ((waves.*is_end)(0, n_)) line[0] *= T(factor);
    if (n_ > 1 && (waves.*is_end)(n_ - 1, n_)) line[n_ - 1] *= T(factor);
  }

  LineTransformKind kind_;
  index_t n_;
  T scale_, inner_;
  EndFactors ends_;
  Strided<const In> x_;
  Strided<Out> y_;
  int d_, along_ = -1;  ///< along_: the dimension whose lines are taken together
  bool is_interleaved_;
  const Transform& transform_;
  std::vector<Complex> buffer_{};
  Complex* scratch_ = nullptr;
};

}  // namespace detail

/// y = the transforms of all lines of x along dimension d, times `scale`; y may be x. Elements
/// other than the first one and, if n is even, the last one of the n/2 + 1 complex ones of a line
/// are multiplied by `inner`, too.
///
/// @param n  the length of the transform
template <class In, class Out>
void transform_lines(On<Host>, LineTransformKind kind, index_t n, double scale, double inner,
                     const Strided<const In>& x, const Strided<Out>& y, int d,
                     const EndFactors& ends = {}) {
  using T = typename RealPart<In>::type;
  detail::LinesBy<LineTransform<T>, In, Out>(kind, n, scale, inner, x, y, d, ends)();
}

}  // namespace cleave::inline v0::kernels
