// Expands graphs whose extents contain symbols: now for a sample, later for the extents of a run.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/placement/placement.hpp>
#include <cleave/spmd/graph.hpp>
#include <cleave/spmd/program.hpp>
#include <cleave/spmd/remake.hpp>

namespace cleave::inline v0::spmd::detail {

/// Expands now for a sample, and again for the extents of a run.
/// Outputs have the same placements for all extents.
///
/// @param place  expands a graph: place(graph, placements of outputs, or none)
template <AnyGraph G, class Place>
Program expand_symbolic(const G& graph, const Place& place) {
  Program program = place(graph, std::vector<Layout>{});
  std::vector<Layout> outputs;
  for (const Output& output : program.outputs)
    outputs.push_back(program.values[std::size_t(output.value)].layout);
  const auto again = [place, outputs, made = remaking(graph)] { return place(made(), outputs); };
  if (BoundSymbols::innermost() != nullptr) return again();
  program.remake = Remake<Program>(again);
  return program;
}

}  // namespace cleave::inline v0::spmd::detail
