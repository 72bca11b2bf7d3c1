// The extents of a call's results from those of its operands: the same constexpr arithmetic for
// calls that run, for traced graphs and for plans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <cleave/core/shape.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/rules/sharding_rule.hpp>

namespace cleave::inline v0::detail {

/// Extents of one operand: `dims` numbers.
struct ExtentsRef {
  const index_t* values;
  int dims;

  constexpr index_t operator[](int d) const { return values[d]; }
};

/// The extent of every factor of a rule, -1 where no operand has it.
struct FactorExtents {
  std::array<index_t, Rule::max_factors> of;

  constexpr index_t& operator[](int factor) { return of[std::size_t(factor)]; }
  constexpr index_t operator[](int factor) const { return of[std::size_t(factor)]; }

  /// The extents of an operand or result with these factors.
  constexpr Shape shape(const Rule::Operand& operand) const {
    Shape result;
    result.dims = operand.dims;
    for (int d = 0; d < operand.dims; ++d)
      result[d] = (*this)[operand.factor[std::size_t(d)]] * inner_extent(operand, d);
    return result;
  }

  /// The product of the extents of a group's factors without the first; 1 where there is no group.
  constexpr index_t inner_extent(const Rule::Operand& operand, int d) const {
    index_t n = 1;
    for (int f = 0; operand.inner[std::size_t(d)] >> f != 0; ++f)
      if (operand.inner[std::size_t(d)] >> f & 1u) n *= (*this)[f];
    return n;
  }
};

/// Where operands disagree about the extent of a factor; operand < 0: they agree.
struct ExtentsConflict {
  int operand = -1;
  int dim = 0;
  index_t expected = 0;
  bool repeats = false;  ///< whether an extent of 1 repeats anywhere
};

/// Reads the factors' extents from those of the operands, operand after operand. Those inside a
/// group do not follow from the group's extent: they are in `fresh`, and the operation has checked
/// their product.
///
/// @param broadcasts  whether extents of 1 repeat where another operand has more
/// @param fresh       extents of the factors that only results have, in the order of their letters
constexpr ExtentsConflict read_extents(const Rule& rule, bool broadcasts,
                                       const ExtentsRef* operands, const Shape& fresh,
                                       FactorExtents& extents) {
  bool is_repeated = false;
  for (int f = 0; f < rule.factors; ++f) extents[f] = -1;
  for (int i = 0; i < rule.operands; ++i) {
    const Rule::Operand& operand = rule.operand[std::size_t(i)];
    for (int d = 0; d < operand.dims; ++d) {
      if (operand.is_group(d)) continue;
      index_t& known = extents[operand.factor[std::size_t(d)]];
      const index_t extent = operands[i][d];
      if (known == extent) continue;
      if (known >= 0) {
        is_repeated = true;
        if (broadcasts && extent == 1) continue;
        if (!broadcasts || known != 1) return {i, d, known};
      }
      known = extent;
    }
  }
  int next = 0;
  for (int f = 0; f < rule.factors; ++f)
    if (extents[f] < 0) extents[f] = next < fresh.dims ? fresh[next++] : 0;
  return {.repeats = is_repeated};
}

/// Whether dimension d of operand i has extent 1 and repeats along a factor that is longer.
constexpr bool repeats(const Rule& rule, const FactorExtents& extents, int i, int d,
                       index_t extent) {
  return extent == 1 && extents[rule.operand[std::size_t(i)].factor[std::size_t(d)]] != 1;
}

/// The placements that operand i of a broadcasting rule requires: a dimension that repeats must be
/// replicated.
///
/// @param mesh      extents of the mesh; null: no axis is known to have only one rank
/// @param from      the placements of the operand
/// @param conflict  set to an axis on which the operand shards a dimension that repeats, for which
///                  no placement is possible; otherwise unchanged
constexpr Layout repeatable(const Rule& rule, const FactorExtents& extents, int i,
                            const ExtentsRef& shape, const Layout& from, Layout required,
                            const Shape* mesh, int& conflict) {
  for (int a = 0; a < required.axes; ++a) {
    if (!required[a].shards() || (mesh != nullptr && (*mesh)[a] == 1)) continue;
    const int d = required[a].dim;
    if (!repeats(rule, extents, i, d, shape[d])) continue;
    if (from[a] == required[a]) conflict = a;
    required[a] = Placement::replicate();
  }
  return required;
}

/// A dimension of an operand; operand < 0: none, and `dim` counts the extents that are new.
struct DimPlace {
  std::int8_t operand = -1;
  std::int8_t dim = 0;
};

/// What a rule says about extents if none repeats, as tables: which dimensions of operands must
/// agree, and from which one each dimension of a result takes its extent (none: it is new, or a
/// group).
struct ExtentsTable {
  static constexpr int max_pairs = 24;

  int pairs = 0;  ///< -1: more than the table can hold
  std::array<std::array<DimPlace, 2>, max_pairs> pair{};
  std::array<std::array<DimPlace, std::size_t(max_dims)>, std::size_t(max_results)> source{};

  constexpr explicit ExtentsTable(const Rule& rule) {
    std::array<DimPlace, Rule::max_factors> first{};
    for (int i = 0; i < rule.operands; ++i)
      for (int d = 0; d < rule.operand[std::size_t(i)].dims; ++d) {
        if (rule.operand[std::size_t(i)].is_group(d)) continue;
        const DimPlace here{std::int8_t(i), std::int8_t(d)};
        DimPlace& known = first[std::size_t(rule.operand[std::size_t(i)].factor[std::size_t(d)])];
        if (known.operand < 0) known = here;
        else if (pairs == max_pairs) pairs = -1;
        else if (pairs >= 0) pair[std::size_t(pairs++)] = {known, here};
      }
    std::array<DimPlace, Rule::max_factors> fresh{};
    std::array<bool, Rule::max_factors> seen{};
    std::int8_t count = 0;
    for (int k = 0; k < rule.results; ++k)
      for (int d = 0; d < rule.result[std::size_t(k)].dims; ++d) {
        DimPlace& from = source[std::size_t(k)][std::size_t(d)];
        const auto factor = std::size_t(rule.result[std::size_t(k)].factor[std::size_t(d)]);
        const bool is_group = rule.result[std::size_t(k)].is_group(d);
        if (!is_group && first[factor].operand >= 0) from = first[factor];
        else if (!is_group && seen[factor]) from = fresh[factor];
        else from.dim = count++, fresh[factor] = from, seen[factor] = true;
      }
  }
};

}  // namespace cleave::inline v0::detail
