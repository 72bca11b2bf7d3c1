// One collective of a step, prepared: what to run, over which axes, and what it leaves behind.
//
// Primitives prepare calls; `execute` runs them alone, `execute_all` those of several tensors in
// one round.
#pragma once

#include <memory>
#include <vector>

#include <cleave/redistribute/block.hpp>

namespace cleave::redistribution {

/// What a rank sends and receives in one step.
struct Transfers {
  std::vector<Transfer> sends{};
  std::vector<Transfer> receives{};
};

/// A collective over `context.mesh.group(axes)`, with the storage of its result; that of the source
/// is the caller's. Can be moved.
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

  /// The value that a communicator runs; refers to this call.
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
    c.operation = context.operation;
    c.axes = context.mesh.label(axes).c_str();
    return c;
  }
};

}  // namespace cleave::redistribution
