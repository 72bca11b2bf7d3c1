// The members of a group of functional collectives.
#pragma once

#include <cstdint>
#include <vector>

#include <cleave/functional.hpp>

#include "device.hpp"

namespace cleave::testing {

/// The world ranks of a group in group order, found by communicating over the group.
///
/// @param rank  this rank in the world
inline std::vector<int> members(const functional::Group& group, int rank) {
  const auto mine = Tensor<std::int64_t, 1>({1}, {rank}).to(TestDevice{});
  const Tensor<std::int64_t, 1> all = functional::all_gather(mine, 0, group)->to(Host{});
  return {all.data(), all.data() + all.size()};
}

}  // namespace cleave::testing
