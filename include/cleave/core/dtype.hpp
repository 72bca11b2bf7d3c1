// Element types as values, for type-erased code (communicators, files, messages).
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <type_traits>

#include <cleave/core/config.hpp>
#include <cleave/core/float8.hpp>
#include <cleave/core/half.hpp>

namespace cleave::inline v0 {

/// The element types of a tensor.
enum class DType : std::uint8_t {
  boolean,
  int8,
  uint8,
  int16,
  uint16,
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
  float8_e4m3,
  float8_e5m2,
};

namespace detail {

struct DTypeFacts {
  std::uint8_t bytes;
  const char* name;
  const char* short_name;
};

/// In the order of DType.
inline constexpr DTypeFacts dtype_facts[] = {
    {1, "bool", "bool"},
    {1, "int8", "i8"},
    {1, "uint8", "u8"},
    {2, "int16", "i16"},
    {2, "uint16", "u16"},
    {4, "int32", "i32"},
    {4, "uint32", "u32"},
    {8, "int64", "i64"},
    {8, "uint64", "u64"},
    {2, "float16", "f16"},
    {2, "bfloat16", "bf16"},
    {4, "float32", "f32"},
    {8, "float64", "f64"},
    {8, "complex64", "c64"},
    {16, "complex128", "c128"},
    {1, "float8_e4m3", "f8_e4m3"},
    {1, "float8_e5m2", "f8_e5m2"},
};

}  // namespace detail

/// Bytes of one element.
constexpr std::size_t size_of(DType type) { return detail::dtype_facts[int(type)].bytes; }

/// The name used in messages: "float32", "complex128", "bool".
constexpr const char* name_of(DType type) { return detail::dtype_facts[int(type)].name; }

/// The same in short, as in "f32[3, 5]".
constexpr const char* short_name_of(DType type) {
  return detail::dtype_facts[int(type)].short_name;
}

namespace detail {

/// In the order of DType.
using ElementTypes =
    std::tuple<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
               std::uint32_t, std::int64_t, std::uint64_t, half, bfloat16, float, double,
               std::complex<float>, std::complex<double>, float8_e4m3, float8_e5m2>;
static_assert(std::tuple_size_v<ElementTypes> == std::size(dtype_facts));

template <class T>
inline constexpr int dtype_code = [] {
  if constexpr (std::is_same_v<T, bool>) return int(DType::boolean);
  else if constexpr (std::is_same_v<T, half>) return int(DType::float16);
  else if constexpr (std::is_same_v<T, bfloat16>) return int(DType::bfloat16);
  else if constexpr (std::is_same_v<T, float>) return int(DType::float32);
  else if constexpr (std::is_same_v<T, double>) return int(DType::float64);
  else if constexpr (std::is_same_v<T, std::complex<float>>) return int(DType::complex64);
  else if constexpr (std::is_same_v<T, std::complex<double>>) return int(DType::complex128);
  else if constexpr (std::is_same_v<T, float8_e4m3>) return int(DType::float8_e4m3);
  else if constexpr (std::is_same_v<T, float8_e5m2>) return int(DType::float8_e5m2);
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
    return int(std::is_signed_v<T> ? DType::int8 : DType::uint8);
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
    return int(std::is_signed_v<T> ? DType::int16 : DType::uint16);
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
                "float8_e4m3, float8_e5m2, complex of float or double, integers of 8, 16, 32 or 64 "
                "bits, bool)");
  return static_cast<DType>(detail::dtype_code<T>);
}

/// Calls `f.template operator()<T>()` with the T of a DType.
template <class F>
decltype(auto) visit_dtype(DType type, F&& f) {
  switch (type) {
    case DType::boolean: return f.template operator()<bool>();
    case DType::int8: return f.template operator()<std::int8_t>();
    case DType::uint8: return f.template operator()<std::uint8_t>();
    case DType::int16: return f.template operator()<std::int16_t>();
    case DType::uint16: return f.template operator()<std::uint16_t>();
    case DType::int32: return f.template operator()<std::int32_t>();
    case DType::uint32: return f.template operator()<std::uint32_t>();
    case DType::int64: return f.template operator()<std::int64_t>();
    case DType::uint64: return f.template operator()<std::uint64_t>();
    case DType::float16: return f.template operator()<half>();
    case DType::bfloat16: return f.template operator()<bfloat16>();
    case DType::float32: return f.template operator()<float>();
    case DType::complex64: return f.template operator()<std::complex<float>>();
    case DType::complex128: return f.template operator()<std::complex<double>>();
    case DType::float8_e4m3: return f.template operator()<float8_e4m3>();
    case DType::float8_e5m2: return f.template operator()<float8_e5m2>();
    case DType::float64: break;
  }
  return f.template operator()<double>();
}

/// The T of a DType; if several types share the DType, one of them: `std::int64_t` for `long` and
/// `long long`.
template <DType D>
using element_t = std::tuple_element_t<std::size_t(D), detail::ElementTypes>;

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// The type in which sums of T are accumulated: float for floats of 8 and 16 bits, T for the
/// others.
template <class T>
using accumulator_t =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16> || is_float8<T>,
                       float, T>;

}  // namespace cleave::inline v0
