// Which elements of each field a rank reads to compute its part of a stencil, type-erased.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/ops/stencil/field_window.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/redistribute/needs.hpp>
#include <cleave/tensor/margin.hpp>

namespace cleave::detail {

/// The indices of the first field for which a stencil is computed: all, except where edges are
/// `none`.
///
/// @throws Error if periodic fields differ in extents, or have too few elements for edges `none`
inline Box stencil_domain(const char* name, std::span<const FieldWindow> fields,
                          const ErrorContext& context) {
  const auto fail = [&](int d, const std::string& message) {
    throw Error(name, "dimension " + std::to_string(d) + message, context);
  };
  Box domain = Box::of(fields[0].domain);
  for (const FieldWindow& field : fields)
    for (int d = 0; d < domain.dims(); ++d) {
      const index_t n = field.domain[d], lo = field.reach.lo[d], hi = field.reach.hi[d];
      const bool low = field.ends(d, 0), high = field.ends(d, 1);
      if (low) domain.begin[d] = std::max(domain.begin[d], -lo);
      if (high) domain.end[d] = std::min(domain.end[d], n - hi);
      if (field.edge(d, 0) == EdgeKind::periodic && n != fields[0].domain[d])
        fail(d, " is periodic, and the fields' extents " + std::to_string(fields[0].domain[d]) +
                    " and " + std::to_string(n) + " differ");
      if ((low && field.mirrors(d, 1) && n <= hi) || (high && field.mirrors(d, 0) && n <= -lo))
        fail(d, " has fewer elements than the stencil mirrors, and an edge `none`");
    }
  for (int d = 0; d < domain.dims(); ++d)
    if (domain.extent(d) < 0)
      fail(d, " with edges `none` has fewer elements than the stencil reads");
  return domain;
}

/// The reach in a dimension, with that of elements that an edge mirrors.
constexpr std::pair<index_t, index_t> exchanged_reach(const FieldWindow& field, int d) {
  const index_t lo = field.reach.lo[d], hi = field.reach.hi[d];
  return {field.mirrors(d, 1) && -hi < lo ? -hi : lo, field.mirrors(d, 0) && hi < -lo ? -lo : hi};
}

/// What a rank reads of a distributed field.
struct FieldNeeds {
  redistribution::Needs needs{};
  bool exchanges = false;  ///< whether elements of other ranks are read
};

/// @param layout   of the field and of the result
/// @param domain   the indices for which the stencil is computed
constexpr FieldNeeds field_needs(const FieldWindow& field, const Layout& layout,
                                 const Box& domain) {
  FieldNeeds result{{{layout}, {layout}, field.domain, field.domain}};
  redistribution::Needs& needs = result.needs;
  bool is_aligned = true;
  for (int d = 0; d < domain.dims(); ++d) {
    if (layout.sharding_axes(d) == 0) continue;
    const auto [lo, hi] = exchanged_reach(field, d);
    const bool is_periodic = field.edge(d, 0) == EdgeKind::periodic;
    needs.result_shape[d] = domain.extent(d);
    needs.maps[std::size_t(d)] = {1, 1, domain.begin[d] + lo, domain.begin[d] + hi,
                                  is_periodic ? Beyond::wrap : Beyond::clip};
    const bool fits = domain.begin[d] == 0 && domain.extent(d) == field.domain[d];
    is_aligned = is_aligned && fits;
    result.exchanges = result.exchanges || !fits || lo < 0 || hi > 0;
  }
  needs.own_in_place = is_aligned;
  needs.star = is_aligned && !field.reach.corners;
  return result;
}

/// The dimensions whose periodic images are found at the index in the domain: those that are not
/// exchanged.
constexpr unsigned wrapped_dims(const FieldNeeds& of, int dims) {
  unsigned wraps = 0;
  for (int d = 0; d < dims; ++d)
    if (!of.exchanges || of.needs.maps[std::size_t(d)].beyond == Beyond::clip) wraps |= 1u << d;
  return wraps;
}

/// The indices for which a field has memory: its own, and those of its margin.
inline Box room_of(const FieldWindow& field, const ReturnMargin& margin) {
  Box room = field.has;
  for (int d = 0; d < room.dims(); ++d)
    room.begin[d] -= margin.width[d], room.end[d] += margin.width[d];
  return room;
}
/// That memory.
inline View memory_of(const FieldWindow& field, const ReturnMargin& margin) {
  const DType dtype = field.elements.dtype;
  return {static_cast<std::byte*>(margin.first) -
              offset_of(margin.width, margin.strides) * index_t(size_of(dtype)),
          dtype, room_of(field, margin).extents(), margin.strides};
}

/// Whether the margin of a field has room for what is read and for what is received.
inline bool fits_margin(const FieldWindow& field, const ReturnMargin* margin, const Box& part,
                        const Box& received) {
  if (margin == nullptr || field.has.empty()) return false;
  const Box room = room_of(field, *margin);
  return room.contains(field.window(part)) && room.contains(received);
}

/// The indices of a box that are in the domain, or that an exchange has filled with periodic
/// images.
inline Box filled_part(const FieldWindow& field, const FieldNeeds& of, Box box) {
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
inline void fill_edges(FieldWindow& field, const View& memory, const Box& room, const Box& received,
                       const Box& part) {
  field.elements = memory[received.relative_to(room.begin)], field.has = received;
  const Box read = field.window(part);
  Box rest = read;
  const auto fill = [&](const Box& side) {
    if (!side.empty()) field.copy(side, memory[side.relative_to(room.begin)]);
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
  field.elements = memory[read.relative_to(room.begin)], field.has = read;
}

}  // namespace cleave::detail
