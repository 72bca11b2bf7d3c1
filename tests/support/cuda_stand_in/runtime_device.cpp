// Entry points of the runtime: devices, their properties, peer access, and errors.
#include <cstdio>

#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

constexpr int multiprocessors = 4;  // few, to keep grids small

cudaError_t last_error() {
  Machine& machine = Machine::get();
  const Lock lock = machine.lock();
  const ThreadState& thread = ThreadState::get();
  if (thread.device < machine.settings.devices) {
    const cudaError_t failure = machine.device(thread.device).failure;
    if (failure != cudaSuccess) return failure;
  }
  return thread.last_error;
}

}  // namespace

// Of the errors that the stand-in returns and those that a test may plant.
const char* cudaGetErrorName(cudaError_t error) {
#define NAME(known) \
  case known: return #known;
  switch (error) {
    NAME(cudaSuccess)
    NAME(cudaErrorInvalidValue)
    NAME(cudaErrorMemoryAllocation)
    NAME(cudaErrorInvalidConfiguration)
    NAME(cudaErrorNoDevice)
    NAME(cudaErrorInvalidDevice)
    NAME(cudaErrorInvalidResourceHandle)
    NAME(cudaErrorNotReady)
    NAME(cudaErrorIllegalAddress)
    NAME(cudaErrorLaunchOutOfResources)
    NAME(cudaErrorLaunchTimeout)
    NAME(cudaErrorPeerAccessAlreadyEnabled)
    NAME(cudaErrorPeerAccessUnsupported)
    NAME(cudaErrorHostMemoryAlreadyRegistered)
    NAME(cudaErrorHostMemoryNotRegistered)
    NAME(cudaErrorLaunchFailure)
    NAME(cudaErrorNotSupported)
    NAME(cudaErrorStreamCaptureUnsupported)
    NAME(cudaErrorStreamCaptureInvalidated)
    NAME(cudaErrorStreamCaptureMerge)
    NAME(cudaErrorStreamCaptureUnmatched)
    NAME(cudaErrorStreamCaptureUnjoined)
    NAME(cudaErrorStreamCaptureIsolation)
    NAME(cudaErrorCapturedEvent)
    NAME(cudaErrorUnknown)
    default: return "unrecognized error code";
  }
}

// Only the names tell errors apart.
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaPeekAtLastError() { return last_error(); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error();
  ThreadState::get().last_error = cudaSuccess;
  return error;
}

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
    // Must work without the thread's device, which may have failed or been removed.
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
    if (!context.has_device(device)) return cudaErrorInvalidDevice;
    switch (name) {
      case cudaDevAttrMultiProcessorCount: *value = multiprocessors; break;
      case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
      case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
      default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*,
                                                                   int threads, std::size_t,
                                                                   unsigned) {
  return entry("cudaOccupancyMaxActiveBlocksPerMultiprocessor", {}, [&](Context&) {
    if (threads < 1 || threads > 1024) return cudaErrorInvalidValue;
    *blocks = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return entry("cudaDeviceGetPCIBusId", {}, [&](Context& context) {
    if (!context.has_device(device)) return cudaErrorInvalidDevice;
    if (id == nullptr || length < 13) return cudaErrorInvalidValue;
    std::snprintf(id, std::size_t(length), "0000:%02X:00.0", unsigned(device) + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return entry("cudaDeviceCanAccessPeer", {}, [&](Context& context) {
    if (!context.has_device(device) || !context.has_device(peer)) return cudaErrorInvalidDevice;
    *can = device != peer && context.machine.settings.peers ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return entry("cudaDeviceEnablePeerAccess", {}, [&](Context& context) {
    if (!context.has_device(peer) || peer == context.device.index) return cudaErrorInvalidDevice;
    if (flags != 0) return cudaErrorInvalidValue;
    if (!context.machine.settings.peers) return cudaErrorPeerAccessUnsupported;
    auto& readers = context.machine.device(peer).pools[0].readers;
    if (readers[std::size_t(context.device.index)]) return cudaErrorPeerAccessAlreadyEnabled;
    readers.set(std::size_t(context.device.index));
    return cudaSuccess;
  });
}
