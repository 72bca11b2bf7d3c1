// Entry points of the runtime: memory pools of a device.
#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

template <class Ask>
cudaError_t ask_pool(const char* function, cudaMemPool_t pool, Ask&& ask) {
  return entry(function, {}, [&](Context& context) {
    if (pool == nullptr || pool->device == nullptr) return cudaErrorInvalidValue;
    return ask(context, *pool);
  });
}

}  // namespace

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return entry("cudaDeviceGetDefaultMemPool", {}, [&](Context& context) {
    if (device < 0 || device >= context.machine.settings.devices) return cudaErrorInvalidDevice;
    *pool = &context.machine.device(device).pools[0];
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return entry("cudaMemPoolCreate", {}, [&](Context& context) {
    const cudaMemLocation& location = properties->location;
    if (properties->allocType != cudaMemAllocationTypePinned ||
        location.type != cudaMemLocationTypeDevice || location.id < 0 ||
        location.id >= context.machine.settings.devices)
      return cudaErrorInvalidValue;
    Device& device = context.machine.device(location.id);
    const int kind = 1 + int(device.pools.size());
    if (kind == arenas_per_device) return cudaErrorNotSupported;  // a limit of the stand-in
    *pool = &device.pools.emplace_back(CUmemPoolHandle_st{.device = &device, .kind = kind});
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, std::size_t keep) {
  return ask_pool("cudaMemPoolTrimTo", handle, [&](Context& context, CUmemPoolHandle_st& pool) {
    if (keep != 0) return cudaErrorNotSupported;  // a limit of the stand-in
    context.machine.memory.arena(pool.device->index, pool.kind).trim();
    return cudaSuccess;
  });
}

// The memory of graphs is freed when they are destroyed here: nothing is kept.
cudaError_t cudaDeviceGraphMemTrim(int index) {
  return entry("cudaDeviceGraphMemTrim", {}, [&](Context& context) {
    return index >= 0 && index < context.machine.settings.devices ? cudaSuccess
                                                                  : cudaErrorInvalidValue;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr name, void* value) {
  return ask_pool("cudaMemPoolSetAttribute", handle, [&](Context&, CUmemPoolHandle_st& pool) {
    if (name != cudaMemPoolAttrReleaseThreshold) return cudaErrorInvalidValue;
    pool.threshold = *static_cast<const std::uint64_t*>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr name, void* value) {
  return ask_pool("cudaMemPoolGetAttribute", handle,
                  [&](Context& context, CUmemPoolHandle_st& pool) {
                    if (name != cudaMemPoolAttrUsedMemCurrent) return cudaErrorInvalidValue;
                    *static_cast<std::uint64_t*>(value) =
                        context.machine.memory.arena(pool.device->index, pool.kind).in_use();
                    return cudaSuccess;
                  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* descriptions,
                                 std::size_t count) {
  return ask_pool("cudaMemPoolSetAccess", handle, [&](Context& context, CUmemPoolHandle_st& pool) {
    for (std::size_t i = 0; i < count; ++i) {
      const cudaMemAccessDesc& one = descriptions[i];
      if (one.location.type != cudaMemLocationTypeDevice || one.location.id < 0 ||
          one.location.id >= context.machine.settings.devices)
        return cudaErrorInvalidValue;
      const bool asks = one.flags == cudaMemAccessFlagsProtReadWrite;
      if (asks && one.location.id != pool.device->index && !context.machine.settings.peers)
        return cudaErrorPeerAccessUnsupported;
      pool.readers[std::size_t(one.location.id)] = asks;
    }
    return cudaSuccess;
  });
}
