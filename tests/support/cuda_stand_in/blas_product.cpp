#include "blas_product.hpp"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cuda_stand_in {
namespace {

template <class T>
T read(const void* base, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + index * std::int64_t(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* base, std::int64_t index, T value) {
  std::memcpy(static_cast<std::byte*>(base) + index * std::int64_t(sizeof(T)), &value, sizeof(T));
}

/// Reads an element of any type that converts to Number.
template <class Number>
Number load(cudaDataType type, const void* base, std::int64_t index) {
  if constexpr (std::is_floating_point_v<Number>) {
    switch (type) {
      case CUDA_R_16F: return Number(__half2float(__half(read<__half_raw>(base, index))));
      case CUDA_R_16BF:
        return Number(__bfloat162float(__nv_bfloat16(read<__nv_bfloat16_raw>(base, index))));
      case CUDA_R_32F: return Number(read<float>(base, index));
      default: return Number(read<double>(base, index));
    }
  } else {
    return read<Number>(base, index);
  }
}

template <class Number>
void store(cudaDataType type, void* base, std::int64_t index, Number value) {
  if constexpr (std::is_floating_point_v<Number>) {
    switch (type) {
      case CUDA_R_16F: write(base, index, __half_raw(__float2half_rn(float(value)))); break;
      case CUDA_R_16BF:
        write(base, index, __nv_bfloat16_raw(__float2bfloat16_rn(float(value))));
        break;
      case CUDA_R_32F: write(base, index, float(value)); break;
      default: write(base, index, double(value)); break;
    }
  } else {
    write(base, index, value);
  }
}

/// Rounds a number to the given element type.
template <class Number>
Number as_stored(cudaDataType type, Number value) {
  std::byte element[sizeof(Number)];
  store(type, element, 0, value);
  return load<Number>(type, element, 0);
}

/// Rounds to the nearest number with 10 mantissa bits, ties away from zero.
float round_to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  return std::bit_cast<float>(finite ? (bits + 0x1000u) & ~0x1fffu : bits);
}

template <class Number>
Number rounded(Number value, bool tf32) {
  if (!tf32) return value;
  if constexpr (std::is_same_v<Number, float>) return round_to_tf32(value);
  if constexpr (std::is_same_v<Number, std::complex<float>>)
    return {round_to_tf32(value.real()), round_to_tf32(value.imag())};
  return value;
}

/// The rows x cols elements of one batch, row-major.
template <class Number>
std::vector<Number> packed(const Operand& operand, std::int64_t batch, std::int64_t rows,
                           std::int64_t cols, bool tf32) {
  std::vector<Number> result;
  result.reserve(std::size_t(rows * cols));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      const auto value = load<Number>(operand.type, operand.base, operand.offset(batch, i, j));
      result.push_back(rounded(value, tf32));
    }
  return result;
}

template <class Number>
void compute_as(const Product& p) {
  std::vector<Number> sums(std::size_t(p.n)), part(std::size_t(p.n));
  const std::int64_t ends[] = {p.split ? p.k / 2 : p.k, p.k};
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const auto a = packed<Number>(p.a, batch, p.m, p.k, p.tf32);
    const auto b = packed<Number>(p.b, batch, p.k, p.n, p.tf32);
    for (std::int64_t i = 0; i < p.m; ++i) {
      std::fill(sums.begin(), sums.end(), Number(0));
      for (std::int64_t l = 0; const std::int64_t end : ends) {
        std::fill(part.begin(), part.end(), Number(0));
        for (; l < end; ++l) {
          const Number factor = a[std::size_t(i * p.k + l)];
          const Number* row = b.data() + l * p.n;
          for (std::int64_t j = 0; j < p.n; ++j) part[std::size_t(j)] += factor * row[j];
        }
        for (std::size_t j = 0; j < part.size(); ++j)
          sums[j] += p.split ? as_stored(p.d.type, part[j]) : part[j];
      }
      for (std::int64_t j = 0; j < p.n; ++j) {
        const std::int64_t at = p.d.offset(batch, i, j);
        if (p.add) sums[std::size_t(j)] += load<Number>(p.d.type, p.d.base, at);
        if (p.bias != nullptr) sums[std::size_t(j)] += load<Number>(p.d.type, p.bias, i);
        store(p.d.type, p.d.base, at, sums[std::size_t(j)]);
      }
    }
  }
}

}  // namespace

void Product::compute() const {
  switch (scale) {
    case CUDA_R_64F: return compute_as<double>(*this);
    case CUDA_C_32F: return compute_as<std::complex<float>>(*this);
    case CUDA_C_64F: return compute_as<std::complex<double>>(*this);
    default: return compute_as<float>(*this);
  }
}

bool is_number(cudaDataType scale, const void* factor, double number) {
  switch (scale) {
    case CUDA_R_64F: return read<double>(factor, 0) == number;
    case CUDA_C_32F: return read<std::complex<float>>(factor, 0) == float(number);
    case CUDA_C_64F: return read<std::complex<double>>(factor, 0) == number;
    default: return read<float>(factor, 0) == float(number);
  }
}

std::size_t bytes_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F: return 4;
    case CUDA_R_64F:
    case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    default: return 0;
  }
}

}  // namespace cuda_stand_in
