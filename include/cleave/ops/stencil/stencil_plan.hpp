// Which elements of each field a rank reads to compute its part of a stencil, without the types of
// the fields.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <cleave/core/config.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/stencil/field_window.hpp>
#include <cleave/placement/dim_map.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/redistribute/needs.hpp>
#include <cleave/redistribute/read_boxes.hpp>
#include <cleave/tensor/margin.hpp>

namespace cleave::inline v0::detail {

/// The fields of a call on this rank, and the indices for which it computes the stencil.
struct StencilFields {
  std::vector<FieldWindow> window{};
  std::size_t like = 0;                       ///< the field whose extents the results have
  std::vector<const ReturnMargin*> margin{};  ///< of each field; null: none
  std::vector<char> is_filled{};              ///< of each field: whether ghosts are in its window
  Box domain{};                               ///< of all ranks
  Box part{};                                 ///< of this rank
  std::vector<std::shared_ptr<void>> ghosts{};
  std::shared_ptr<void> (*allocate)(std::size_t bytes) = nullptr;  ///< on the fields' device
  void (*read)(const char* name, std::span<const redistribution::BoxRead> reads,
               const MeshState& mesh) = nullptr;  ///< read_boxes of that device

  // compiled once: calls of stencils are templates
  CLEAVE_INLINE StencilFields();
  CLEAVE_INLINE StencilFields(StencilFields&&) noexcept;
  CLEAVE_INLINE ~StencilFields();
  /// Adds a field. @param around  its margin, or null
  CLEAVE_INLINE void add(const FieldWindow& field, const ReturnMargin* around);
};

/// The indices for which a stencil is computed: all, except where edges are `none`.
///
/// @param like    the field whose extents the results have, or that is coarser or finer
/// @param target  extents of a target that may be coarser or finer than the fields; else no extents
/// @throws Error if periodic fields differ in extents, or have too few elements for edges `none`
CLEAVE_INLINE Box stencil_domain(const char* name, std::span<const FieldWindow> fields,
                                 std::size_t like, const Shape& target,
                                 const ErrorContext& context);

/// Checks a target of a stencil.
///
/// @param result  the extents of this rank's part of the result
CLEAVE_INLINE void check_stencil_target(const char* name, const ConstView& y, const Shape& result,
                                        std::span<const FieldWindow> fields);

/// Fills margins beyond the edges of the domain. @param filled  the indices that have elements
CLEAVE_INLINE void fill_margins(StencilFields& fields, std::span<const Box> filled);
/// The same for local fields.
CLEAVE_INLINE void fill_margins(StencilFields& fields);

/// What a rank reads of a distributed field.
struct FieldNeeds {
  redistribution::Needs needs{};
  bool exchanges = false;  ///< whether elements of other ranks are read
  bool is_aligned = true;  ///< whether the rank's part of the result is its part of the field
};

/// What is read in a dimension, with elements that an edge mirrors. @param results  all ranks'
constexpr DimMap exchanged_map(const FieldWindow& field, int d, IndexRange results) {
  DimMap map = field.reach.maps[std::size_t(d)];
  const index_t lo = floor_divide(map.lo, map.den), n = field.domain[d];
  const index_t hi = floor_divide(map.hi + map.den - 1, map.den);
  // an element farther than the last one of the field is mirrored as far before it
  const IndexRange at = image({map.num, map.den, 0, 0}, results);
  const index_t mirrored_lo = 2 * (n - at.end) - hi, mirrored_hi = -2 * at.begin - lo;
  if (field.mirrors(d, 1)) map.lo = std::min(map.lo, map.den * mirrored_lo);
  if (field.mirrors(d, 0)) map.hi = std::max(map.hi, map.den * mirrored_hi);
  return map;
}

/// Whether an element beyond an edge of a dimension is mirrored beyond an edge `none`.
constexpr bool mirrors_beyond_end(const FieldWindow& field, int d, index_t results) {
  const index_t n = field.domain[d];
  const IndexRange read = image(field.reach.maps[std::size_t(d)], {0, results});
  if (field.ends(d, 0) && field.mirrors(d, 1)) return read.end >= 2 * n;
  return field.ends(d, 1) && field.mirrors(d, 0) && -read.begin >= n;
}

/// The needs of one field.
///
/// @param layout   of the field and of the result
/// @param domain   the indices for which the stencil is computed
constexpr FieldNeeds field_needs(const FieldWindow& field, const Layout& layout,
                                 const Box& domain) {
  FieldNeeds result{{{layout}, {layout}, field.domain, field.domain}};
  redistribution::Needs& needs = result.needs;
  bool is_aligned = true;
  for (int d = 0; d < domain.dims(); ++d) {
    if (layout.sharding_axes(d) == 0) continue;
    DimMap map = exchanged_map(field, d, {domain.begin[d], domain.end[d]});
    const bool fits =
        map.num == 1 && map.den == 1 && domain.begin[d] == 0 && domain.extent(d) == field.domain[d];
    is_aligned = is_aligned && fits;
    result.exchanges = result.exchanges || !fits || map.lo < 0 || map.hi > 0;
    map.lo += map.num * domain.begin[d], map.hi += map.num * domain.begin[d];
    if (field.edge(d, 0) == EdgeKind::periodic) map.beyond = Beyond::wrap;
    needs.maps[std::size_t(d)] = map;
    needs.result_shape[d] = domain.extent(d);
  }
  result.is_aligned = is_aligned;
  needs.own_in_place = true;
  needs.star = is_aligned && !field.reach.corners;
  return result;
}

/// An exchange of what a rank's part of the result reads. Refers to the fields.
struct GhostExchange {
  std::vector<FieldNeeds> needs{};  ///< of each field
  std::vector<Box> filled{};        ///< of each field: the indices that have elements afterwards
  std::vector<redistribution::BoxRead> reads{};
};

/// Sets the rank's part of the domain and chooses where ghosts are received: in margins that have
/// room for them, else in buffers. Does not communicate.
///
/// @throws Error if a field has ghosts already, and the result is cut otherwise than the field
CLEAVE_INLINE GhostExchange prepare_ghosts(const char* name, StencilFields& fields,
                                           const Layout& layout, const MeshState& mesh);

/// Reads what this rank's part of the result needs of distributed fields.
/// @collective every rank of the mesh, if elements of other ranks are read
CLEAVE_INLINE void exchange_ghosts(const char* name, StencilFields& fields, const Layout& layout,
                                   const MeshState& mesh);

/// The indices for which a field has memory: its own, and those of its margin.
CLEAVE_INLINE Box room_of(const FieldWindow& field, const ReturnMargin& margin);
/// That memory.
CLEAVE_INLINE View memory_of(const FieldWindow& field, const ReturnMargin& margin);

}  // namespace cleave::inline v0::detail

#if !CLEAVE_COMPILED
#include <cleave/ops/stencil/stencil_plan_body.hpp>
#endif
