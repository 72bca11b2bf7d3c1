#include "arithmetic.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace nccl_stand_in {
namespace {

/// An element type as stored, and the number type it is computed in.
template <class T>
struct Plain {
  static constexpr std::size_t bytes = sizeof(T);
  using Number = T;
  static T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static void store(std::byte* to, T value) { std::memcpy(to, &value, sizeof value); }
};

template <class T>
struct Small {
  static constexpr std::size_t bytes = sizeof(T);
  using Number = float;
  static float load(const std::byte* from) {
    T value;
    std::memcpy(static_cast<void*>(&value), from, sizeof value);
    return float(value);
  }
  static void store(std::byte* to, float number) {
    const T value(number);
    std::memcpy(to, static_cast<const void*>(&value), sizeof value);
  }
};

/// Calls f with the description of the type.
template <class F>
void with(ncclDataType_t type, F f) {
  switch (type) {
    case ncclInt8: return f(Plain<std::int8_t>());
    case ncclUint8: return f(Plain<std::uint8_t>());
    case ncclInt32: return f(Plain<std::int32_t>());
    case ncclUint32: return f(Plain<std::uint32_t>());
    case ncclInt64: return f(Plain<std::int64_t>());
    case ncclUint64: return f(Plain<std::uint64_t>());
    case ncclFloat16: return f(Small<__half>());
    case ncclBfloat16: return f(Small<__nv_bfloat16>());
    case ncclFloat32: return f(Plain<float>());
    case ncclFloat64: return f(Plain<double>());
    default: return;
  }
}

/// Signed integers wrap around.
template <class Number, class F>
Number wrapping(Number a, Number b, F f) {
  if constexpr (std::is_integral_v<Number>) {
    return Number(f(std::uint64_t(a), std::uint64_t(b)));
  } else {
    return f(a, b);
  }
}

template <class Number>
Number combine(ncclRedOp_t op, Number a, Number b) {
  switch (op) {
    case ncclProd: return wrapping(a, b, [](auto x, auto y) { return x * y; });
    case ncclMax: return a < b ? b : a;
    case ncclMin: return b < a ? b : a;
    default: return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
}

}  // namespace

void reduce(ncclDataType_t type, ncclRedOp_t op, std::span<const std::byte* const> operands,
            std::size_t count, std::byte* result) {
  with(type, [&](auto element) {
    using Element = decltype(element);
    using Number = typename Element::Number;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = i * Element::bytes;
      Number number = Element::load(operands[0] + at);
      for (const std::byte* operand : operands.subspan(1))
        number = combine(op, number, Element::load(operand + at));
      if constexpr (std::is_integral_v<Number>)
        if (op == ncclAvg) number = Number(number / Number(operands.size()));
      Element::store(result + at, number);
    }
  });
}

void premultiply(ncclDataType_t type, const std::byte* scalar, std::byte* elements,
                 std::size_t count) {
  with(type, [&](auto element) {
    using Element = decltype(element);
    const auto factor = Element::load(scalar);
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* at = elements + i * Element::bytes;
      Element::store(at, combine(ncclProd, Element::load(at), factor));
    }
  });
}

bool reciprocal(ncclDataType_t type, int n, std::byte* element) {
  bool fractional = false;
  with(type, [&](auto description) {
    using Element = decltype(description);
    using Number = typename Element::Number;
    fractional = std::is_floating_point_v<Number>;
    if (fractional) Element::store(element, Number(1.0 / n));
  });
  return fractional;
}

}  // namespace nccl_stand_in
