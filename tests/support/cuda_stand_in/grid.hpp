// Runs a kernel: all threads of all blocks, one after the other, on one thread of the host.
//
// The threads of a block share a fiber until one of them stops at a barrier: it keeps the fiber,
// and the threads after it get another. A kernel without barriers thus costs a call per thread.
#pragma once

#include <functional>

#include <vector_types.h>

#include "stand_in.hpp"

namespace cuda_stand_in {

/// Runs `thread` for every thread of every block. The machine's lock is held, memory exposed.
/// @return what went wrong, upon which the rest of the grid was left out; empty if nothing did
std::string run_grid(dim3 grid, dim3 block, ThreadOrder order, const std::function<void()>& thread);

}  // namespace cuda_stand_in
