// The arithmetic of matrix products, by loops: D = op(A) op(B), or D += op(A) op(B), for each
// batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include <library_types.h>

namespace cuda_stand_in {

/// A matrix or a batch of matrices.
struct Operand {
  void* base = nullptr;
  cudaDataType type{};
  std::int64_t row_stride = 0;  ///< in elements
  std::int64_t col_stride = 0;
  std::int64_t batch_stride = 0;

  std::int64_t offset(std::int64_t batch, std::int64_t row, std::int64_t col) const {
    return batch * batch_stride + row * row_stride + col * col_stride;
  }
};

/// A is m x k and B is k x n, after op; D is m x n.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batches = 1;
  Operand a, b, d;
  const void* bias = nullptr;  ///< as many elements as D has rows, added to each column
  cudaDataType scale{};
  bool add = false;    ///< to D, which is rounded once
  bool tf32 = false;   ///< operands lose the last 13 bits of their mantissas
  bool split = false;  ///< k is halved, and the two sums are added in the type of D

  /// Accumulates in the type `scale` says: float (also for half), double, or their complex types.
  void compute() const;
};

/// Whether a factor of the product equals `number`.
bool is_number(cudaDataType scale, const void* factor, double number);

/// Bytes of an element; 0 for a type that products do not support.
std::size_t bytes_of(cudaDataType type);

}  // namespace cuda_stand_in
