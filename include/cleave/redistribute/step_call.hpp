// A prepared collective of a step: its operands, its axes and its result.
//
// Primitives prepare calls; `execute` runs them one by one, `execute_all` those of several tensors
// in one round.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <cleave/comm/comm_scope.hpp>
#include <cleave/redistribute/block.hpp>

namespace cleave::inline v0::redistribution {

/// The transfers of a rank in one step.
struct Transfers {
  std::vector<Transfer> sends{};
  std::vector<Transfer> receives{};

  /// By peer.
  void sort() {
    for (std::vector<Transfer>* list : {&sends, &receives})
      std::sort(list->begin(), list->end(),
                [](const Transfer& a, const Transfer& b) { return a.peer < b.peer; });
  }
};

struct RunTransfers;

/// A collective over `context.mesh.group(axes)`. Owns the storage of its result; the caller owns
/// that of the source. Movable.
struct Call {
  CollectiveKind kind{};
  ReduceOp op{};
  AxisMask axes = 0;
  index_t global_count = 0;
  View source{};
  Block result{};
  std::vector<Box> pieces{};
  std::shared_ptr<const Transfers> transfers{};
  bool even = false;
  std::uint64_t detail = 0;
  /// Not null: the source is packed, and owned by this call; so is the result. @see finish
  std::shared_ptr<const RunTransfers> runs{};
  std::shared_ptr<void> packed{};

  /// The collective for a communicator to run; refers to this call.
  Collective collective(const Context& context) const {
    Collective c;
    c.kind = kind;
    c.op = op;
    c.source = source;
    c.destination = result.view;
    c.pieces = pieces;
    if (transfers != nullptr) c.sends = transfers->sends, c.receives = transfers->receives;
    c.global_count = global_count;
    c.even = even;
    c.detail = detail;
    c.operation = context.operation;
    c.site = cleave::detail::CommPlace::current().site;
    c.axes = context.mesh.label(axes).c_str();
    return c;
  }
};

}  // namespace cleave::inline v0::redistribution
