// Declares what nvcc provides beyond the toolkit's <cuda_runtime.h>, as far as the library uses it,
// so that g++ parses headers with device code. Nothing that includes this file is run.
#pragma once

#include <type_traits>

#include <cuda_runtime_api.h>
#include <vector_functions.h>

/// For headers with device code: it can be parsed, although not by nvcc.
#define CLEAVE_DEVICE_CODE 1

#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

void __syncthreads();
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value);
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value);
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments);
