// The calls of an exchange of boxes.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/verify.hpp>
#include <cleave/core/error.hpp>
#include <cleave/redistribute/read_boxes.hpp>
#include <cleave/redistribute/step_call.hpp>
#include <cleave/redistribute/transfer_lists.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::redistribution {

/// The transfers of one operand.
struct NeedTransfers : Transfers {
  /// What all ranks of the group receive, estimated from one in the middle: the same on all ranks.
  index_t global_count = 0;
};

/// They are kept per mesh.
class NeedCache {
 public:
  std::shared_ptr<const NeedTransfers> transfers(const Needs& needs, const MeshState& mesh) {
    return lists_.get(needs, [&] {
      Shape middle = Shape::filled(mesh.extents().dims, 0);
      for (int a = 0; a < middle.dims; ++a)
        if (axes_of(needs) >> a & 1u) middle[a] = mesh.extents()[a] / 2;
      return NeedTransfers{
          need_transfers(needs, mesh.extents(), mesh.coordinate()),
          need_counts(needs, mesh.extents(), middle).elements * mesh.size(axes_of(needs))};
    });
  }

 private:
  TransferLists<Needs, NeedTransfers> lists_;
};

/// @throws Error unless a view has the extents of a box, or both are empty
inline void require_extents(const char* operation, const char* what, const Shape& expected,
                            const View& view, const MeshState& mesh) {
  if (view.extents == expected || (view.size() == 0 && expected.product() == 0)) return;
  throw Error(operation,
              std::string("the ") + what + " has extents " + to_string(view.extents) +
                  ", its box has " + to_string(expected),
              {.mesh = mesh.describe(), .rank = mesh.world_rank()});
}

template <class Device>
void read_boxes(const char* operation, std::span<const BoxRead> reads, const MeshState& mesh) {
  if (!mesh.is_member()) return;
  const Shape &extents = mesh.extents(), &at = mesh.coordinate();
  std::vector<Call> calls;
  std::vector<AxisMask> groups;  // each once
  for (const BoxRead& read : reads) {
    const Needs& needs = *read.needs;
    require_extents(operation, "part of an operand",
                    owned_box(needs.operand, needs.operand_shape, extents, at).extents(),
                    read.source, mesh);
    require_extents(operation, "destination", needs.box(extents, at).extents(), read.destination,
                    mesh);
    const auto transfers = mesh.cache<NeedCache>().transfers(needs, mesh);
    Call call{CollectiveKind::exchange, {},          axes_of(needs),
              transfers->global_count,  read.source, {nullptr, read.destination}};
    call.transfers = transfers;
    call.detail = checksum_detail(needs.checksum());
    if (std::find(groups.begin(), groups.end(), call.axes) == groups.end())
      groups.push_back(call.axes);
    calls.push_back(std::move(call));
  }
  const Context context{mesh, {}, operation};
  for (const AxisMask axes : groups) {
    std::vector<Collective> round;
    for (const Call& call : calls)
      if (call.axes == axes) round.push_back(call.collective(context));
    if (mesh.size(axes) > 1) {
      mesh.group(axes)->run_all(round);
      continue;
    }
    for (const Collective& c : round)
      for (const Transfer& t : c.receives)
        cleave::detail::copy_checked<Device>(c, c.source[t.source], c.destination[t.destination]);
  }
}

}  // namespace cleave::inline v0::redistribution
