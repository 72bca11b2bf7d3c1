// Entry points of the runtime: device memory, allocated immediately and in stream order, pools,
// pinned host memory, and pointer attributes.
#include <cstdlib>
#include <span>
#include <string>

#include "capture.hpp"
#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

// Allocates memory. If there is no room, runs enqueued operations that may free some, as pools wait
// for other streams by default (driver_types.h 13.0, cudaMemPoolReuseAllowInternalDependencies).
void* take(Machine& machine, CUmemPoolHandle_st& pool, std::size_t bytes) {
  if (void* address = machine.memory.allocate(pool, bytes)) return address;
  machine.run_ready();
  machine.memory.hide();
  return machine.memory.allocate(pool, bytes);
}

cudaError_t allocate_in_order(const char* function, void** result, std::size_t bytes,
                              cudaMemPool_t pool, cudaStream_t handle) {
  return entry(function, {.stream = handle, .bytes = bytes}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaErrorInvalidValue;
    Memory& memory = context.machine.memory;
    void* address =
        take(context.machine, pool != nullptr ? *pool : stream->device->pools[1], bytes);
    if (address == nullptr) return cudaErrorMemoryAllocation;
    if (stream->capture != nullptr) {
      memory.live(address)->of_graph = true;
      stream->capture->graph()->allocations.push_back(address);
    }
    context.machine.enqueue(*stream, {.name = "allocation of " + std::to_string(bytes) + " bytes",
                                      .body = [&memory, address] { memory.begin(address); },
                                      .bookkeeping = true});
    *result = address;
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaMalloc(void** result, std::size_t bytes) {
  return entry("cudaMalloc", {.bytes = bytes}, [&](Context& context) {
    *result = nullptr;
    if (bytes == 0) return cudaSuccess;
    Memory& memory = context.machine.memory;
    *result = take(context.machine, context.device.pools[0], bytes);
    if (*result == nullptr) return cudaErrorMemoryAllocation;
    memory.expose();
    memory.begin(*result);
    memory.hide();
    return cudaSuccess;
  });
}

// Waits for the device, as the real function does.
cudaError_t cudaFree(void* address) {
  return entry("cudaFree", {}, [&](Context& context) {
    if (address == nullptr) return cudaSuccess;
    Block* block = context.machine.memory.live(address);
    if (block == nullptr) return cudaErrorInvalidValue;
    block->freed = true;
    const cudaError_t failure = context.machine.wait(context.lock, *block->pool->device);
    context.machine.memory.end(address);
    return failure;
  });
}

cudaError_t cudaMallocAsync(void** result, std::size_t bytes, cudaStream_t stream) {
  return allocate_in_order("cudaMallocAsync", result, bytes, nullptr, stream);
}

cudaError_t cudaMallocFromPoolAsync(void** result, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return allocate_in_order("cudaMallocFromPoolAsync", result, bytes, pool, stream);
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t handle) {
  return entry("cudaFreeAsync", {.stream = handle}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (address == nullptr) return cudaSuccess;
    Memory& memory = context.machine.memory;
    Block* block = memory.live(address);
    if (block == nullptr || !block->pool->in_stream_order) return cudaErrorInvalidValue;
    if (stream->capture != nullptr && !block->of_graph) {  // graphs free their own blocks only
      stream->capture->invalidate();
      return cudaErrorInvalidValue;
    }
    block->freed = true;
    context.machine.enqueue(*stream,
                            {.name = "release of " + std::to_string(block->size) + " bytes",
                             .body = [&memory, address] { memory.end(address); },
                             .bookkeeping = true});
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return entry("cudaMemGetInfo", {}, [&](Context& context) {
    *total = context.machine.memory.bytes_per_device;
    *free = context.machine.memory.available(context.device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return entry("cudaDeviceGetDefaultMemPool", {}, [&](Context& context) {
    if (!context.has_device(device)) return cudaErrorInvalidDevice;
    *pool = &context.machine.device(device).pools[1];
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return entry("cudaMemPoolCreate", {}, [&](Context& context) {
    const cudaMemLocation& location = properties->location;
    if (properties->allocType != cudaMemAllocationTypePinned ||
        location.type != cudaMemLocationTypeDevice || !context.has_device(location.id))
      return cudaErrorInvalidValue;
    Device& device = context.machine.device(location.id);
    *pool = &device.pools.emplace_back(CUmemPoolHandle_st{.device = &device});
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep) {
  return entry("cudaMemPoolTrimTo", {}, [&](Context& context) {
    if (keep != 0) return cudaErrorNotSupported;  // a limit of the stand-in
    context.machine.memory.trim(*pool);
    return cudaSuccess;
  });
}

// The memory of graphs is freed when they are destroyed here: nothing is kept.
cudaError_t cudaDeviceGraphMemTrim(int) {
  return entry("cudaDeviceGraphMemTrim", {}, [&](Context&) { return cudaSuccess; });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr name, void* value) {
  return entry("cudaMemPoolSetAttribute", {}, [&](Context&) {
    if (name != cudaMemPoolAttrReleaseThreshold) return cudaErrorInvalidValue;
    pool->threshold = *static_cast<const std::uint64_t*>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr name, void* value) {
  return entry("cudaMemPoolGetAttribute", {}, [&](Context& context) {
    if (name != cudaMemPoolAttrUsedMemCurrent) return cudaErrorInvalidValue;
    *static_cast<std::uint64_t*>(value) = context.machine.memory.used(*pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions,
                                 std::size_t count) {
  return entry("cudaMemPoolSetAccess", {}, [&](Context& context) {
    for (const cudaMemAccessDesc& one : std::span(descriptions, count)) {
      if (one.location.type != cudaMemLocationTypeDevice || !context.has_device(one.location.id))
        return cudaErrorInvalidValue;
      const bool asks = one.flags == cudaMemAccessFlagsProtReadWrite;
      if (asks && one.location.id != pool->device->index && !context.machine.settings.peers)
        return cudaErrorPeerAccessUnsupported;
      pool->readers[std::size_t(one.location.id)] = asks;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** result, std::size_t bytes, unsigned) {
  return entry("cudaHostAlloc", {.bytes = bytes}, [&](Context& context) {
    constexpr std::size_t page = 4096;
    *result = nullptr;
    if (bytes == 0) return cudaSuccess;
    void* address = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (address == nullptr) return cudaErrorMemoryAllocation;
    poison(address, bytes);
    context.machine.memory.add_pinned(address, bytes, false);
    *result = address;
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* address) {
  return entry("cudaFreeHost", {}, [&](Context& context) {
    if (address == nullptr) return cudaSuccess;
    const std::size_t bytes = context.machine.memory.remove_pinned(address, false);
    if (bytes == 0) return cudaErrorInvalidValue;
    poison(address, bytes);
    std::free(address);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  return entry("cudaHostRegister", {.bytes = bytes}, [&](Context& context) {
    if (!context.machine.memory.place(address, bytes).pageable())
      return cudaErrorHostMemoryAlreadyRegistered;
    context.machine.memory.add_pinned(address, bytes, true);
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return entry("cudaHostUnregister", {}, [&](Context& context) {
    return context.machine.memory.remove_pinned(address, true) > 0
               ? cudaSuccess
               : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return entry("cudaPointerGetAttributes", {}, [&](Context& context) {
    const Place place = context.machine.memory.place(address, 1);
    *attributes = {};
    attributes->device = place.device();
    attributes->type = place.block == nullptr || !place.whole() ? cudaMemoryTypeUnregistered
                       : place.on_device                        ? cudaMemoryTypeDevice
                                                                : cudaMemoryTypeHost;
    return cudaSuccess;
  });
}
