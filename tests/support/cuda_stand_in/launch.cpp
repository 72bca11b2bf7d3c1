// Kernels on streams: CUDA's limits on a launch, and the operation that a launch enqueues.
#include <string>
#include <utility>

#include "entry.hpp"
#include "grid.hpp"
#include "include/cuda_runtime.h"

namespace cuda_stand_in {
namespace {

std::string shape(dim3 extents) {
  return std::to_string(extents.x) + 'x' + std::to_string(extents.y) + 'x' +
         std::to_string(extents.z);
}

bool within_limits(dim3 grid, dim3 block) {
  return grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && block.x >= 1 && block.y >= 1 &&
         block.z >= 1 && grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535 &&
         block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
         std::size_t(block.x) * block.y * block.z <= 1024;
}

constexpr std::size_t max_argument_bytes = 32764;

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& config, std::size_t argument_bytes,
                   std::function<void()> thread) {
  const dim3 grid = config.gridDim;
  const dim3 block = config.blockDim;
  const std::string text = "grid " + shape(grid) + " block " + shape(block);
  return entry(
      "cudaLaunchKernelEx", {.stream = config.stream, .detail = text}, [&](Context& context) {
        CUstream_st* stream = context.stream(config.stream);
        if (stream == nullptr || stream->device != &context.device)
          return cudaErrorInvalidResourceHandle;
        if (!within_limits(grid, block)) return cudaErrorInvalidConfiguration;
        if (argument_bytes > max_argument_bytes) return cudaErrorInvalidValue;
        if (config.dynamicSmemBytes != 0 || config.numAttrs != 0) return cudaErrorNotSupported;
        Machine& machine = context.machine;
        machine.enqueue(
            *stream, {.name = "kernel of " + text,
                      .body = [grid, block, text, &machine, thread = std::move(thread)] {
                        const std::string fault =
                            run_grid(grid, block, machine.settings.threads, thread);
                        if (!fault.empty())
                          machine.fail(cudaErrorLaunchFailure, "kernel of " + text + ": " + fault);
                      }});
        return cudaSuccess;
      });
}

}  // namespace cuda_stand_in
