// Where an exchange of ghosts overlaps with the computation.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include <cleave/ops/stencil/overlap_ghosts.hpp>
#include <cleave/redistribute/cost.hpp>
#include <cleave/redistribute/needs.hpp>
#include <cleave/redistribute/plan_cache.hpp>
#include <cleave/redistribute/read_boxes.hpp>

namespace cleave::detail {

/// The same on all ranks.
CLEAVE_INLINE bool overlap_pays(const GhostExchange& exchange, const StencilFields& fields,
                                const Layout& layout, const MeshState& mesh) {
  if (exchange.reads.empty() || !mesh.group().concurrent()) return false;
  const CostModel model = cost_model(mesh.group());
  AxisMask axes = 0;
  for (const redistribution::BoxRead& read : exchange.reads)
    axes |= redistribution::axes_of(*read.needs);
  if (!redistribution::crosses_nodes(axes, mesh.extents(), model.ranks_per_node)) return false;
  Shape middle = Shape::filled(mesh.extents().dims, 0);
  for (int a = 0; a < middle.dims; ++a)
    if (axes >> a & 1u) middle[a] = mesh.extents()[a] / 2;
  double received = 0, computed = 0;
  const Box part = owned_box(layout, fields.domain.extents(), mesh.extents(),
                             Shape::filled(mesh.extents().dims, 0));
  for (std::size_t k = 0; k < fields.window.size(); ++k) {
    const auto bytes = double(size_of(fields.window[k].elements.dtype));
    computed += bytes * double(part.volume());
    if (exchange.needs[k].exchanges)
      received += bytes * double(redistribution::need_counts(exchange.needs[k].needs,
                                                             mesh.extents(), middle)
                                     .elements);
  }
  constexpr OverlapLimits limits;
  return computed / limits.bytes_per_us >= limits.least_us &&
         estimated_us(axes, mesh.extents(), received, model) >= limits.least_us;
}

CLEAVE_INLINE void exchange_or_start(const char* name, StencilFields& fields, const Layout& layout,
                                     const MeshState& mesh) {
  GhostExchange exchange = prepare_ghosts(name, fields, layout, mesh);
  const bool on_host = fields.read == &redistribution::read_boxes<Host>;
  if (on_host && overlap_pays(exchange, fields, layout, mesh)) {
    fields.arriving = std::make_shared<ArrivingGhosts>(ArrivingGhosts{std::move(exchange)});
    const auto& reads = fields.arriving->exchange.reads;
    fields.arriving->received.emplace(
        start_async(Host{}, mesh.group(), [name, &reads, duplicate = mesh.duplicate()] {
          redistribution::read_boxes<Host>(name, reads, *duplicate);
          return true;
        }));
    return;
  }
  if (!exchange.reads.empty()) fields.read(name, exchange.reads, mesh);
  fill_margins(fields, exchange.filled);
}

CLEAVE_INLINE Box inner_results(const StencilFields& fields) {
  Box inner = fields.part;
  for (const FieldWindow& field : fields.window) inner = field.inner(inner);
  if (!inner.empty()) return inner;
  inner.end = inner.begin = fields.part.begin;
  return inner;
}

CLEAVE_INLINE void finish_exchange(StencilFields& fields) {
  fields.arriving->received->wait();
  fill_margins(fields, fields.arriving->exchange.filled);
  fields.arriving = nullptr;
}

}  // namespace cleave::detail
