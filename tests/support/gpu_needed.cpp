// Cases on a GPU.
#include <cleave/comm/device/rank_device.hpp>
#include <cleave/comm/world.hpp>

#include "gpu.hpp"

namespace cleave::testing {

bool lacks_gpu() { return cuda::device_count() == 0; }
void enter_gpu(World& world) { enter_device(Cuda{}, world.communicator()); }

}  // namespace cleave::testing
