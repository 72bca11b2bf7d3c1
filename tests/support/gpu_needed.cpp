// Cases on a GPU.
#include <cleave/comm/world.hpp>
#include <cleave/tensor/cuda/device.hpp>

#include "gpu.hpp"

namespace cleave::testing {

bool lacks_gpu() { return cuda::device_count() == 0; }
void enter_gpu(World& world) { cuda::choose_device(world.communicator().state().local_rank); }

}  // namespace cleave::testing
