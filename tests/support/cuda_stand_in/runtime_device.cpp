// Entry points of the runtime: devices, what they are like, and access among them.
#include <cstdio>
#include <cstring>

#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

// A small device of compute capability 9.0, whose four multiprocessors make grids small.
constexpr int multiprocessors = 4;

int attribute(cudaDeviceAttr name) {
  switch (name) {
    case cudaDevAttrMaxThreadsPerBlock: return 1024;
    case cudaDevAttrMaxBlockDimX: return 1024;
    case cudaDevAttrMaxBlockDimY: return 1024;
    case cudaDevAttrMaxBlockDimZ: return 64;
    case cudaDevAttrMaxGridDimX: return 0x7fffffff;
    case cudaDevAttrMaxGridDimY: return 65535;
    case cudaDevAttrMaxGridDimZ: return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock: return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 228 << 10;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
    case cudaDevAttrMultiProcessorCount: return multiprocessors;
    case cudaDevAttrWarpSize: return 32;
    case cudaDevAttrComputeCapabilityMajor: return 9;
    case cudaDevAttrComputeCapabilityMinor: return 0;
    case cudaDevAttrL2CacheSize: return 50 << 20;
    case cudaDevAttrUnifiedAddressing: return 1;
    case cudaDevAttrMemoryPoolsSupported: return 1;
    case cudaDevAttrConcurrentKernels: return 1;
    case cudaDevAttrAsyncEngineCount: return 3;
    case cudaDevAttrStreamPrioritiesSupported: return 1;
    case cudaDevAttrCanMapHostMemory: return 1;
    case cudaDevAttrHostRegisterSupported: return 1;
    default: return -1;
  }
}

bool is_device(const Context& context, int index) {
  return index >= 0 && index < context.machine.settings.devices;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return entry("cudaGetDeviceCount", {}, [&](Context& context) {
    *count = context.machine.settings.devices;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  {
    const Lock lock = Machine::get().lock();
    const int devices = Machine::get().settings.devices;
    // As the thread's device may have failed, or have gone, this must work without it.
    if (device >= 0 && device < devices) ThreadState::get().device = device;
    else if (devices > 0) return remember(cudaErrorInvalidDevice);
  }
  return entry("cudaSetDevice", {}, [](Context&) { return cudaSuccess; });
}

cudaError_t cudaGetDevice(int* device) {
  return entry("cudaGetDevice", {}, [&](Context& context) {
    *device = context.device.index;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int device) {
  return entry("cudaDeviceGetAttribute", {}, [&](Context& context) {
    if (!is_device(context, device)) return cudaErrorInvalidDevice;
    if (attribute(name) < 0) return cudaErrorInvalidValue;
    *value = attribute(name);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return entry("cudaGetDeviceProperties", {}, [&](Context& context) {
    if (!is_device(context, device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::strcpy(properties->name, "CUDA stand-in");
    properties->totalGlobalMem = context.machine.settings.memory;
    properties->sharedMemPerBlock = std::size_t(attribute(cudaDevAttrMaxSharedMemoryPerBlock));
    properties->warpSize = attribute(cudaDevAttrWarpSize);
    properties->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
    properties->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    properties->multiProcessorCount = multiprocessors;
    properties->major = attribute(cudaDevAttrComputeCapabilityMajor);
    properties->minor = attribute(cudaDevAttrComputeCapabilityMinor);
    properties->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
    properties->pciBusID = device + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return entry("cudaDeviceGetPCIBusId", {}, [&](Context& context) {
    if (!is_device(context, device)) return cudaErrorInvalidDevice;
    if (id == nullptr || length < 13) return cudaErrorInvalidValue;
    std::snprintf(id, std::size_t(length), "0000:%02X:00.0", unsigned(device) + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return entry("cudaDeviceCanAccessPeer", {}, [&](Context& context) {
    if (!is_device(context, device) || !is_device(context, peer)) return cudaErrorInvalidDevice;
    *can = device != peer && context.machine.settings.peers ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return entry("cudaDeviceEnablePeerAccess", {}, [&](Context& context) {
    if (!is_device(context, peer) || peer == context.device.index) return cudaErrorInvalidDevice;
    if (flags != 0) return cudaErrorInvalidValue;
    if (!context.machine.settings.peers) return cudaErrorPeerAccessUnsupported;
    if (context.device.peers[std::size_t(peer)]) return cudaErrorPeerAccessAlreadyEnabled;
    context.device.peers[std::size_t(peer)] = true;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return entry("cudaDeviceDisablePeerAccess", {}, [&](Context& context) {
    if (!is_device(context, peer)) return cudaErrorInvalidDevice;
    if (!context.device.peers[std::size_t(peer)]) return cudaErrorPeerAccessNotEnabled;
    context.device.peers[std::size_t(peer)] = false;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* runtime) {
  *runtime = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* driver) {
  const Lock lock = Machine::get().lock();
  *driver = Machine::get().settings.devices > 0 ? CUDART_VERSION : 0;
  return cudaSuccess;
}
