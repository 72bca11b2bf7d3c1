// Contractions of arrays with exact sums: the words of a result do not depend on the order of its
// terms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include <cleave/kernels/contract.hpp>
#include <cleave/kernels/dense.hpp>
#include <cleave/kernels/exact_words.hpp>
#include <cleave/kernels/host/exact_sums.hpp>
#include <cleave/kernels/strided.hpp>

namespace cleave::inline v0::kernels {

namespace detail {

/// An operand with the summed dimensions last, contiguous: one row per index of the other
/// dimensions.
template <class T>
struct ProductRows {
  Strided<const T> rows{};
  std::shared_ptr<void> memory{};  ///< owns the elements of a copy
  Shape steps{};                   ///< between indices of the result; 0 where the operand repeats

  /// @param dim  returns the operand's dimension for an index of the contraction, -1 if it has none
  template <class Dim>
  ProductRows(const Contraction& letters, const Strided<const T>& x, const Dim& dim) {
    Strided<const T> moved{x.data, {}, {}};
    for (const bool is_summed : {false, true})
      for (int i = 0; i < letters.count; ++i) {
        const Contraction::Index& letter = letters.index[std::size_t(i)];
        if ((letter.y < 0) != is_summed || dim(letter) < 0) continue;
        moved.extents[moved.extents.dims++] = x.extents[dim(letter)];
        moved.strides[moved.strides.dims++] = x.strides[dim(letter)];
      }
    rows = densely(On<Host>{}, moved, memory);
    int at = 0;
    for (int i = 0; i < letters.count; ++i) {
      const Contraction::Index& letter = letters.index[std::size_t(i)];
      if (letter.y < 0) continue;
      steps[steps.dims++] = dim(letter) >= 0 ? rows.strides[at++] : 0;
    }
  }
};

}  // namespace detail

/// Calls done(i, words) with the words of every result of x · w, row-major.
///
/// @param letters  the result's letters first, in its order; each occurs in x or w
/// @param results  the extents of the result
/// @cost           a copy of each operand that is not contiguous with its summed dimensions last
template <class T, class Done>
void each_exact_product(const Contraction& letters, const Shape& results, const Strided<const T>& x,
                        const Strided<const T>& w, const Done& done) {
  if (results.product() == 0) return;
  const detail::ProductRows<T> a(letters, x, [](const Contraction::Index& i) { return i.x; });
  const detail::ProductRows<T> b(letters, w, [](const Contraction::Index& i) { return i.w; });
  index_t depth = 1;
  for (int i = 0; i < letters.count; ++i)
    if (const Contraction::Index& letter = letters.index[std::size_t(i)]; letter.y < 0)
      depth *= x.extents[letter.x];
  detail::ExactLoops loops;
  for (int d = 0; d < results.dims; ++d) loops.kept.push(results[d], {a.steps[d], b.steps[d]});
  loops.reduced.push(depth, {1, 1});
  detail::exact_loops(ExactTerms::products, a.rows.data, b.rows.data, loops, done);
}

/// The words of the results. @param out  [results.., words], row-major and contiguous
template <class T>
void exact_product_parts(On<Host>, const Contraction& letters, const Strided<ExactWord>& out,
                         const Strided<const T>& x, const Strided<const T>& w) {
  const index_t words = exact_words<T>(ExactTerms::products);
  Shape results = out.extents;
  --results.dims;
  each_exact_product(letters, results, x, w, [&](index_t i, const ExactWord* from) {
    std::copy_n(from, words, out.data + i * words);
  });
}

/// The results, rounded. @param out  row-major and contiguous
template <class T>
void exact_products(On<Host>, const Contraction& letters, const Strided<T>& out,
                    const Strided<const T>& x, const Strided<const T>& w) {
  each_exact_product(letters, out.extents, x, w, [&](index_t i, ExactWord* from) {
    out.data[i] = exact_value<T>(ExactTerms::products, from, ExactEpilogue{});
  });
}

}  // namespace cleave::inline v0::kernels
