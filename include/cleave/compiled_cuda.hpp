// The definitions for GPUs that CLEAVE_COMPILED=1 omits from the other headers. A program that does
// not link the library cleave-cuda-compiled includes this header in exactly one file, which nvcc
// compiles. The definitions for the host are in cleave/compiled.hpp, for another file, or in the
// library cleave-compiled.
#pragma once

#include <cleave/core/config.hpp>

#if !CLEAVE_COMPILED
#error "compile all files of the program with CLEAVE_COMPILED=1"
#endif

#include <array>
#include <complex>
#include <cstdint>
#include <memory>
#include <span>

#include <cleave/comm/device/device_group_body.hpp>
#include <cleave/cuda.hpp>
#include <cleave/functional/operands_body.hpp>
#include <cleave/kernels/cuda/gemm_cuda_body.hpp>
#include <cleave/kernels/cuda/radix_sort_cuda_body.hpp>
#include <cleave/kernels/cuda/reduce_views_cuda_body.hpp>
#include <cleave/kernels/cuda/strided_copy_cuda_body.hpp>
#include <cleave/redistribute/read_boxes_body.hpp>
#include <cleave/redistribute/redistribute_local_body.hpp>

extern "C" const char
    cleave_error_link_cleave_cuda_compiled_or_include_cleave_compiled_cuda_hpp_in_one_file = 0;

namespace cleave::inline v0 {

template void strided_copy(Cuda, const ConstView&, const View&);
template void reduce_range(Cuda, ReduceOp, std::span<const ConstView>, const View&, index_t,
                           index_t);

namespace detail {

template std::shared_ptr<Communicator> make_device_group<Cuda>(Communicator&);

}  // namespace detail

namespace functional::detail {

template void run_operands<Cuda>(const Channel&, CollectiveKind, ReduceOp,
                                 std::span<const Operand>);

}  // namespace functional::detail

namespace redistribution {

template Block run<Cuda>(const Plan*, const Layout&, const Layout&, Block, const Context&);
template Plan choose_for<Cuda>(const Plan*, const Layout&, const Layout&, DType, const Context&);
template Block run_plan<Cuda>(const Plan&, Block, const Context&);
template void run_all<Cuda>(std::span<ListEntry>);
template void read_boxes<Cuda>(const char*, std::span<const BoxRead>, const MeshState&);
template Block cross_redistribute<Cuda>(const Layout&, const Layout&, Block, const MeshState&,
                                        const MeshState&, Shape&);

}  // namespace redistribution

namespace cuda::detail {

template void sort_by_keys(Cuda, const char*, KeyedNumbers&, int, int);
template void fill_bytes(const View&, const word_t<1>&);
template void fill_bytes(const View&, const word_t<2>&);
template void fill_bytes(const View&, const word_t<4>&);
template void fill_bytes(const View&, const word_t<8>&);
template void fill_bytes(const View&, const std::array<word_t<4>, 2>&);
template void fill_bytes(const View&, const std::array<word_t<8>, 2>&);

// clang-format off
#define CLEAVE_PRODUCT_OF(T)                                                                      \
  template void gemm_matrices(const kernels::Matrix<const T>&, const kernels::Matrix<const T>&,   \
                              const kernels::Matrix<T>&, const kernels::Batches&, bool)
// clang-format on
CLEAVE_PRODUCT_OF(std::int8_t);
CLEAVE_PRODUCT_OF(std::uint8_t);
CLEAVE_PRODUCT_OF(std::int16_t);
CLEAVE_PRODUCT_OF(std::uint16_t);
CLEAVE_PRODUCT_OF(std::int32_t);
CLEAVE_PRODUCT_OF(std::uint32_t);
CLEAVE_PRODUCT_OF(std::int64_t);
CLEAVE_PRODUCT_OF(std::uint64_t);
CLEAVE_PRODUCT_OF(half);
CLEAVE_PRODUCT_OF(bfloat16);
CLEAVE_PRODUCT_OF(float);
CLEAVE_PRODUCT_OF(double);
CLEAVE_PRODUCT_OF(std::complex<float>);
CLEAVE_PRODUCT_OF(std::complex<double>);
#undef CLEAVE_PRODUCT_OF
#define CLEAVE_PRODUCT_AND_BIAS_OF(T)                                                           \
  template bool gemm_and_bias(const kernels::Matrix<const T>&, const kernels::Matrix<const T>&, \
                              const kernels::Matrix<T>&, const T*)
CLEAVE_PRODUCT_AND_BIAS_OF(half);
CLEAVE_PRODUCT_AND_BIAS_OF(bfloat16);
CLEAVE_PRODUCT_AND_BIAS_OF(float);
#undef CLEAVE_PRODUCT_AND_BIAS_OF

}  // namespace cuda::detail

}  // namespace cleave::inline v0
