// Cases on the host.
#include "gpu.hpp"

namespace cleave::testing {

bool lacks_gpu() { return false; }
void enter_gpu(World&) {}

}  // namespace cleave::testing
