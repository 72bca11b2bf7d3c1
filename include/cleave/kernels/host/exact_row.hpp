// Adds rows of numbers to an exact sum: in blocks that vector instructions sum without rounding, or
// element by element if a block spans too many powers of two.
#pragma once

#include <cleave/core/config.hpp>
#include <cleave/kernels/exact_words.hpp>

namespace cleave::inline v0::kernels {

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
  template <bool Products, class T>
  void add_row(const T* a, const T* b, index_t n);
  template <bool Products, int Splits, class T>
  bool add_at_once(const T* a, const T* b, index_t n);
  template <bool Products, class T>
  void add_block(const T* a, const T* b, index_t n);
  void add_one(double value);
  void count(index_t additions);

  ExactFormat format_;
  ExactWord* words_;
  int exponent_ = 0;       ///< 2^exponent_ was above all magnitudes of the last block
  index_t additions_ = 0;  ///< since the words were last normalised
};

}  // namespace cleave::inline v0::kernels

#if !CLEAVE_COMPILED
#include <cleave/kernels/host/exact_row_body.hpp>
#endif
