// Reports accesses to protected device memory with a message, then stops the program.
#pragma once

#include <cstddef>

namespace cuda_stand_in {

/// Guards a range of addresses from now on.
void guard_range(const void* begin, std::size_t bytes);

/// Installs the signal handler, or reinstalls it if another handler has replaced it.
void keep_guard();

}  // namespace cuda_stand_in
