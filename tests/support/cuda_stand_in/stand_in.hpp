// A stand-in for the CUDA runtime, for device code and for cuBLASLt, made of host code: sources
// that are written for nvcc are compiled by g++ or clang++ and run on a machine without a GPU.
// Tests link it instead of libcudart and libcublasLt; nothing but tests knows of it. It has what
// the library and its tests call, no more.
//
//     S=tests/support/cuda_stand_in
//     g++ -std=c++20 -I $S/include -I include -isystem $CUDA/include -c test.cpp
//     g++ -std=c++20 -I $S/include -I include -isystem $CUDA/include -c -x c++ kernels.cu
//     g++ test.o kernels.o libcuda_stand_in.a -pthread
//
// What it proves
// - values: kernels, copies and products are carried out, thread by thread of every block;
// - ordering: an operation runs only when the host needs it, and then only what its stream and the
//   events it waits for put before it. Work that was not ordered before is left undone, so that a
//   missing event shows as a stale or poisoned value. `Order::eager` is the opposite extreme;
// - memory: fresh and freed memory is poisoned, in stream order; the bytes behind every allocation
//   are checked when it goes; host code that touches device memory stops with a message (unless
//   another thread runs device work at that moment), as does device code that touches another
//   device's memory without peer access. AddressSanitizer sees device memory as it sees the heap;
// - barriers: threads of a block that part at a barrier are an error; reversed and shuffled orders
//   of threads and blocks show where a barrier is missing;
// - errors: calls are refused as the runtime refuses them, and any error can be planted.
//
// What it does not prove: time; the behaviour of warps; the memory model, beyond barriers, as one
// thread runs at a time; that nvcc accepts the source (a compile with nvcc does); that device code
// leaves pageable host memory alone. Shared memory is not poisoned between blocks. Blocks of one
// launch, and kernels of two streams, are interleaved only as whole blocks, as whole kernels.
//
// Environment, read at the first call: CLEAVE_STAND_IN_DEVICES (1), CLEAVE_STAND_IN_PEERS=off for
// devices that cannot reach each other's memory, CLEAVE_STAND_IN_MEMORY_MB per device (16384),
// CLEAVE_STAND_IN_ORDER (lazy, eager), CLEAVE_STAND_IN_THREADS (forward, reversed, shuffled),
// CLEAVE_STAND_IN_TIMEOUT in seconds (60), CLEAVE_STAND_IN_GUARD=off: host code that touches device
// memory, and device code that touches another device's, goes unnoticed, which saves time in long
// suites with much memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

namespace cuda_stand_in {

/// When enqueued operations run.
enum class Order {
  lazy,  ///< when the host needs them, and no others
  eager  ///< as soon as what they wait for has run
};

/// In which order the threads of a block, and the blocks of a grid, run between barriers.
enum class ThreadOrder { forward, reversed, shuffled };

/// The number of devices that the machine shows; 0 is a machine without one.
void set_devices(int count);

/// Whether devices can reach each other's memory; access that is enabled stays until `reset`.
void set_peer_access(bool possible);

void set_order(Order order);

void set_thread_order(ThreadOrder order);

/// The `nth` call from now (1 is the next) of the named entry point does nothing but return
/// `error`.
void fail_call(std::string_view function, int nth, cudaError_t error);

/// From now on calls of the named entry point wait until this is called with another name, as calls
/// may wait while another thread is inside of the driver; "" ends it.
void hold_call(std::string_view function);

/// The next operation enqueued on `stream` fails when it runs: from then on every call for its
/// device returns `error`, as after a fault of a kernel.
void fail_operation(cudaStream_t stream, cudaError_t error);

/// What went wrong in device code or with device memory since the last call, one line each; empty
/// if nothing. The same lines have gone to stderr.
std::string take_faults();

/// Forgets faults, planted errors and access among devices, which can be used again; drops what is
/// enqueued.
void reset();

/// Number of operations that have been enqueued but have not run, over all streams.
std::size_t pending_operations();

}  // namespace cuda_stand_in
