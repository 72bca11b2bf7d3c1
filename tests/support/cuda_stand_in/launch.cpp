// Kernels as nvcc compiled them: the calls by which its host code registers and launches them, and
// the operation that a launch enqueues. The PTX is taken out of the object file's fat binary.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <fatbinary_section.h>

#include "entry.hpp"
#include "ptx_grid.hpp"
#include "ptx_module.hpp"

namespace cuda_stand_in {
namespace {

/// The device code of one compiled source.
struct Binary {
  const std::byte* data;
  std::unique_ptr<ptx::Module> module{};  ///< made at the first launch
};

struct Kernel {
  Binary* binary;
  std::string name;
};

/// Of kernels, by the address of the function that launches them. Filled before main begins.
std::unordered_map<const void*, Kernel>& kernels() {
  static auto* const all = new std::unordered_map<const void*, Kernel>;
  return *all;
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// A fat binary is a header of 16 bytes, which ends with the bytes that follow, and entries. The
// header of an entry begins with its kind, 1 for PTX, a version, its own size and that of the text.
std::string ptx_of(const std::byte* data) {
  const std::byte* at = data + 16;
  for (const std::byte* const end = at + read<std::uint64_t>(data + 8); at < end;) {
    const auto header = read<std::uint32_t>(at + 4);
    const auto bytes = read<std::uint64_t>(at + 8);
    if (read<std::uint16_t>(at) == 1) {
      const std::string text(reinterpret_cast<const char*>(at + header), bytes);
      return text.substr(0, text.find('\0'));  // padded
    }
    at += header + bytes;
  }
  throw ptx::Fault("nvcc compiled no PTX: -gencode arch=..,code=compute_.. is missing");
}

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

/// Runs all blocks. The machine's lock is held, memory is exposed.
void run(ptx::Launch& launch, Machine& machine, const std::string& name) {
  std::mt19937 random(10);
  launch.memory = [&machine](std::uintptr_t address) {
    const Place place = machine.usable(reinterpret_cast<const void*>(address), 1);
    const auto begin = reinterpret_cast<std::uintptr_t>(place.begin);
    return ptx::Range{begin, place.block == nullptr ? begin : begin + place.block->size};
  };
  const ThreadOrder order = machine.settings.threads;
  if (order != ThreadOrder::forward)
    launch.reorder = [order, &random](std::span<std::uint32_t> numbers) {
      if (order == ThreadOrder::reversed) std::reverse(numbers.begin(), numbers.end());
      else std::shuffle(numbers.begin(), numbers.end(), random);
    };
  try {
    ptx::run(launch);
  } catch (const ptx::Fault& fault) {
    machine.fail(cudaErrorLaunchFailure, name + ": " + fault.what());
  }
}

ptx::Module& module_of(const Kernel& kernel) {
  auto& module = kernel.binary->module;
  if (module == nullptr) module = std::make_unique<ptx::Module>(ptx_of(kernel.binary->data));
  return *module;
}

cudaError_t launch(const Kernel& kernel, const cudaLaunchConfig_t& config, void** arguments) {
  const dim3 grid = config.gridDim;
  const dim3 block = config.blockDim;
  const std::string text = "grid " + shape(grid) + " block " + shape(block);
  return entry(
      "cudaLaunchKernelEx", {.stream = config.stream, .detail = text}, [&](Context& context) {
        CUstream_st* stream = context.stream(config.stream);
        if (stream == nullptr || stream->device != &context.device)
          return cudaErrorInvalidResourceHandle;
        if (!within_limits(grid, block)) return cudaErrorInvalidConfiguration;
        if (config.dynamicSmemBytes != 0 || config.numAttrs != 0) return cudaErrorNotSupported;
        Machine& machine = context.machine;
        ptx::Launch launch{.grid = {grid.x, grid.y, grid.z}, .block = {block.x, block.y, block.z}};
        try {
          launch.kernel = &module_of(kernel).kernel(kernel.name);
        } catch (const ptx::Fault& fault) {
          machine.report(kernel.name + ": " + fault.what() + '\n');
          return cudaErrorNotSupported;
        }
        if (launch.kernel->parameter_bytes > max_argument_bytes) return cudaErrorInvalidValue;
        launch.frame = ptx::frame_of(*launch.kernel, arguments);
        const std::string name = "kernel of " + text;
        machine.enqueue(*stream, {.name = name, .body = [launch, &machine, name]() mutable {
                                    run(launch, machine, name);
                                  }});
        return cudaSuccess;
      });
}

cudaLaunchConfig_t config_of(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
  return {grid, block, shared, stream, nullptr, 0};
}

/// What <<<..>>> passes to the function that launches a kernel.
cudaLaunchConfig_t& pushed() {
  thread_local cudaLaunchConfig_t config{};
  return config;
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  const auto found = kernels().find(function);
  if (found == kernels().end()) return remember(cudaErrorInvalidDeviceFunction);
  return launch(found->second, *config, arguments);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return entry("cudaFuncGetAttributes", {}, [&](Context&) {
    const auto found = kernels().find(function);
    if (found == kernels().end()) return cudaErrorInvalidDeviceFunction;
    *attributes = {};
    attributes->ptxVersion = attributes->binaryVersion = module_of(found->second).target();
    return cudaSuccess;
  });
}

// Declared by the code that nvcc generates (crt/host_runtime.h and crt/device_functions.h 13.0).
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  const auto* const data = static_cast<const __fatBinC_Wrapper_t*>(wrapper)->data;
  return reinterpret_cast<void**>(new Binary{reinterpret_cast<const std::byte*>(data)});
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}  // at exit; operations may still refer to it
void __cudaRegisterFunction(void** binary, const char* function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  kernels()[function] = {reinterpret_cast<Binary*>(binary), name};
}
// Device code finds its variables by their names.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream) {
  pushed() = config_of(grid, block, shared, stream);
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = pushed().gridDim;
  *block = pushed().blockDim;
  *shared = pushed().dynamicSmemBytes;
  *static_cast<cudaStream_t*>(stream) = pushed().stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  const auto found = kernels().find(function);
  if (found == kernels().end()) return remember(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(&found->second);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return launch(*reinterpret_cast<const Kernel*>(kernel), config_of(grid, block, shared, stream),
                arguments);
}

}  // extern "C"
