// The exchange before operations that read beyond the rank's own part: each rank receives the box
// of every operand that its part of the result reads.
//
//     // a row above and below the own part, periodic:  x[S0,R] -> the box [begin - 1, end + 1)
//
// Receives |needed box - own box| elements, the lower bound, in one message for each pair of ranks,
// whatever the number of operands. Nothing is copied if the own part lies at its place in the box.
#pragma once

#include <span>

#include <cleave/mesh/mesh_state.hpp>
#include <cleave/redistribute/needs.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::redistribution {

/// One operand of `read_boxes`.
struct BoxRead {
  const Needs* needs;  ///< of an operand without partials; equal on all ranks
  View source;         ///< this rank's part of the operand
  View destination;    ///< of the extents of `needs->box`, whose begin is its first element
};

/// Reads the boxes that this rank's part of a result needs.
///
/// Elements beyond a clipped edge, and those that a star does not read, keep their values. With
/// `own_in_place` the source may be a window of the destination. Without an axis of several ranks
/// that shards the operand, this is a copy. To run asynchronously, use `mesh.duplicate()`.
///
/// @param operation  the function that the user called
/// @collective every rank of the mesh, with equal needs; a rank outside returns at once
/// @cost       receives `need_counts`; transfers are computed once per mesh and needs
/// @throws Error if the extents of a view are not those of its box; before it communicates
template <class Device>
void read_boxes(const char* operation, std::span<const BoxRead> reads, const MeshState& mesh);

}  // namespace cleave::inline v0::redistribution

#if !CLEAVE_COMPILED
#include <cleave/redistribute/read_boxes_body.hpp>
#endif
