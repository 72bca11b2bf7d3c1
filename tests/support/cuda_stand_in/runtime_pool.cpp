// Entry points of the runtime: the default memory pool of a device.
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
    *pool = &context.machine.device(device).pool;
    return cudaSuccess;
  });
}

// The real pool decides how freed memory is reused; here it is quarantined whatever is set.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr name, void*) {
  return ask_pool("cudaMemPoolSetAttribute", handle, [&](Context&, CUmemPoolHandle_st&) {
    return name == cudaMemPoolAttrReleaseThreshold ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr name, void* value) {
  return ask_pool("cudaMemPoolGetAttribute", handle,
                  [&](Context& context, CUmemPoolHandle_st& pool) {
                    if (name != cudaMemPoolAttrUsedMemCurrent) return cudaErrorInvalidValue;
                    *static_cast<std::uint64_t*>(value) =
                        context.machine.memory.arena(pool.device->index, true).in_use();
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
      pool.device->pool_readers[std::size_t(one.location.id)] = asks;
    }
    return cudaSuccess;
  });
}
