// Conflicts of groups as text.
#pragma once

#include <string>

#include <cleave/rules/groups.hpp>

namespace cleave::detail {

CLEAVE_INLINE std::string to_string(const GroupConflict& conflict, const std::string& axes) {
  return "dimension " + std::to_string(conflict.dim) + " of the " +
         (conflict.in_result ? "result" : "operand") + " is " + std::to_string(conflict.outer) +
         " x " + std::to_string(conflict.inner) + " and sharded over '" + axes +
         "', where shards end inside the factor " + std::to_string(conflict.inner) + ": " +
         std::to_string(conflict.outer) + " must be divisible by " +
         std::to_string(conflict.shards) + "; or redistribute that dimension to Replicate first";
}

}  // namespace cleave::detail
