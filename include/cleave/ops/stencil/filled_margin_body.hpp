// The exchange of ghosts into the margin of a tensor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <cleave/ops/stencil/filled_margin.hpp>

namespace cleave::inline v0::detail {

/// What is read of a field whose elements are at the indices of the results.
CLEAVE_INLINE Reach reach_of_field(const FieldWindow& field) {
  Reach reach{field.domain.dims};
  for (int d = 0; d < reach.dims; ++d) {
    reach.lo[d] = int(field.reach.maps[std::size_t(d)].lo);
    reach.hi[d] = int(field.reach.maps[std::size_t(d)].hi);
  }
  reach.corners = field.reach.corners;
  return reach;
}

CLEAVE_INLINE Box FilledMargin::around(Box own) const {
  if (own.empty()) return own;
  for (int d = 0; d < own.dims(); ++d) own.begin[d] += reach.lo[d], own.end[d] += reach.hi[d];
  return own;
}

CLEAVE_INLINE void FilledMargin::require_unchanged(const char* name,
                                                   const std::shared_ptr<void>& storage,
                                                   unsigned now,
                                                   const ErrorContext& context) const {
  const ReturnMargin* const margin = std::get_deleter<ReturnMargin>(storage);
  if (margin == nullptr)
    throw Error(name, "a field of exchange_halo must have the placements of the first field",
                context);
  if (now != changes)
    throw Error(name,
                "the tensor was written after exchange_halo, so its ghosts are out of date; "
                "exchange it again",
                context);
  if (margin->fills != fills)
    throw Error(name,
                "the margin was filled again after this exchange_halo, by a stencil or by another "
                "exchange; use the last one",
                context);
}

CLEAVE_INLINE void use_filled_margin(const char* name, StencilFields& fields, std::size_t k,
                                     const FilledMargin& filled,
                                     const std::shared_ptr<void>& storage, unsigned now,
                                     const ErrorContext& context) {
  FieldWindow& field = fields.window[k];
  const Reach read = reach_of_field(field);
  if (!filled.reach.contains(read))
    throw Error(name,
                "field " + std::to_string(k) + " is read at " + to_string(read) +
                    ", but exchange_halo received " + to_string(filled.reach),
                context);
  filled.require_unchanged(name, storage, now, context);
  field.edges = filled.edges;
  fields.is_filled[k] = 1;
  const ReturnMargin& margin = *std::exchange(fields.margin[k], nullptr);
  if (field.has.empty() || field.has.contains(field.window(field.has))) return;
  const Box around = filled.around(field.has);
  field.elements = memory_of(field, margin)[around.relative_to(room_of(field, margin).begin)];
  field.has = around;
}

CLEAVE_INLINE void require_margin(const char* name, const StencilFields& fields,
                                  const FieldNeeds& needs, const ErrorContext& context) {
  const FieldWindow& field = fields.window[0];
  const ReturnMargin* const margin = fields.margin[0];
  for (int d = 0; d < field.domain.dims; ++d)
    if (mirrors_beyond_end(field, d, field.domain[d]))
      throw Error(name,
                  "dimension " + std::to_string(d) +
                      " has fewer elements than the margin mirrors, and an edge `none`",
                  context);
  if (margin == nullptr)
    throw Error(name, "the tensor has no margin; make it by a factory with margin(..)", context);
  bool fits = true;
  Shape required = Shape::filled(field.domain.dims, 0);
  for (int d = 0; d < required.dims; ++d) {
    const DimMap &read = field.reach.maps[std::size_t(d)],
                 &received = needs.needs.maps[std::size_t(d)];
    required[d] = std::max({-read.lo, read.hi, -received.lo, received.hi});
    fits = fits && required[d] <= margin->width[d];
  }
  if (!fits)
    throw Error(name,
                "the margin " + to_string(margin->width) + " is narrower than the ghosts " +
                    to_string(required),
                context);
}

CLEAVE_INLINE GhostExchange prepare_margin(const char* name, StencilFields& fields,
                                           const Layout& layout, const MeshState& mesh,
                                           const ErrorContext& context) {
  fields.domain = Box::of(fields.window[0].domain);
  require_margin(name, fields, field_needs(fields.window[0], layout, fields.domain), context);
  return prepare_ghosts(name, fields, layout, mesh);
}

CLEAVE_INLINE void fill_margin(const char* name, StencilFields& fields,
                               const ErrorContext& context) {
  fields.part = fields.domain = Box::of(fields.window[0].domain);
  require_margin(name, fields, {}, context);
  fill_margins(fields);
}

}  // namespace cleave::inline v0::detail
