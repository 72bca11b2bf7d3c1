// The main header of the GPU side of cleave, for files that nvcc compiles.
//
// Includes all of cleave.hpp. Requires the CUDA runtime and cuBLASLt, for Fourier transforms cuFFT
// (CLEAVE_HAS_CUFFT=1), `--expt-relaxed-constexpr`, and `--extended-lambda` for lambdas that run on
// the device. Files that only allocate and copy device tensors do not need nvcc: they include the
// headers under tensor/cuda.
#pragma once

#include <cleave/cleave.hpp>

// Devices, streams, memory
#include <cleave/tensor/cuda/cuda_graph.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>
#include <cleave/tensor/cuda/transfer.hpp>

// Kernels
#include <cleave/kernels/cuda/add_rows_cuda.hpp>
#include <cleave/kernels/cuda/arg_reduce_dim_cuda.hpp>
#include <cleave/kernels/cuda/attention_cuda.hpp>
#include <cleave/kernels/cuda/class_losses_cuda.hpp>
#include <cleave/kernels/cuda/exact_sums_cuda.hpp>
#if CLEAVE_HAS_CUFFT
#include <cleave/kernels/cuda/fourier_lines_cuda.hpp>
#endif
#include <cleave/kernels/cuda/gather_rows_cuda.hpp>
#include <cleave/kernels/cuda/gemm_cuda.hpp>
#include <cleave/kernels/cuda/map_elements_cuda.hpp>
#include <cleave/kernels/cuda/map_indexed_cuda.hpp>
#include <cleave/kernels/cuda/multinomial_rows_cuda.hpp>
#include <cleave/kernels/cuda/one_hot_rows_cuda.hpp>
#include <cleave/kernels/cuda/ordered_indices_cuda.hpp>
#include <cleave/kernels/cuda/reduce_dims_cuda.hpp>
#include <cleave/kernels/cuda/reduce_views_cuda.hpp>
#include <cleave/kernels/cuda/running_sums_cuda.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda.hpp>
#include <cleave/kernels/cuda/update_elements_cuda.hpp>
#include <cleave/kernels/cuda/visit_boxes_cuda.hpp>
#include <cleave/kernels/cuda/whole_rows_cuda.hpp>

// Ranks
#include <cleave/async/async_cuda.hpp>
#include <cleave/comm/device/device_group.hpp>

#if CLEAVE_COMPILED && defined(__ELF__) && !defined(__CUDA_ARCH__)
/// Defined by cleave/compiled_cuda.hpp.
extern "C" const char
    cleave_error_link_cleave_cuda_compiled_or_include_cleave_compiled_cuda_hpp_in_one_file;

namespace cleave::inline v0::detail {

[[gnu::used]] inline const char* const needs_cuda_compiled =
    &cleave_error_link_cleave_cuda_compiled_or_include_cleave_compiled_cuda_hpp_in_one_file;

}  // namespace cleave::inline v0::detail
#endif
