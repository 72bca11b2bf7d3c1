// Operations whose result at an index depends on all indices before it: each rank computes its
// part, then receives the totals of the ranks before it and adds them.
//
//     // y[S0] = cumsum(x[S0], dim<0>{})    receives one slab of y per rank that has elements
//     before
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include <cleave/comm/verify.hpp>
#include <cleave/ops/engine/call_context.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/redistribute/step_call.hpp>

namespace cleave::inline v0::detail {

/// Receives the totals of the ranks before this one, and adds them to this rank's part.
///
/// @param y         this rank's part of the result, computed from its own elements
/// @param computed  the layout of the result
/// @param shape     its global extents
/// @collective every rank of the mesh; a rank outside returns at once
template <class Device>
void scan_across(const CallContext& call, const void* op, const Layout& computed,
                 const index_t* shape, const ArrayRef& y) {
  const MeshState& mesh = *call.mesh;
  const int d = call.info.scans;
  const AxisMask axes = computed.sharding_axes(d);
  if (!mesh.is_member() || mesh.size(axes) == 1) return;
  const bool is_reversed = call.info.scans_reversed(op);
  const int me = int(linear_index(mesh.extents(), mesh.coordinate(), axes));
  View slab{y.data, call.info.dtype[0], shape_at(y.extents, y.dims), shape_at(y.strides, y.dims)};
  const bool is_empty = slab.extents[d] == 0;
  if (!is_empty) {  // the total: the last index, or the first one
    Box last = Box::of(slab.extents);
    if (is_reversed) last.end[d] = 1;
    else last.begin[d] = last.end[d] - 1;
    slab = slab[last];
  }
  auto transfers = std::make_shared<redistribution::Transfers>();
  const Box whole = Box::of(slab.extents);
  index_t before = 0;  // the number of ranks with elements that come before rank r
  index_t mine = 0;
  const int ranks = int(mesh.size(axes)), first = is_reversed ? ranks - 1 : 0;
  for (int i = 0; i < ranks; ++i) {
    const int r = is_reversed ? first - i : i;
    const Box part =
        owned_box(computed, shape_at(shape, y.dims), mesh.extents(), mesh.member(axes, index_t(r)));
    if (part.extent(d) == 0 || is_empty) continue;
    Box place = whole;
    if (r == me) {
      mine = before;
    } else if (is_reversed ? r > me : r < me) {
      place.begin[d] = before, place.end[d] = before + 1;
      transfers->receives.push_back({r, whole, place});
    } else {
      place.begin[d] = mine, place.end[d] = mine + 1;
      transfers->sends.push_back({r, whole, place});
    }
    ++before;
  }
  Shape extents = slab.extents;
  extents[d] = mine;
  const redistribution::Block totals = redistribution::allocate<Device>(slab.dtype, extents);
  redistribution::Call exchange{CollectiveKind::exchange,          {},   axes,
                                shape_at(shape, y.dims).product(), slab, {nullptr, totals.view}};
  if (is_reversed) {
    std::reverse(transfers->sends.begin(), transfers->sends.end());
    std::reverse(transfers->receives.begin(), transfers->receives.end());
  }
  exchange.transfers = std::move(transfers);
  const Collective collective = exchange.collective({mesh, {}, call.info.name});
  mesh.group(axes)->run_all({&collective, 1});
  if (is_dry() || mine == 0 || slab.size() == 0) return;
  const Shape strides = totals.view.strides;
  call.info.add_totals(op, y, {totals.view.data, extents.begin(), strides.begin(), y.dims});
}

}  // namespace cleave::inline v0::detail
