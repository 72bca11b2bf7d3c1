// Whether the cases of a test executable run on a GPU: decided by which of two files is linked.
#pragma once

namespace cleave::inline v0 {
class World;
}

namespace cleave::testing {

/// Whether the cases of this program need a GPU and none is present.
bool lacks_gpu();

/// Starts a rank as `run` does: selects a device of the kind that the cases need.
void enter_gpu(World& world);

}  // namespace cleave::testing
