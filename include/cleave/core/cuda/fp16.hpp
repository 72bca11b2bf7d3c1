// CUDA's 16-bit types without their global name `half`, which would make ours ambiguous wherever
// `using namespace cleave` is written. Headers of CUDA's libraries include these types: include
// this header first. To also use CUDA's name, include <cuda_fp16.h> before any header of cleave.
#pragma once

#if defined(CUDA_NO_HALF)
#include <cuda_fp16.h>
#else
#define CUDA_NO_HALF
#include <cuda_fp16.h>
#undef CUDA_NO_HALF
#endif
