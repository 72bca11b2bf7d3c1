// Cases on a GPU.
#include <cleave/tensor/cuda/device.hpp>

#include "gpu.hpp"

bool cleave::testing::lacks_gpu() { return cuda::device_count() == 0; }
