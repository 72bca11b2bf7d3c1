// Cases on the host.
#include "gpu.hpp"

bool cleave::testing::lacks_gpu() { return false; }
