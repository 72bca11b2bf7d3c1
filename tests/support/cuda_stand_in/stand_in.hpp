// A stand-in for the CUDA runtime, GPUs, cuBLASLt and cuFFT: what nvcc compiled runs on a machine
// without a GPU. Tests link it instead of libcudart, libcublasLt and libcufft; only tests know of
// it. It implements the calls that the library and its tests make, no more.
//
//     nvcc -std=c++20 -I include --compress-mode=none -arch=compute_80 -c -x cu test.cpp
//     g++ test.o libcuda_stand_in.a libptx_interpreter.a -pthread
//
// What it checks
// - values: the PTX of kernels is interpreted (../ptx/ptx_grid.hpp), thread by thread of every
//   block; copies and products are executed;
// - ordering: an operation runs only when the host needs it, together with only the operations that
//   its stream and the events it waits for order before it. Work that was not ordered before is not
//   done, so a missing event shows as a stale or poisoned value;
// - memory: operations may access allocations that live in stream order, on their device or another
//   one to which they have access, and pinned memory; fresh memory is poisoned. Host code that
//   touches device memory dies of SIGSEGV, unless another thread runs device work then;
// - device code: alignment, barriers, races in shared memory;
// - errors: calls are refused as the runtime refuses them, and any error can be planted.
//
// What it does not check: time; the memory model beyond barriers, because one thread runs at a
// time; what ptxas makes of the PTX. Blocks of one launch and kernels of two streams are never
// interleaved within a block or within a kernel.
//
// Environment, read at the first call: CLEAVE_STAND_IN_DEVICES (1); CLEAVE_STAND_IN_MEMORY_MB per
// device (16384); CLEAVE_STAND_IN_THREADS (forward, reversed, shuffled).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

namespace cuda_stand_in {

/// The order in which the threads of a block and the blocks of a grid run between barriers.
enum class ThreadOrder { forward, reversed, shuffled };

/// Sets the number of devices; 0 stands for a machine without one.
void set_devices(int count);

/// Sets whether devices can access each other's memory. Access already enabled stays until `reset`.
void set_peer_access(bool possible);

/// Sets the memory of each device; 0 stands for what the environment says.
void set_memory(std::size_t bytes);

void set_thread_order(ThreadOrder order);

/// The `nth` call from now (1 is the next) of the named entry point does nothing and returns
/// `error`.
void fail_call(std::string_view function, int nth, cudaError_t error);

/// From now on calls of the named entry point block until this is called with another name, as
/// calls may block while another thread is inside the driver. "" releases them.
void hold_call(std::string_view function);

/// The next operation enqueued on `stream` fails when it runs: from then on every call for its
/// device returns `error`, as after a fault in a kernel.
void fail_operation(cudaStream_t stream, cudaError_t error);

/// Errors in device code or device memory since the last call, one line each; empty if none. The
/// same lines have been printed to stderr.
std::string take_faults();

/// Forgets faults, planted errors, failures of devices and peer access; drops enqueued operations.
void reset();

/// Number of operations that are enqueued and have not run, over all streams.
std::size_t pending_operations();

}  // namespace cuda_stand_in
