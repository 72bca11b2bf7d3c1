// Exact sums over some dimensions of an array: of elements, of their squares, or of products of two
// arrays. The words of a sum do not depend on the order of its terms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include <cleave/kernels/dense.hpp>
#include <cleave/kernels/exact_words.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/host/exact_row.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// The exact sums of one result: one, or two for a complex number.
template <class T>
class ExactCell {
  using Real = real_t<T>;
  using Row = std::conditional_t<std::is_same_v<Real, double>, double, float>;
  static constexpr index_t block = ExactRows::block;

 public:
  ExactCell(ExactTerms terms, ExactWord* words)
      : terms_(terms),
        real_(exact_format<T>(terms), words),
        imaginary_(exact_format<T>(terms),
                   exact_numbers<T>(terms) > 1 ? words + exact_format<T>(terms).words() : words) {}

  /// Adds the terms of n contiguous elements.
  /// @param y  the second factors of products
  void add(const T* x, const T* y, index_t n) {
    if constexpr (std::is_same_v<T, Row>) {
      add_parts(n, x, y);
    } else {
      Row parts[is_complex<T> ? 4 : 2][block];
      for (index_t i = 0; i < n; i += block) {
        const index_t many = n - i < block ? n - i : block;
        split(x + i, many, parts[0], parts[is_complex<T> ? 1 : 0]);
        if (terms_ == ExactTerms::products)
          split(y + i, many, parts[is_complex<T> ? 2 : 1], parts[is_complex<T> ? 3 : 1]);
        if constexpr (is_complex<T>) add_complex(many, parts[0], parts[1], parts[2], parts[3]);
        else add_parts(many, parts[0], parts[1]);
      }
    }
  }

  void finish() {
    real_.finish();
    if (exact_numbers<T>(terms_) > 1) imaginary_.finish();
  }

 private:
  static void split(const T* from, index_t n, Row* real, [[maybe_unused]] Row* imaginary) {
    for (index_t i = 0; i < n; ++i) {
      if constexpr (is_complex<T>) real[i] = from[i].real(), imaginary[i] = from[i].imag();
      else real[i] = Row(from[i]);
    }
  }
  void add_parts(index_t n, const Row* x, const Row* y) {
    if (terms_ == ExactTerms::elements) real_.add(x, n);
    else real_.add_products(x, terms_ == ExactTerms::squares ? x : y, n);
  }
  void add_complex(index_t n, const Row* x, Row* xi, const Row* y, const Row* yi) {
    if (terms_ == ExactTerms::elements) {
      real_.add(x, n);
      imaginary_.add(xi, n);
    } else if (terms_ == ExactTerms::squares) {
      real_.add_products(x, x, n);
      real_.add_products(xi, xi, n);
    } else {
      imaginary_.add_products(x, yi, n);
      imaginary_.add_products(xi, y, n);
      real_.add_products(x, y, n);
      for (index_t i = 0; i < n; ++i) xi[i] = -xi[i];
      real_.add_products(xi, yi, n);
    }
  }

  ExactTerms terms_;
  ExactRows real_, imaginary_;
};

/// The loops over two arrays, which may be the same.
struct ExactLoops {
  StridedLoops<2> kept{};
  StridedLoops<2> reduced{};

  ExactLoops() = default;
  template <class T>
  ExactLoops(const Strided<T>& x, const Strided<T>& y, unsigned mask) {
    for (int d = 0; d < x.extents.dims; ++d)
      (mask >> d & 1u ? reduced : kept).push(x.extents[d], {x.strides[d], y.strides[d]});
  }
};

/// Calls done(i, words) with the words of every result, row-major.
/// @param y  the second factors of products
template <class T, class Done>
void exact_loops(ExactTerms terms, const T* x, const T* y, ExactLoops loops, const Done& done) {
  constexpr index_t most = 8, tile = 256;
  const auto words = std::size_t(exact_words<T>(terms));
  std::vector<ExactWord> sums(words * std::size_t(most));
  if (loops.kept.size() == 0) return;
  if (loops.reduced.size() == 0) {
    for (index_t i = 0, n = loops.kept.size(); i < n; ++i) done(i, sums.data());
    return;
  }
  // rows of terms if they are closer in memory than results; else columns, several at a time
  const auto innermost = [](const StridedLoops<2>& of) {
    return of.dims == 0 ? 0 : std::max(of.strides[0][of.dims - 1], of.strides[1][of.dims - 1]);
  };
  const bool along = loops.kept.dims == 0 ||
                     (loops.reduced.dims > 0 && innermost(loops.reduced) < innermost(loops.kept));
  StridedLoops<2>& inner = along ? loops.reduced : loops.kept;
  if (inner.dims == 0) inner.append(1, {1, 1});
  const int d = --inner.dims;
  const index_t extent = inner.extents[d], x_step = inner.strides[0][d],
                y_step = inner.strides[1][d];
  const index_t columns = along ? 1 : extent, steps = along ? extent : 1;
  const bool is_direct =
      along && x_step == 1 && y_step == 1 && (loops.reduced.dims == 0 || steps >= tile);
  std::vector<T> tiles(is_direct ? 0 : std::size_t(2 * most * tile));
  const bool pairs = terms == ExactTerms::products;
  T* const x_tiles = tiles.data();
  T* const y_tiles = pairs && !is_direct ? x_tiles + most * tile : x_tiles;
  std::vector<ExactCell<T>> cell;
  cell.reserve(std::size_t(most));
  index_t result = 0;
  loops.kept.each([&](index_t x_start, index_t y_start) {
    for (index_t first = 0; first < columns; first += most) {
      const index_t cells = columns - first < most ? columns - first : most;
      cell.clear();
      for (index_t j = 0; j < cells; ++j)
        cell.emplace_back(terms, sums.data() + std::size_t(j) * words);
      index_t held = 0;
      const auto flush = [&] {
        for (index_t j = 0; j < cells; ++j)
          cell[std::size_t(j)].add(x_tiles + j * tile, y_tiles + j * tile, held);
        held = 0;
      };
      loops.reduced.each([&](index_t x_offset, index_t y_offset) {
        const T* a = x + x_start + first * x_step + x_offset;
        const T* b = y + y_start + first * y_step + y_offset;
        if (is_direct) return cell[0].add(a, b, steps);
        for (index_t i = 0; i < steps; ++i, a += x_step, b += y_step) {
          for (index_t j = 0; j < cells; ++j) {
            x_tiles[j * tile + held] = a[j * x_step];
            if (pairs) y_tiles[j * tile + held] = b[j * y_step];
          }
          if (++held == tile) flush();
        }
      });
      flush();
      for (index_t j = 0; j < cells; ++j) {
        cell[std::size_t(j)].finish();
        done(result++, sums.data() + std::size_t(j) * words);
      }
    }
  });
}

}  // namespace detail

/// Calls done(i, words) with the words of the sum of every result, row-major.
///
/// @param terms  elements or squares
/// @param x      any extents and strides
/// @param mask   bit d: dimension d is reduced
template <class T, class Done>
void each_exact_sum(ExactTerms terms, unsigned mask, const Done& done, const Strided<const T>& x) {
  detail::exact_loops(terms, x.data, x.data, detail::ExactLoops(x, x, mask), done);
}

/// The same for products of two arrays of the same extents.
/// @cost  if the strides differ, a copy of each array that is not row-major and contiguous
template <class T, class Done>
void each_exact_sum(ExactTerms terms, unsigned mask, const Done& done, const Strided<const T>& x,
                    const Strided<const T>& y) {
  std::shared_ptr<void> x_copy, y_copy;
  const bool alike = x.strides == y.strides;
  const auto a = alike ? x : densely(On<Host>{}, x, x_copy),
             b = alike ? y : densely(On<Host>{}, y, y_copy);
  detail::exact_loops(terms, a.data, b.data, detail::ExactLoops(a, b, mask), done);
}

/// The words of exact sums over the dimensions of the mask.
/// @param out  [results.., words], row-major and contiguous
template <class T, class... Y>
void exact_parts(On<Host>, ExactTerms terms, unsigned mask, ExactWord* out,
                 const Strided<const T>& x, const Y&... y) {
  const index_t words = exact_words<T>(terms);
  each_exact_sum<T>(
      terms, mask,
      [&](index_t i, const ExactWord* from) { std::copy_n(from, words, out + i * words); }, x,
      y...);
}

/// Exact sums over the dimensions of the mask, with the epilogue applied, rounded.
/// @param out  row-major and contiguous
template <class T, class... Y>
void exact_reduce(On<Host>, ExactTerms terms, unsigned mask, const ExactEpilogue& epilogue, T* out,
                  const Strided<const T>& x, const Y&... y) {
  each_exact_sum<T>(
      terms, mask,
      [&](index_t i, ExactWord* words) { out[i] = exact_value<T>(terms, words, epilogue); }, x,
      y...);
}

/// The numbers that words represent, with the epilogue applied.
/// @param parts  [results.., words], any strides
/// @param out    row-major and contiguous
template <class T>
void exact_values(On<Host>, ExactTerms terms, const ExactEpilogue& epilogue,
                  const Strided<const ExactWord>& parts, T* out) {
  if (parts.extents.product() == 0) return;
  const int last = parts.extents.dims - 1;
  const index_t count = parts.extents[last], step = parts.strides[last];
  std::vector<ExactWord> words(static_cast<std::size_t>(count));
  detail::DimLoops loops;
  for (int d = 0; d < last; ++d) loops.push(parts.extents[d], {parts.strides[d]});
  loops.each([&](index_t offset) {
    for (index_t i = 0; i < count; ++i) words[std::size_t(i)] = parts.data[offset + i * step];
    *out++ = exact_value<T>(terms, words.data(), epilogue);
  });
}

}  // namespace cleave::inline v0::kernels
