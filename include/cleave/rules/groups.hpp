// Sharded groups of factors: the shards of a dimension that is a product of factors must end where
// those of its first factor do; otherwise the operation cannot run on these placements.
//
// The check is arithmetic on global extents: all ranks get the same result, without communication.
#pragma once

#include <array>
#include <string>

#include <cleave/core/shape.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/rules/extents.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave::detail {

/// Whether the shards of [0, outer * inner) are those of [0, outer), each `inner` times as long.
///
/// @param parts  how many shards each axis makes; the axes apply one after the other
constexpr bool shards_agree(index_t outer, index_t inner, const index_t* parts, int axes) {
  if (axes == 0 || inner == 1) return true;
  index_t cut = 1;
  for (int a = 0; a < axes; ++a) cut *= parts[a];
  if (outer % cut == 0) return true;
  index_t before = -1;
  for (index_t part = 0; part < parts[0]; ++part) {
    const IndexRange whole = shard_range(outer * inner, parts[0], part);
    const IndexRange first = shard_range(outer, parts[0], part);
    if (whole.size() != first.size() * inner) return false;
    if (first.size() != before && !shards_agree(first.size(), inner, parts + 1, axes - 1))
      return false;
    before = first.size();
  }
  return true;
}

/// A group in whose inner factors a shard ends.
struct GroupConflict {
  bool found = false;
  bool in_result = false;
  int dim = 0;
  index_t outer = 0;   ///< extent of its first factor
  index_t inner = 0;   ///< product of the extents of the others
  index_t shards = 0;  ///< number of shards of the dimension
  unsigned axes = 0;   ///< bit a: axis a shards it
};

/// Looks for such a group among the dimensions of an operand or result.
constexpr GroupConflict find_group_conflict(const Rule::Operand& operand,
                                            const FactorExtents& extents, const Layout& layout,
                                            const Shape& mesh) {
  for (int d = 0; d < operand.dims; ++d) {
    if (!operand.is_group(d)) continue;
    GroupConflict conflict{
        true, false, d, extents[operand.factor[std::size_t(d)]], extents.inner_extent(operand, d),
        1,    0};
    std::array<index_t, std::size_t(max_axes)> parts{};
    int count = 0;
    for (int a = 0; a < layout.axes; ++a) {
      if (!layout[a].shards(d)) continue;
      parts[std::size_t(count++)] = mesh[a];
      conflict.shards *= mesh[a];
      conflict.axes |= 1u << a;
    }
    if (!shards_agree(conflict.outer, conflict.inner, parts.data(), count)) return conflict;
  }
  return {};
}

/// The same for all operands and results. @param operands  null: not distributed
constexpr GroupConflict find_group_conflict(const Rule& rule, const FactorExtents& extents,
                                            const Layout* const* operands, const Layout* results,
                                            const Shape& mesh) {
  for (int i = 0; i < rule.operands; ++i) {
    if (operands[i] == nullptr) continue;
    const GroupConflict conflict =
        find_group_conflict(rule.operand[std::size_t(i)], extents, *operands[i], mesh);
    if (conflict.found) return conflict;
  }
  for (int k = 0; k < rule.results; ++k) {
    GroupConflict conflict =
        find_group_conflict(rule.result[std::size_t(k)], extents, results[k], mesh);
    conflict.in_result = true;
    if (conflict.found) return conflict;
  }
  return {};
}

/// What is wrong, and what to do. @param axes  the names of `conflict.axes`
std::string to_string(const GroupConflict& conflict, const std::string& axes);

}  // namespace cleave::detail

#if !CLEAVE_COMPILED
#include <cleave/rules/groups_body.hpp>
#endif
