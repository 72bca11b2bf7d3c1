// Selects the handler of an instruction.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "ptx_code.hpp"

namespace ptx {

struct Operation {
  Handler run = nullptr;
  std::uint8_t mode = 0;
};

/// By name: that of PTX without what `decode` reads, and with u for b in the type of bits.
using Operations = std::unordered_map<std::string, Operation>;

void add_arithmetic(Operations& all);
void add_accesses(Operations& all);
void add_exchanges(Operations& all);

void wait_at_barrier(Thread& thread, const Instruction& instruction);
void wait_at_warp(Thread& thread, const Instruction& instruction);
void branch(Thread& thread, const Instruction& instruction);

/// Sets what depends on the operation's name, "ld.global.v2.f32".
/// @return false if the instruction is outside the interpreted subset of PTX
bool decode(std::string_view name, Instruction& instruction);

template <class... T>
struct Types {};
using Bytes = Types<std::int8_t, std::uint8_t>;
using Integers =
    Types<std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
using Floats = Types<float, double>;

template <class... T, class F>
void for_each(Types<T...>, F&& f) {
  (f.template operator()<T>(), ...);
}

/// What names end in (section 5.2): ".u32".
template <class T>
std::string suffix() {
  const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 's' : 'u';
  return std::string(".") + kind + std::to_string(8 * sizeof(T));
}

}  // namespace ptx
