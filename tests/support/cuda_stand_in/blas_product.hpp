// Matrix products by loops: D = op(A) op(B) or D += op(A) op(B), for each batch.
#pragma once

#include <algorithm>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cuda_stand_in {

/// Column-major, as in cuBLASLt.
struct MatrixLayout {
  cudaDataType type;
  std::int64_t rows, cols, leading;
  std::int64_t batch_stride = 0;
  std::int32_t batches = 1;
};

/// Calls f(element, number) with zeros of a supported element type and of the type in which it is
/// computed.
template <class F>
auto with(cudaDataType type, F f) {
  switch (type) {
    case CUDA_R_16F: return f(__half(), float());
    case CUDA_R_16BF: return f(__nv_bfloat16(), float());
    case CUDA_R_64F: return f(double(), double());
    case CUDA_C_32F: return f(std::complex<float>(), std::complex<float>());
    case CUDA_C_64F: return f(std::complex<double>(), std::complex<double>());
    default: return f(float(), float());
  }
}

inline std::size_t bytes_of(cudaDataType type) {
  return with(type, [](auto element, auto) { return sizeof(element); });
}

/// A matrix or a batch of matrices.
struct Operand {
  void* data;
  std::size_t bytes;
  std::int64_t row_stride, col_stride, batch_stride;  ///< in elements

  Operand(const MatrixLayout& layout, const void* base, std::int32_t operation)
      : data(const_cast<void*>(base)),
        bytes(std::size_t(layout.batch_stride * (layout.batches - 1) +
                          (layout.cols - 1) * layout.leading + layout.rows) *
              bytes_of(layout.type)),
        row_stride(operation == CUBLAS_OP_N ? 1 : layout.leading),
        col_stride(operation == CUBLAS_OP_N ? layout.leading : 1),
        batch_stride(layout.batch_stride) {}

  template <class T>
  T& at(std::int64_t batch, std::int64_t row, std::int64_t col) const {
    return static_cast<T*>(data)[batch * batch_stride + row * row_stride + col * col_stride];
  }
};

/// A is m x k and B is k x n, after op; D is m x n.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batches = 1;
  const void* bias = nullptr;  ///< as many elements as D has rows, added to each column
  bool add = false;            ///< to D, which is rounded once
  bool tf32 = false;           ///< operands lose the last 13 bits of their mantissas
  bool split = false;          ///< k is halved, and the two sums are added in the type of D
};

/// Rounds to the nearest number with 10 mantissa bits, ties away from zero.
inline float round_to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  return std::bit_cast<float>(finite ? (bits + 0x1000u) & ~0x1fffu : bits);
}

/// The rows x cols elements of one matrix, row-major.
template <class T, class Number>
std::vector<Number> numbers(const Operand& operand, std::int64_t batch, std::int64_t rows,
                            std::int64_t cols, bool tf32) {
  std::vector<Number> result;
  result.reserve(std::size_t(rows * cols));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      result.push_back(Number(operand.at<T>(batch, i, j)));
      if constexpr (std::is_same_v<T, float>)
        if (tf32) result.back() = round_to_tf32(result.back());
    }
  return result;
}

template <class T, class Number>
void multiply(const Product& p, const Operand& first, const Operand& second, const Operand& d) {
  std::vector<Number> sums(std::size_t(p.n)), part(std::size_t(p.n));
  const std::int64_t ends[] = {p.split ? p.k / 2 : p.k, p.k};
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const auto a = numbers<T, Number>(first, batch, p.m, p.k, p.tf32);
    const auto b = numbers<T, Number>(second, batch, p.k, p.n, p.tf32);
    for (std::int64_t i = 0; i < p.m; ++i) {
      std::fill(sums.begin(), sums.end(), Number(0));
      for (std::int64_t l = 0; const std::int64_t end : ends) {
        std::fill(part.begin(), part.end(), Number(0));
        for (; l < end; ++l)
          for (std::int64_t j = 0; j < p.n; ++j)
            part[std::size_t(j)] += a[std::size_t(i * p.k + l)] * b[std::size_t(l * p.n + j)];
        for (std::size_t j = 0; j < part.size(); ++j)
          sums[j] += p.split ? Number(T(part[j])) : part[j];
      }
      for (std::int64_t j = 0; j < p.n; ++j) {
        Number sum = sums[std::size_t(j)];
        T& element = d.at<T>(batch, i, j);
        if (p.add) sum += Number(element);
        if (p.bias != nullptr) sum += Number(static_cast<const T*>(p.bias)[i]);
        element = T(sum);
      }
    }
  }
}

}  // namespace cuda_stand_in
