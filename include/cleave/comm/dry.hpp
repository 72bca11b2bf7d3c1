// The dry backend: one process stands for any rank of a world of any size, and nothing moves.
//
// For plans, bytes and memory of meshes that one does not have: traces see every collective;
// destinations keep whatever they held.
#pragma once

#include <memory>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/config.hpp>

namespace cleave {

/// Rank `rank` of a world of `size` ranks that do not exist.
///
/// Calls are verified as far as one rank can, traced, and not executed.
/// @throws Error if there is no such rank
CLEAVE_INLINE std::shared_ptr<Communicator> dry_communicator(int rank, int size);

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/dry_body.hpp>
#endif
