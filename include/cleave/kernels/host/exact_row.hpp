// Rows of numbers added to an exact sum: in blocks whose sum is found without rounding, by vectors of
// what the processor has; element by element where a block spans too many powers of two.
#pragma once

#include <cleave/core/config.hpp>
#include <cleave/kernels/exact_words.hpp>

namespace cleave::kernels {

/// Where rows are added. Refers to the words.
class ExactRows {
 public:
  /// Elements of a block.
  static constexpr index_t block = 1024;

  /// @param words  of one number in that format; set to 0
  ExactRows(const ExactFormat& format, ExactWord* words);

  /// Adds n numbers.
  void add(const double* row, index_t n);
  void add(const float* row, index_t n);

  /// Adds n products of two numbers.
  void add_products(const double* a, const double* b, index_t n);
  void add_products(const float* a, const float* b, index_t n);

  /// Brings the words to 32 bits each.
  void finish() { carry(format_, words_); }

 private:
  /// Blocks of products that are not taken for narrow after one that was not.
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
  int exponent_ = 0;        ///< of a power of two that was above the last block
  int float_exponent_ = 0;  ///< the highest of the last block, as floats store it
  int any_range_ = 0;       ///< blocks of products to come that are not taken for narrow
  int wide_blocks_ = 0;     ///< that are split at four places at once
  int failures_ = 0;        ///< how often, about, three did not do since they did
  index_t additions_ = 0;   ///< since words had 32 bits
};

}  // namespace cleave::kernels

#if !CLEAVE_COMPILED
#include <cleave/kernels/host/exact_row_body.hpp>
#endif
