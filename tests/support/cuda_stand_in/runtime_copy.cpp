// Entry points of the runtime: copies and fills.
//
// What the host sees of a copy depends on the host memory, as with CUDA: pinned memory is read and
// written when the operation runs; pageable memory is read before the call returns, and written
// before it returns too.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

/// `height` rows of `width` bytes.
struct Rows {
  const void* base;
  std::size_t pitch, width, height;

  std::size_t span() const { return (height - 1) * pitch + width; }
  std::byte* row(std::size_t i) const {
    return static_cast<std::byte*>(const_cast<void*>(base)) + i * pitch;
  }
};

void copy_rows(const Rows& to, const Rows& from) {
  if (to.pitch == to.width && from.pitch == from.width) {
    std::memcpy(to.row(0), from.row(0), to.width * to.height);
    return;
  }
  for (std::size_t i = 0; i < to.height; ++i) std::memcpy(to.row(i), from.row(i), to.width);
}

bool agrees(cudaMemcpyKind kind, const Place& to, const Place& from) {
  switch (kind) {
    case cudaMemcpyHostToHost: return !to.on_device() && !from.on_device();
    case cudaMemcpyHostToDevice: return to.on_device() && !from.on_device();
    case cudaMemcpyDeviceToHost: return !to.on_device() && from.on_device();
    case cudaMemcpyDeviceToDevice: return to.on_device() && from.on_device();
    case cudaMemcpyDefault: return true;
  }
  return false;
}

const char* name_of(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost: return "HostToHost";
    case cudaMemcpyHostToDevice: return "HostToDevice";
    case cudaMemcpyDeviceToHost: return "DeviceToHost";
    case cudaMemcpyDeviceToDevice: return "DeviceToDevice";
    case cudaMemcpyDefault: return "Default";
  }
  return "";
}

ArenaSet arena_of(const Place& place) {
  return place.on_device() ? ArenaSet::of(place.arena->device(), place.arena->pool())
                           : ArenaSet::none();
}

cudaError_t enqueue_copy(Context& context, CUstream_st& stream, Rows to, Rows from,
                         cudaMemcpyKind kind, bool host_waits) {
  Machine& machine = context.machine;
  if (to.width == 0 || to.height == 0) return cudaSuccess;
  if (to.height > 1 && (to.pitch < to.width || from.pitch < from.width))
    return cudaErrorInvalidPitchValue;
  const Place target = machine.memory.place(to.base, to.span());
  const Place source = machine.memory.place(from.base, from.span());
  if (to.base == nullptr || from.base == nullptr || !target.whole || !source.whole ||
      !agrees(kind, target, source))
    return cudaErrorInvalidValue;

  const bool to_pageable = target.kind == Place::Kind::pageable;
  const bool from_pageable = source.kind == Place::Kind::pageable;
  const bool in_host = !target.on_device() && !source.on_device();
  const bool waits = host_waits || to_pageable || in_host;
  if (stream.capture != nullptr && waits) return cudaErrorStreamCaptureUnsupported;

  const std::string what = "a copy of " + std::to_string(to.width * to.height) + " bytes";
  std::shared_ptr<std::vector<std::byte>> staged;
  if (from_pageable && stream.capture == nullptr) {  // a graph's copy reads when it is launched
    staged = std::make_shared<std::vector<std::byte>>(from.width * from.height);
    const Rows packed{staged->data(), from.width, from.width, from.height};
    copy_rows(packed, from);
    from = packed;
  }
  const Point point = machine.enqueue(
      context.lock, stream,
      {.name = what,
       .body =
           [to, from, what, to_pageable, from_pageable, staged, &machine] {
             if (!to_pageable && !machine.check_usable(what, to.base, to.span())) return;
             if (!from_pageable && !machine.check_usable(what, from.base, from.span())) return;
             copy_rows(to, from);
           },
       .arenas = arena_of(target) | arena_of(source)});
  return waits ? machine.wait(context.lock, point) : cudaSuccess;
}

cudaError_t copy(const char* function, Rows to, Rows from, cudaMemcpyKind kind, cudaStream_t handle,
                 bool host_waits) {
  const Arguments arguments{
      .stream = handle, .bytes = to.width * to.height, .detail = name_of(kind)};
  return entry(function, arguments, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    return stream == nullptr ? cudaErrorInvalidResourceHandle
                             : enqueue_copy(context, *stream, to, from, kind, host_waits);
  });
}

Rows one_row(const void* base, std::size_t bytes) { return {base, bytes, bytes, 1}; }

cudaError_t fill(const char* function, void* address, int value, std::size_t bytes,
                 cudaStream_t handle) {
  return entry(function, {.stream = handle, .bytes = bytes}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    const Place place = context.machine.memory.place(address, bytes);
    if (place.kind == Place::Kind::pageable || !place.whole) return cudaErrorInvalidValue;
    const std::string what = "a fill of " + std::to_string(bytes) + " bytes";
    context.machine.enqueue(context.lock, *stream,
                            {.name = what,
                             .body =
                                 [address, value, bytes, what, &machine = context.machine] {
                                   if (machine.check_usable(what, address, bytes))
                                     std::memset(address, value, bytes);
                                 },
                             .arenas = arena_of(place)});
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy("cudaMemcpyAsync", one_row(to, bytes), one_row(from, bytes), kind, stream, false);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const bool on_device = kind == cudaMemcpyDeviceToDevice;  // for that, the host does not wait
  return copy("cudaMemcpy", one_row(to, bytes), one_row(from, bytes), kind, nullptr, !on_device);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return copy("cudaMemcpyPeerAsync", one_row(to, bytes), one_row(from, bytes),
              cudaMemcpyDeviceToDevice, stream, false);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpy2DAsync", {to, to_pitch, width, height}, {from, from_pitch, width, height},
              kind, stream, false);
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t stream) {
  return fill("cudaMemsetAsync", address, value, bytes, stream);
}

cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  return fill("cudaMemset", address, value, bytes, nullptr);
}
