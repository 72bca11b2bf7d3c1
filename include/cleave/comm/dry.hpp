// The dry backend: one process stands for any rank of a world of any size, and nothing moves.
//
// For plans, bytes and memory of meshes that one does not have: traces see every collective;
// destinations keep whatever they held.
#pragma once

#include <concepts>
#include <memory>

#include <cleave/comm/communicator.hpp>

namespace cleave {

/// Rank `rank` of a world of `size` ranks that do not exist.
///
/// Calls are verified as far as one rank can, traced, and not executed.
/// @throws Error if there is no such rank
template <std::same_as<Communicator> Result = Communicator>
std::shared_ptr<Result> dry_communicator(int rank, int size);

}  // namespace cleave

#if !CLEAVE_COMPILED
#include <cleave/comm/dry_body.hpp>
#endif
