// Discrete Fourier transforms along one dimension of an array: by FFTW if it was found, else by a
// kernel of our own. Each line is transformed alone, so the bits of a result depend on its line
// only, not on the extents and strides of the array that it is in.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
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

namespace cleave::kernels {

#if CLEAVE_HAS_FFTW
template <class T>
using LineTransform = FftwLineTransform<T>;
#else
template <class T>
using LineTransform = PlainLineTransform<T>;
#endif

namespace detail {

/// The transform of lines of n elements, from a cache.
template <class T>
const LineTransform<T>& line_transform(LineTransformKind kind, index_t n) {
  struct Made {
    LineTransformKind kind;
    index_t n;
    std::unique_ptr<const LineTransform<T>> transform;
  };
  static std::mutex lock;
  static std::vector<Made> cache;
  const std::lock_guard guard(lock);
  for (const Made& made : cache)
    if (made.kind == kind && made.n == n) return *made.transform;
  cache.push_back({kind, n, std::make_unique<const LineTransform<T>>(kind, n)});
  return *cache.back().transform;
}

}  // namespace detail

/// y = the transforms of all lines of x along dimension d, times `scale`. Elements other than the
/// first one and, if n is even, the last one of the n/2 + 1 complex ones of a line are multiplied
/// by `inner`, too.
///
/// @param n  the length of the transform
template <class In, class Out>
void transform_lines(On<Host>, LineTransformKind kind, index_t n, double scale, double inner,
                     const Strided<const In>& x, const Strided<Out>& y, int d) {
  using T = typename RealPart<In>::type;
  using Complex = std::complex<T>;
  if (x.extents.product() == 0 || y.extents.product() == 0) return;
  const LineTransform<T>& transform = detail::line_transform<T>(kind, n);
  const auto weigh = [&](Complex* line) {
    for (index_t k = 1; inner != 1 && k < n - k; ++k) line[k] *= T(inner);
  };
  const auto compute = [&](Complex* line, Complex* scratch) {
    if (kind == LineTransformKind::hermitian) weigh(line);
    transform(line, scratch);
    if (kind == LineTransformKind::real) weigh(line);
    Out* const result = reinterpret_cast<Out*>(line);
    for (index_t k = 0; scale != 1 && k < y.extents[d]; ++k) result[k] *= T(scale);
  };

  constexpr bool may_stay = std::is_same_v<In, Out>;
  const bool are_dense = may_stay && x.strides[d] == 1 && y.strides[d] == 1;
  int along = -1;  // the dimension whose lines are packed together
  for (int e = 0; e < x.extents.dims; ++e)
    if (e != d) along = e;
  const index_t count = along < 0 ? 1 : x.extents[along], most = std::min<index_t>(count, 16);
  const auto step = [along](const Shape& strides) { return along < 0 ? 0 : strides[along]; };
  std::vector<Complex> buffer(std::size_t(most * n + transform.scratch()));
  Complex* const scratch = buffer.data() + most * n;
  const auto visit = [&](index_t from, index_t to) {
    for (index_t first = 0; first < count; first += most) {
      const index_t lines = std::min(most, count - first);
      const auto view = [&]<class E>(E* data, const Shape& of, const Shape& strides) {
        return View{const_cast<std::remove_const_t<E>*>(data), dtype_of<std::remove_const_t<E>>(),
                    Shape(std::array<index_t, 2>{lines, of[d]}), strides};
      };
      const auto outer = [&](const Shape& of) {
        return Shape(std::array<index_t, 2>{step(of), of[d]});
      };
      const auto packed = [&]<class E>(E*, const Shape& of) {
        constexpr index_t each = sizeof(Complex) / sizeof(E);
        return view(reinterpret_cast<E*>(buffer.data()), of,
                    Shape(std::array<index_t, 2>{n * each, 1}));
      };
      const In* const in = x.data + from + first * step(x.strides);
      Out* const out = y.data + to + first * step(y.strides);
      if constexpr (may_stay) {
        if (are_dense && reinterpret_cast<std::uintptr_t>(out) % 16 == 0 &&
            step(y.strides) * index_t(sizeof(Out)) % 16 == 0) {
          strided_copy(view(in, x.extents, outer(x.strides)),
                       view(out, y.extents, outer(y.strides)));
          for (index_t r = 0; r < lines; ++r) compute(out + r * step(y.strides), scratch);
          continue;
        }
      }
      strided_copy(view(in, x.extents, outer(x.strides)),
                   packed(static_cast<In*>(nullptr), x.extents));
      for (index_t r = 0; r < lines; ++r) compute(buffer.data() + r * n, scratch);
      strided_copy(packed(static_cast<Out*>(nullptr), y.extents),
                   view(out, y.extents, outer(y.strides)));
    }
  };
  const unsigned rows = 1u << d | (along < 0 ? 0u : 1u << along);
  detail::loops_besides(rows, x.extents, x.strides, y.strides).each(visit);
}

}  // namespace cleave::kernels
