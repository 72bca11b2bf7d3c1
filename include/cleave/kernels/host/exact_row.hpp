// Adds rows of numbers to an exact sum: in blocks that vector instructions sum without rounding, or
// element by element if a block spans too many powers of two.
#pragma once

#include <cleave/core/config.hpp>
#include <cleave/kernels/exact_words.hpp>

namespace cleave::kernels {

/// An exact sum to which rows are added. Refers to the words, without owning them.
class ExactRows {
 public:
  /// The number of elements in a block.
  static constexpr index_t block = 1024;

  /// @param words  the words of one number in this format; set to 0
  ExactRows(const ExactFormat& format, ExactWord* words);

  /// Adds n numbers.
  void add(const double* row, index_t n);
  void add(const float* row, index_t n);

  /// Adds n products of two numbers.
  void add_products(const double* a, const double* b, index_t n);
  void add_products(const float* a, const float* b, index_t n);

  /// Normalises the words to 32 bits each.
  void finish() { carry(format_, words_); }

 private:
  /// After a block of products that is not narrow, this many blocks are not tried as narrow.
  /// @see split_narrow_products
  static constexpr int any_range_blocks = 63;

  void add_one(double value);
  void add_block(const double* x, index_t n);
  void add_slowly(const double* x, index_t n);
  void add_product_block(const double* a, const double* b, index_t n);
  void add_special(const double* a, const double* b, index_t n, double* products, double* errors);
  void count(index_t additions);

  ExactFormat format_;
  ExactWord* words_;
  int exponent_ = 0;        ///< 2^exponent_ was above all magnitudes of the last block
  int float_exponent_ = 0;  ///< the highest of the last block, biased as in a float
  int any_range_ = 0;       ///< remaining blocks of products that are not tried as narrow
  int wide_blocks_ = 0;     ///< remaining blocks that are split at four places right away
  int failures_ = 0;        ///< grows when three places do not suffice; reset when they do
  index_t additions_ = 0;   ///< since the words were last normalised
};

}  // namespace cleave::kernels

#if !CLEAVE_COMPILED
#include <cleave/kernels/host/exact_row_body.hpp>
#endif
