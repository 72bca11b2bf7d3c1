// How far several steps of a stencil read.
#pragma once

#include <algorithm>
#include <cstddef>

#include <cleave/ops/stencil/repeat_plan.hpp>
#include <cleave/ops/stencil/stencil_plan.hpp>

namespace cleave::inline v0::detail {

CLEAVE_INLINE RepeatPlan plan_repeat(const char* name, StencilFields& fields, std::size_t replaced,
                                     int steps, const Layout& layout, const ErrorContext& context) {
  const Shape& domain = fields.window[0].domain;
  if (!(fields.domain == Box::of(domain)))
    throw Error(name,
                "repeat requires edges other than `none`: each step has fewer elements than the "
                "one before",
                context);
  RepeatPlan plan{steps, Shape::filled(domain.dims, 0), Shape::filled(domain.dims, 0), 0};
  for (std::size_t k = 0; k < replaced; ++k) {
    const FieldWindow& field = fields.window[k];
    if (!(field.domain == domain))
      throw Error(name,
                  "repeat requires fields of equal extents where results replace them: " +
                      to_string(domain) + " and " + to_string(field.domain) + " differ",
                  context);
    for (int d = 0; d < domain.dims; ++d) {
      if (layout.sharding_axes(d) == 0) continue;
      const DimMap map = exchanged_map(field, d, {0, domain[d]});
      plan.lo[d] = std::min(plan.lo[d], map.lo), plan.hi[d] = std::max(plan.hi[d], map.hi);
      if (field.edge(d, 0) == EdgeKind::periodic) plan.images |= 1u << d;
    }
  }
  for (FieldWindow& field : fields.window) {
    for (int d = 0; d < domain.dims; ++d) {
      DimMap& map = field.reach.maps[std::size_t(d)];
      map.lo += (steps - 1) * plan.lo[d], map.hi += (steps - 1) * plan.hi[d];
    }
    field.reach.corners = field.reach.corners || steps > 1;
  }
  return plan;
}

CLEAVE_INLINE void exchange_ghosts_of_steps(const char* name, StencilFields& fields,
                                            const Layout& layout, const MeshState& mesh) {
  const GhostExchange exchange = prepare_ghosts(name, fields, layout, mesh);
  if (!exchange.reads.empty()) fields.read(name, exchange.reads, mesh);
  for (std::size_t k = 0; k < fields.window.size(); ++k) {
    FieldWindow& field = fields.window[k];
    if (fields.margin[k] == nullptr || field.has == exchange.filled[k]) continue;
    const Box room = room_of(field, *fields.margin[k]);
    field.elements =
        memory_of(field, *fields.margin[k])[exchange.filled[k].relative_to(room.begin)];
    field.has = exchange.filled[k];
  }
}

}  // namespace cleave::inline v0::detail
