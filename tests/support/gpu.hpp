// Test executables whose cases run on a GPU, and those that need none: which of two files they are
// linked with makes the difference.
#pragma once

namespace cleave {
class World;
}

namespace cleave::testing {

/// Whether the cases of this program need a GPU and there is none.
bool lacks_gpu();

/// What `run` does first on every rank: it takes a device of the kind that the cases need.
void enter_gpu(World& world);

}  // namespace cleave::testing
