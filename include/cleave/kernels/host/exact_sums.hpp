// Exact sums over some dimensions of an array: of elements, of their squares, or of products of two
// arrays. The words of a sum do not depend on the order of its terms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include <cleave/kernels/exact_words.hpp>
#include <cleave/kernels/host/dense.hpp>
#include <cleave/kernels/host/dim_loops.hpp>
#include <cleave/kernels/host/exact_row.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::kernels {

namespace detail {

/// The exact sums of one result: one, or two for a complex number.
template <class T>
class ExactCell {
  using Real = real_t<T>;
  using Row = std::conditional_t<std::is_same_v<Real, double>, double, float>;
  static constexpr index_t block = 1024;

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

/// exact_loops for an array without elements.
template <class T, class Done>
void no_terms(ExactTerms terms, const Shape& extents, unsigned mask, const Done& done) {
  index_t results = 1;
  for (int d = 0; d < extents.dims; ++d)
    if (!(mask >> d & 1u)) results *= extents[d];
  std::vector<ExactWord> words(std::size_t(exact_words<T>(terms)));
  for (index_t i = 0; i < results; ++i) done(i, words.data());
}

/// Calls done(i, words) with the words of every result, row-major.
/// @param y  null, or the second factors, with the strides of x
template <class T, class Done>
void exact_loops(ExactTerms terms, const Strided<const T>& x, const T* y, unsigned mask,
                 const Done& done) {
  if (x.extents.product() == 0) return no_terms<T>(terms, x.extents, mask, done);
  constexpr index_t most = 8, tile = 256;
  ReduceLoops loops(x.extents, x.strides, mask);
  const bool along = loops.along();
  const auto row = along ? loops.reduced.pop() : DimLoops::Loop{};
  const auto columns = along ? DimLoops::Loop{} : loops.kept.pop();
  const bool is_direct = along && row.stride == 1 && row.extent >= tile;
  const auto words = std::size_t(exact_words<T>(terms));
  std::vector<ExactWord> sums(words * std::size_t(most));
  std::vector<T> tiles(is_direct ? 0 : std::size_t((y != nullptr ? 2 : 1) * most * tile));
  T* const other = y != nullptr && !is_direct ? tiles.data() + most * tile : nullptr;
  index_t result = 0;
  loops.kept.each([&](index_t start) {
    for (index_t first = 0; first < columns.extent; first += most) {
      const index_t cells = columns.extent - first < most ? columns.extent - first : most;
      std::vector<ExactCell<T>> cell;
      for (index_t j = 0; j < cells; ++j)
        cell.emplace_back(terms, sums.data() + std::size_t(j) * words);
      index_t held = 0;
      const auto flush = [&] {
        for (index_t j = 0; j < cells; ++j)
          cell[std::size_t(j)].add(tiles.data() + j * tile,
                                   other != nullptr ? other + j * tile : nullptr, held);
        held = 0;
      };
      loops.reduced.each([&](index_t offset) {
        const index_t from = start + first * columns.stride + offset;
        if (is_direct)
          return cell[0].add(x.data + from, y != nullptr ? y + from : nullptr, row.extent);
        for (index_t i = 0; i < row.extent; ++i) {
          const index_t at = from + i * row.stride;
          for (index_t j = 0; j < cells; ++j) {
            tiles[std::size_t(j * tile + held)] = x.data[at + j * columns.stride];
            if (other != nullptr) other[j * tile + held] = y[at + j * columns.stride];
          }
          if (++held == tile) flush();
        }
      });
      if (!is_direct) flush();
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
  detail::exact_loops(terms, x, static_cast<const T*>(nullptr), mask, done);
}

/// The same for products of two arrays of the same extents.
/// @cost  if the strides differ, a copy of each array that is not row-major and contiguous
template <class T, class Done>
void each_exact_sum(ExactTerms, unsigned mask, const Done& done, const Strided<const T>& x,
                    const Strided<const T>& y) {
  constexpr ExactTerms terms = ExactTerms::products;
  if (x.strides == y.strides) return detail::exact_loops(terms, x, y.data, mask, done);
  std::shared_ptr<void> x_copy, y_copy;
  const auto a = detail::densely(x, x_copy), b = detail::densely(y, y_copy);
  detail::exact_loops(terms, a, b.data, mask, done);
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

}  // namespace cleave::kernels
