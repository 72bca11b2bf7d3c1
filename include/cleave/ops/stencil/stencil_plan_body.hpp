// The domain of a stencil, the boxes that a rank reads, and where they are received.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/ops/stencil/stencil_plan.hpp>
#include <cleave/redistribute/needs.hpp>
#include <cleave/tensor/overlap.hpp>

namespace cleave::inline v0::detail {

CLEAVE_INLINE StencilFields::StencilFields() = default;
CLEAVE_INLINE StencilFields::StencilFields(StencilFields&&) noexcept = default;
CLEAVE_INLINE StencilFields::~StencilFields() = default;

CLEAVE_INLINE void StencilFields::add(const FieldWindow& field, const ReturnMargin* around) {
  window.push_back(field);
  margin.push_back(around);
  is_filled.push_back(0);
}

/// The extent of the result in a dimension: that of the first field, coarser or finer.
constexpr index_t natural_extent(const FieldWindow& first, int d) {
  const DimMap& map = first.reach.maps[std::size_t(d)];
  return -floor_divide(-map.den * first.domain[d], map.num);
}

CLEAVE_INLINE Box stencil_domain(const char* name, std::span<const FieldWindow> fields,
                                 std::size_t like, const Shape& target,
                                 const ErrorContext& context) {
  const auto fail = [&](int d, const std::string& message) {
    throw Error(name, "dimension " + std::to_string(d) + message, context);
  };
  const FieldWindow& first = fields[like];
  Box domain = Box::of(first.domain);
  for (int d = 0; d < domain.dims(); ++d) {
    bool ends = false;
    for (const FieldWindow& field : fields) ends = ends || field.ends(d, 0) || field.ends(d, 1);
    domain.end[d] = target.dims > 0 && !ends ? target[d] : natural_extent(first, d);
  }
  for (const FieldWindow& field : fields)
    for (int d = 0; d < domain.dims(); ++d) {
      const index_t n = field.domain[d];
      const bool low = field.ends(d, 0), high = field.ends(d, 1);
      const IndexRange inner = field.inner(d, {0, n});
      if (low) domain.begin[d] = std::max(domain.begin[d], inner.begin);
      if (high) domain.end[d] = std::min(domain.end[d], inner.end);
      if (field.edge(d, 0) == EdgeKind::periodic && n != first.domain[d] &&
          field.reach.is_aligned() && first.reach.is_aligned())
        fail(d, " is periodic, and the fields' extents " + std::to_string(first.domain[d]) +
                    " and " + std::to_string(n) + " differ");
      if (mirrors_beyond_end(field, d, domain.end[d]))
        fail(d, " has fewer elements than the stencil mirrors, and an edge `none`");
    }
  for (int d = 0; d < domain.dims(); ++d)
    if (domain.extent(d) < 0)
      fail(d, " with edges `none` has fewer elements than the stencil reads");
  return domain;
}

/// The dimensions whose periodic images are found at the index in the domain: those that are not
/// exchanged.
constexpr unsigned wrapped_dims(const FieldNeeds& of, int dims) {
  unsigned wraps = 0;
  for (int d = 0; d < dims; ++d)
    if (!of.exchanges || of.needs.maps[std::size_t(d)].beyond == Beyond::clip) wraps |= 1u << d;
  return wraps;
}

CLEAVE_INLINE Box room_of(const FieldWindow& field, const ReturnMargin& margin) {
  Box room = field.has;
  for (int d = 0; d < room.dims(); ++d)
    room.begin[d] -= margin.width[d], room.end[d] += margin.width[d];
  return room;
}

CLEAVE_INLINE View memory_of(const FieldWindow& field, const ReturnMargin& margin) {
  const DType dtype = field.elements.dtype;
  return {static_cast<std::byte*>(margin.first) -
              offset_of(margin.width, margin.strides) * index_t(size_of(dtype)),
          dtype, room_of(field, margin).extents(), margin.strides};
}

/// Whether the margin of a field has room for what is read and for what is received.
CLEAVE_INLINE bool fits_margin(const FieldWindow& field, const ReturnMargin* margin,
                               const Box& part, const Box& received) {
  if (margin == nullptr || field.has.empty()) return false;
  const Box room = room_of(field, *margin);
  return room.contains(field.window(part)) && room.contains(received);
}

/// The indices of a box that are in the domain, or that an exchange has filled with periodic
/// images.
CLEAVE_INLINE Box filled_part(const FieldWindow& field, const FieldNeeds& of, Box box) {
  for (int d = 0; d < box.dims(); ++d) {
    if (of.needs.maps[std::size_t(d)].beyond == Beyond::wrap) continue;
    box.begin[d] = std::max(box.begin[d], index_t(0));
    box.end[d] = std::min(box.end[d], field.domain[d]);
  }
  return box;
}

/// Fills the part of a margin that is beyond edges of the domain: all that is read then lies in
/// place.
///
/// @param memory    with the indices `room`
/// @param received  the indices that are filled
CLEAVE_INLINE void fill_edges(FieldWindow& field, const View& memory, const Box& room,
                              const Box& received, const Box& part) {
  field.elements = memory[received.relative_to(room.begin)], field.has = received;
  Box read = field.window(part);
  for (int d = 0; d < read.dims(); ++d) {
    if (field.ends(d, 0)) read.begin[d] = std::max(read.begin[d], index_t(0));
    if (field.ends(d, 1)) read.end[d] = std::min(read.end[d], field.domain[d]);
  }
  Box rest = read;
  std::vector<FilledBox> sides;
  const auto fill = [&](const Box& side) {
    if (!side.empty()) sides.push_back({side, memory[side.relative_to(room.begin)]});
  };
  for (int d = 0; d < rest.dims(); ++d) {
    Box side = rest;
    side.end[d] = std::min(rest.end[d], received.begin[d]);
    fill(side);
    side = rest;
    side.begin[d] = std::max(rest.begin[d], received.end[d]);
    fill(side);
    rest.begin[d] = std::max(rest.begin[d], received.begin[d]);
    rest.end[d] = std::min(rest.end[d], received.end[d]);
  }
  field.fill(field, sides);
  field.elements = memory[read.relative_to(room.begin)], field.has = read;
}

CLEAVE_INLINE void check_stencil_target(const char* name, const ConstView& y, const Shape& result,
                                        std::span<const FieldWindow> fields) {
  if (!(y.extents == result))
    throw Error(name, "extents differ: the result has " + to_string(result),
                {.shapes = to_string(y.extents)});
  require_distinct_elements(name, y);
  for (const FieldWindow& field : fields) {
    bool reads_neighbours = !field.reach.is_aligned();
    for (int d = 0; d < result.dims; ++d) {
      const DimMap& map = field.reach.maps[std::size_t(d)];
      reads_neighbours = reads_neighbours || map.lo < 0 || map.hi > 0;
    }
    if (!reads_neighbours && same_elements(y, field.elements)) continue;
    if (overlap(y, field.elements))
      throw Error(name, "the target shares elements with a field whose neighbours are read",
                  {.shapes = to_string(result)});
  }
}

CLEAVE_INLINE void fill_margins(StencilFields& fields, std::span<const Box> filled) {
  for (std::size_t k = 0; k < fields.window.size(); ++k) {
    FieldWindow& field = fields.window[k];
    const ReturnMargin* const margin = fields.margin[k];
    if (margin == nullptr || field.has.contains(field.window(fields.part))) continue;
    fill_edges(field, memory_of(field, *margin), room_of(field, *margin), filled[k], fields.part);
  }
}

/// Keeps the margin of a field if elements are to be written to it, and notes that they are.
///
/// @param received  the indices that are received
CLEAVE_INLINE void claim_margin(StencilFields& fields, std::size_t k, const Box& received) {
  const FieldWindow& field = fields.window[k];
  const bool is_written =
      !field.has.contains(received) || !field.has.contains(field.window(fields.part));
  if (is_written && fits_margin(field, fields.margin[k], fields.part, received))
    ++fields.margin[k]->fills;
  else fields.margin[k] = nullptr;
}

CLEAVE_INLINE void fill_margins(StencilFields& fields) {
  std::vector<Box> filled;
  for (std::size_t k = 0; k < fields.window.size(); ++k) {
    filled.push_back(fields.window[k].has);
    if (fields.is_filled[k] == 0) claim_margin(fields, k, fields.window[k].has);
  }
  fill_margins(fields, filled);
}

CLEAVE_INLINE GhostExchange prepare_ghosts(const char* name, StencilFields& fields,
                                           const Layout& layout, const MeshState& mesh) {
  const Shape& at = mesh.coordinate();
  const std::size_t count = fields.window.size();
  GhostExchange exchange{std::vector<FieldNeeds>(count), std::vector<Box>(count), {}};
  fields.part = redistribution::shifted(
      owned_box(layout, fields.domain.extents(), mesh.extents(), at), fields.domain.begin);
  for (std::size_t k = 0; k < count; ++k) {
    FieldWindow& field = fields.window[k];
    FieldNeeds& needs = exchange.needs[k];
    needs = field_needs(field, layout, fields.domain);
    if (fields.is_filled[k] != 0) {
      if (!needs.is_aligned)
        throw Error(name,
                    "edges are `none` in a sharded dimension: the result is cut otherwise than a "
                    "field of exchange_halo, whose ghosts do not suffice; pass the field itself",
                    {.shapes = to_string(field.domain),
                     .mesh = mesh.describe(),
                     .rank = mesh.world_rank()});
      exchange.filled[k] = field.has;
      continue;
    }
    field.wraps = wrapped_dims(needs, fields.domain.dims());
    exchange.filled[k] = field.has;
    if (!needs.exchanges) {
      claim_margin(fields, k, field.has);
      continue;
    }
    const Box box = needs.needs.box(mesh.extents(), at);
    const DType dtype = field.elements.dtype;
    exchange.filled[k] = filled_part(field, needs, box);
    claim_margin(fields, k, box);
    View received;
    if (fields.margin[k] == nullptr) {
      fields.ghosts.push_back(
          fields.allocate(checked_bytes(box.extents().begin(), box.dims(), size_of(dtype))));
      received = View::dense(fields.ghosts.back().get(), dtype, box.extents());
    } else {
      received = memory_of(
          field, *fields.margin[k])[box.relative_to(room_of(field, *fields.margin[k]).begin)];
    }
    exchange.reads.push_back({&needs.needs,
                              {const_cast<void*>(field.elements.data), dtype,
                               field.elements.extents, field.elements.strides},
                              received});
    if (fields.margin[k] == nullptr) field.ghosts = received, field.ghost_box = box;
  }
  return exchange;
}

CLEAVE_INLINE void exchange_ghosts(const char* name, StencilFields& fields, const Layout& layout,
                                   const MeshState& mesh) {
  const GhostExchange exchange = prepare_ghosts(name, fields, layout, mesh);
  if (!exchange.reads.empty()) fields.read(name, exchange.reads, mesh);
  fill_margins(fields, exchange.filled);
}

}  // namespace cleave::inline v0::detail
