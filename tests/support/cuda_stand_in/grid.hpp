// Runs a kernel: all threads of all blocks, one after the other, on one host thread.
//
// The threads of a block share a fiber until one of them stops at a barrier: that thread keeps the
// fiber, and the following threads get another. A kernel without barriers thus costs one call per
// thread.
#pragma once

#include <functional>

#include <vector_types.h>

#include "stand_in.hpp"

namespace cuda_stand_in {

/// Runs `thread` for every thread of every block. The machine's lock is held, memory is exposed.
/// @return an error message if a block failed, in which case the remaining blocks did not run; else
/// empty
std::string run_grid(dim3 grid, dim3 block, ThreadOrder order, const std::function<void()>& thread);

}  // namespace cuda_stand_in
