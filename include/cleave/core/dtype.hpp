// Element types as values: what type-erased code (communicators, files, messages) sees of a T.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/half.hpp>

namespace cleave {

/// The element types of a tensor.
enum class DType : std::uint8_t {
  boolean,
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,   ///< std::complex<float>
  complex128,  ///< std::complex<double>
};

/// Bytes of one element.
constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::int8:
    case DType::uint8: return 1;
    case DType::float16:
    case DType::bfloat16: return 2;
    case DType::int32:
    case DType::uint32:
    case DType::float32: return 4;
    case DType::int64:
    case DType::uint64:
    case DType::float64:
    case DType::complex64: return 8;
    case DType::complex128: return 16;
  }
  return 0;
}

/// The name used in messages: "float32", "complex128", "bool".
constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::boolean: return "bool";
    case DType::int8: return "int8";
    case DType::uint8: return "uint8";
    case DType::int32: return "int32";
    case DType::uint32: return "uint32";
    case DType::int64: return "int64";
    case DType::uint64: return "uint64";
    case DType::float16: return "float16";
    case DType::bfloat16: return "bfloat16";
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::complex64: return "complex64";
    case DType::complex128: return "complex128";
  }
  return "unknown";
}

/// The same in short, as in "f32[3, 5]".
constexpr const char* short_name_of(DType type) {
  switch (type) {
    case DType::boolean: return "bool";
    case DType::int8: return "i8";
    case DType::uint8: return "u8";
    case DType::int32: return "i32";
    case DType::uint32: return "u32";
    case DType::int64: return "i64";
    case DType::uint64: return "u64";
    case DType::float16: return "f16";
    case DType::bfloat16: return "bf16";
    case DType::float32: return "f32";
    case DType::float64: return "f64";
    case DType::complex64: return "c64";
    case DType::complex128: return "c128";
  }
  return "unknown";
}

namespace detail {

template <class T>
inline constexpr int dtype_code = [] {
  if constexpr (std::is_same_v<T, bool>) return int(DType::boolean);
  else if constexpr (std::is_same_v<T, half>) return int(DType::float16);
  else if constexpr (std::is_same_v<T, bfloat16>) return int(DType::bfloat16);
  else if constexpr (std::is_same_v<T, float>) return int(DType::float32);
  else if constexpr (std::is_same_v<T, double>) return int(DType::float64);
  else if constexpr (std::is_same_v<T, std::complex<float>>) return int(DType::complex64);
  else if constexpr (std::is_same_v<T, std::complex<double>>) return int(DType::complex128);
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
    return int(std::is_signed_v<T> ? DType::int8 : DType::uint8);
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
    return int(std::is_signed_v<T> ? DType::int32 : DType::uint32);
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    return int(std::is_signed_v<T> ? DType::int64 : DType::uint64);
  else return -1;
}();

}  // namespace detail

/// A type that a tensor can hold.
template <class T>
concept Element = detail::dtype_code<T> >= 0;

/// The DType of a T.
template <class T>
constexpr DType dtype_of() {
  static_assert(Element<T>,
                "cleave: this element type is not supported (float, double, half, bfloat16, "
                "complex of float or double, integers of 8, 32 or 64 bits, bool)");
  return static_cast<DType>(detail::dtype_code<T>);
}

/// Calls `f.template operator()<T>()` with the T of a DType.
template <class F>
decltype(auto) visit_dtype(DType type, F&& f) {
  switch (type) {
    case DType::boolean: return f.template operator()<bool>();
    case DType::int8: return f.template operator()<std::int8_t>();
    case DType::uint8: return f.template operator()<std::uint8_t>();
    case DType::int32: return f.template operator()<std::int32_t>();
    case DType::uint32: return f.template operator()<std::uint32_t>();
    case DType::int64: return f.template operator()<std::int64_t>();
    case DType::uint64: return f.template operator()<std::uint64_t>();
    case DType::float16: return f.template operator()<half>();
    case DType::bfloat16: return f.template operator()<bfloat16>();
    case DType::float32: return f.template operator()<float>();
    case DType::complex64: return f.template operator()<std::complex<float>>();
    case DType::complex128: return f.template operator()<std::complex<double>>();
    case DType::float64: break;
  }
  return f.template operator()<double>();
}

namespace detail {

template <DType>
struct TypeOfDType;
template <>
struct TypeOfDType<DType::boolean> {
  using type = bool;
};
template <>
struct TypeOfDType<DType::int8> {
  using type = std::int8_t;
};
template <>
struct TypeOfDType<DType::uint8> {
  using type = std::uint8_t;
};
template <>
struct TypeOfDType<DType::int32> {
  using type = std::int32_t;
};
template <>
struct TypeOfDType<DType::uint32> {
  using type = std::uint32_t;
};
template <>
struct TypeOfDType<DType::int64> {
  using type = std::int64_t;
};
template <>
struct TypeOfDType<DType::uint64> {
  using type = std::uint64_t;
};
template <>
struct TypeOfDType<DType::float16> {
  using type = half;
};
template <>
struct TypeOfDType<DType::bfloat16> {
  using type = bfloat16;
};
template <>
struct TypeOfDType<DType::float32> {
  using type = float;
};
template <>
struct TypeOfDType<DType::float64> {
  using type = double;
};
template <>
struct TypeOfDType<DType::complex64> {
  using type = std::complex<float>;
};
template <>
struct TypeOfDType<DType::complex128> {
  using type = std::complex<double>;
};

}  // namespace detail

/// The T of a DType: one of several where types are alike, `std::int64_t` for `long` and
/// `long long`.
template <DType D>
using element_t = typename detail::TypeOfDType<D>::type;

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// The type sums of T are accumulated in: float for the 16-bit types, T for the others.
template <class T>
using accumulator_t =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

}  // namespace cleave
