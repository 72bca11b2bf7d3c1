// The device whose tensors and meshes a test uses: the host, unless the test is compiled for CUDA.
#pragma once

#if defined(CLEAVE_TEST_CUDA)
#include <cleave/cuda.hpp>
#else
#include <cleave/tensor/storage.hpp>
#endif

namespace cleave::testing {

#if defined(CLEAVE_TEST_CUDA)
using TestDevice = Cuda;
#else
using TestDevice = Host;
#endif

}  // namespace cleave::testing

using cleave::testing::TestDevice;
