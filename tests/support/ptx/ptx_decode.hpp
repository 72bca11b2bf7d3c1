// Selects the handler of an instruction.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx_code.hpp"

namespace ptx {

/// An instruction as written: "ld.global.v2.f32" has the parts ld, global, v2, f32.
struct Written {
  std::vector<std::string_view> parts{};
  int braced_first = 0;  ///< elements of the vector in the place of the first operand
  int braced_last = 0;   ///< of the last one
  int operands = 0;      ///< slots that are used

  bool has(std::string_view part) const {
    for (const std::string_view p : parts)
      if (p == part) return true;
    return false;
  }
};

using Handlers = std::unordered_map<std::string, Handler>;

void add_integers(Handlers& handlers);
void add_floats(Handlers& handlers);
void add_conversions(Handlers& handlers);
void add_comparisons(Handlers& handlers);

/// Sets `run` and what depends on the operation's name.
/// @return false if the instruction is outside the interpreted subset of PTX
bool decode(const Written& written, Instruction& instruction);
/// The same for loads, stores and atomic operations.
bool decode_access(const Written& written, Instruction& instruction);
/// The same for barriers and exchanges between the threads of a warp.
bool decode_exchange(const Written& written, Instruction& instruction);

void wait_at_barrier(Thread& thread, const Instruction& instruction);
void wait_at_warp(Thread& thread, const Instruction& instruction);
void branch(Thread& thread, const Instruction& instruction);
void call(Thread& thread, const Instruction& instruction);

}  // namespace ptx
