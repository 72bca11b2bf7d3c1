// Entry points of the runtime: pinned host memory and pointer attributes.
#include <cstdlib>

#include "entry.hpp"
#include "poison.hpp"

using namespace cuda_stand_in;

namespace {

constexpr std::size_t host_page = 4096;

}  // namespace

cudaError_t cudaHostAlloc(void** result, std::size_t bytes, unsigned) {
  return entry("cudaHostAlloc", {.bytes = bytes}, [&](Context& context) {
    if (result == nullptr) return cudaErrorInvalidValue;
    *result = nullptr;
    if (bytes == 0) return cudaSuccess;
    void* address = std::aligned_alloc(host_page, (bytes + host_page - 1) / host_page * host_page);
    if (address == nullptr) return cudaErrorMemoryAllocation;
    poison(address, bytes);
    context.machine.memory.add_pinned(address, bytes, true);
    *result = address;
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* address) {
  return entry("cudaFreeHost", {}, [&](Context& context) {
    if (address == nullptr) return cudaSuccess;
    const std::ptrdiff_t bytes = context.machine.memory.remove_pinned(address, true);
    if (bytes < 0) return cudaErrorInvalidValue;
    poison(address, std::size_t(bytes));
    std::free(address);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  return entry("cudaHostRegister", {.bytes = bytes}, [&](Context& context) {
    if (address == nullptr || bytes == 0) return cudaErrorInvalidValue;
    Memory& memory = context.machine.memory;
    if (memory.place(address, bytes).kind != Place::Kind::pageable)
      return cudaErrorHostMemoryAlreadyRegistered;
    memory.add_pinned(address, bytes, false);
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* address) {
  return entry("cudaHostUnregister", {}, [&](Context& context) {
    return context.machine.memory.remove_pinned(address, false) >= 0
               ? cudaSuccess
               : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return entry("cudaPointerGetAttributes", {}, [&](Context& context) {
    const Place place = context.machine.memory.place(address, 1);
    *attributes = {};
    attributes->device = -1;
    switch (place.kind) {
      case Place::Kind::device:
        attributes->type = place.whole ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
        if (place.whole) {
          attributes->device = place.arena->device();
          attributes->devicePointer = const_cast<void*>(address);
        }
        break;
      case Place::Kind::pinned:
        attributes->type = cudaMemoryTypeHost;
        attributes->device = context.device.index;
        attributes->devicePointer = const_cast<void*>(address);
        attributes->hostPointer = const_cast<void*>(address);
        break;
      case Place::Kind::pageable: attributes->type = cudaMemoryTypeUnregistered; break;
    }
    return cudaSuccess;
  });
}
