// Placements as text.
#pragma once

#include <string>

#include <cleave/placement/placement.hpp>

namespace cleave {

CLEAVE_INLINE std::string to_string(const Placement& p) {
  switch (p.kind) {
    case PlacementKind::replicate: return "Replicate";
    case PlacementKind::shard: return "Shard(" + std::to_string(int(p.dim)) + ")";
    case PlacementKind::balanced: return "Balanced(" + std::to_string(int(p.dim)) + ")";
    case PlacementKind::block_cyclic:
      return "BlockCyclic(" + std::to_string(int(p.dim)) + ", " + std::to_string(p.number) + ")";
    case PlacementKind::owned:
      return "Owned(" + std::to_string(p.number) + ", " + std::to_string(int(p.dim)) + ")";
    case PlacementKind::partial: return std::string("Partial(") + name_of(p.op) + ")";
  }
  return {};
}

CLEAVE_INLINE std::string to_string(const Layout& layout) {
  std::string text = "(";
  for (int a = 0; a < layout.axes; ++a) text += (a ? ", " : "") + to_string(layout[a]);
  return text + ")";
}

}  // namespace cleave
