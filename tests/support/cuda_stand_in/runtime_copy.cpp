// Entry points of the runtime: copies, and memory set to a byte.
//
// When a copy accesses host memory depends on the memory, as with CUDA: pinned memory is read and
// written when the operation runs; pageable memory is read and written before the call returns.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

/// By cudaMemcpyKind.
constexpr struct {
  const char* name;
  bool from_device, to_device;
} directions[] = {{"HostToHost", false, false},
                  {"HostToDevice", false, true},
                  {"DeviceToHost", true, false},
                  {"DeviceToDevice", true, true},
                  {"Default", false, false}};

bool agrees(cudaMemcpyKind kind, const Place& to, const Place& from) {
  return kind == cudaMemcpyDefault || (directions[kind].from_device == from.on_device &&
                                       directions[kind].to_device == to.on_device);
}

cudaError_t enqueue_copy(Context& context, CUstream_st& stream, void* to, const void* from,
                         std::size_t bytes, cudaMemcpyKind kind) {
  Machine& machine = context.machine;
  if (bytes == 0) return cudaSuccess;
  const Place target = machine.memory.place(to, bytes);
  const Place source = machine.memory.place(from, bytes);
  if (to == nullptr || from == nullptr || !target.whole() || !source.whole() ||
      !agrees(kind, target, source))
    return cudaErrorInvalidValue;

  const bool to_pageable = target.pageable(), from_pageable = source.pageable();
  const bool waits = to_pageable || (!target.on_device && !source.on_device);
  if (stream.capture != nullptr && waits) return cudaErrorStreamCaptureUnsupported;

  const std::string what = "a copy of " + std::to_string(bytes) + " bytes";
  std::shared_ptr<std::vector<std::byte>> staged;
  if (from_pageable && stream.capture == nullptr) {  // a captured copy reads at launch
    const auto* const first = static_cast<const std::byte*>(from);
    staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    from = staged->data();
  }
  const Point point = machine.enqueue(
      stream,
      {.name = what, .body = [to, from, bytes, what, to_pageable, from_pageable, staged, &machine] {
         if (!to_pageable && !machine.check_usable(what, to, bytes, false)) return;
         if (!from_pageable && !machine.check_usable(what, from, bytes, false)) return;
         std::memcpy(to, from, bytes);
       }});
  return waits ? machine.wait(context.lock, point) : cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  const Arguments arguments{.stream = handle, .bytes = bytes, .detail = directions[kind].name};
  return entry("cudaMemcpyAsync", arguments, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle
                             : enqueue_copy(context, *stream, to, from, bytes, kind);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return entry("cudaMemsetAsync", {.stream = handle, .bytes = bytes}, [&](Context& context) {
    Machine& machine = context.machine;
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    const Place target = machine.memory.place(to, bytes);
    if (to == nullptr || !target.whole() || !target.on_device) return cudaErrorInvalidValue;
    const std::string what = "setting " + std::to_string(bytes) + " bytes";
    machine.enqueue(*stream, {.name = what, .body = [to, value, bytes, what, &machine] {
                                if (machine.check_usable(what, to, bytes, false))
                                  std::memset(to, value, bytes);
                              }});
    return cudaSuccess;
  });
}
