// Entry points of the runtime: device memory, allocated immediately and in stream order.
#include "capture.hpp"
#include "entry.hpp"

using namespace cuda_stand_in;

namespace {

constexpr std::size_t max_quarantine = std::size_t(64) << 20;

// Allocates a block from the arena. If there is no room, runs enqueued operations that may free
// some, as pools wait for other streams by default (driver_types.h 13.0,
// cudaMemPoolReuseAllowInternalDependencies).
void* take(Context& context, Arena& arena, std::size_t bytes) {
  Machine& machine = context.machine;
  const auto allocate = [&] {
    return arena.allocate(bytes, machine.memory.available(arena.device()));
  };
  if (void* address = allocate()) return address;
  machine.run_ready();
  arena.recycle(0);
  return allocate();
}

// Ends the life of a block; the arena is exposed.
void give_back(Arena& arena, void* address) {
  if (arena.starting_at(address)->of_graph) {
    arena.suspend(address);
    return;
  }
  arena.end(address);
  arena.recycle(max_quarantine);
}

// The live block that starts at the address, with its arena; null if there is none.
std::pair<Arena*, Block*> live_block(Context& context, void* address) {
  Arena* arena = context.machine.memory.arena_of(address);
  Block* block = arena != nullptr ? arena->starting_at(address) : nullptr;
  return {arena, block != nullptr && !block->freed ? block : nullptr};
}

cudaError_t allocate_in_order(const char* function, void** result, std::size_t bytes,
                              cudaMemPool_t pool, cudaStream_t handle) {
  return entry(function, {.stream = handle, .bytes = bytes}, [&](Context& context) {
    CUstream_st* stream = context.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (result == nullptr || bytes == 0) return cudaErrorInvalidValue;
    const CUmemPoolHandle_st& of = pool != nullptr ? *pool : stream->device->pools[0];
    Arena& arena = context.machine.memory.arena(of.device->index, of.kind);
    void* address = take(context, arena, bytes);
    if (address == nullptr) return cudaErrorMemoryAllocation;
    if (stream->capture != nullptr) {
      arena.starting_at(address)->of_graph = true;
      stream->capture->graph()->allocations.push_back(address);
    }
    context.machine.enqueue(*stream, {.name = "allocation of " + std::to_string(bytes) + " bytes",
                                      .body = [&arena, address] { arena.begin(address); },
                                      .arenas = ArenaSet::of(arena.device(), arena.kind()),
                                      .bookkeeping = true});
    *result = address;
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t cudaMalloc(void** result, std::size_t bytes) {
  return entry("cudaMalloc", {.bytes = bytes}, [&](Context& context) {
    if (result == nullptr) return cudaErrorInvalidValue;
    *result = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (const cudaError_t refused = refuse_while_capturing(context.machine)) return refused;
    Arena& arena = context.machine.memory.arena(context.device.index, 0);
    void* address = take(context, arena, bytes);
    if (address == nullptr) return cudaErrorMemoryAllocation;
    arena.expose();
    arena.begin(address);
    context.machine.memory.hide();
    *result = address;
    return cudaSuccess;
  });
}

// Waits for the device, as the real function does.
cudaError_t cudaFree(void* address) {
  return entry("cudaFree", {}, [&](Context& context) {
    if (address == nullptr) return cudaSuccess;
    const auto [arena, block] = live_block(context, address);
    if (block == nullptr) return cudaErrorInvalidValue;
    if (const cudaError_t refused = refuse_while_capturing(context.machine)) return refused;
    block->freed = true;
    const cudaError_t failure =
        context.machine.wait(context.lock, context.machine.device(arena->device()));
    arena->expose();
    give_back(*arena, address);
    context.machine.memory.hide();
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
    const auto [arena, block] = live_block(context, address);
    if (block == nullptr || !arena->pool()) return cudaErrorInvalidValue;
    if (stream->capture != nullptr && !block->of_graph) {  // graphs free their own blocks only
      stream->capture->invalidate();
      return cudaErrorInvalidValue;
    }
    block->freed = true;
    context.machine.enqueue(*stream,
                            {.name = "release of " + std::to_string(block->size) + " bytes",
                             .body = [arena = arena, address] { give_back(*arena, address); },
                             .arenas = ArenaSet::of(arena->device(), arena->kind()),
                             .bookkeeping = true});
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return entry("cudaMemGetInfo", {}, [&](Context& context) {
    *total = context.machine.memory.bytes_per_device();
    *free = context.machine.memory.available(context.device.index);
    return cudaSuccess;
  });
}
