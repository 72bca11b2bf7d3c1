// Kernels that test_ptx.cpp runs: instantiations of the library's, and kernels with mistakes.
#include <complex>
#include <cstdint>

#include <cleave/kernels/cuda/pack.hpp>
#include <cleave/kernels/cuda/tiled_gemm.hpp>

namespace cleave::cuda::detail {

template __global__ void tiled_gemm_kernel<std::int64_t>(kernels::Matrix<const std::int64_t>,
                                                         kernels::Matrix<const std::int64_t>,
                                                         kernels::Matrix<std::int64_t>,
                                                         kernels::Batches, FastDivision,
                                                         std::uint32_t);

}  // namespace cleave::cuda::detail

using namespace cleave;
using Complex = std::complex<double>;

extern "C" {

__global__ void scatter_complex(Complex* to, const std::int32_t* at, const Complex* x, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  auto* const parts = reinterpret_cast<double*>(to + at[i]);
  atomicAdd(parts, x[i].real());
  atomicAdd(parts + 1, x[i].imag());
}
__global__ void multiply(Complex* out, const Complex* a, const Complex* b) {
  out[threadIdx.x] = kernels::times(a[threadIdx.x], b[threadIdx.x]);
}
// Drops the imaginary parts, as nvcc drops operators of std::complex without a word.
__global__ void planted_product(Complex* out, const Complex* a, const Complex* b) {
  out[threadIdx.x] = Complex(a[threadIdx.x].real() * b[threadIdx.x].real(), 0);
}
__global__ void warp_sums(std::int32_t* out, const std::int32_t* x) {
  std::int32_t sum = x[threadIdx.x];
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  out[threadIdx.x] = sum;
}
__global__ void copy_packs(float* to, const float* from, int shift) {
  const int at = int(threadIdx.x) * 4;
  cuda::detail::store_pack(to + at, cuda::detail::load_pack<4>(from + at + shift));
}
__global__ void copy_elements(float* to, const float* from) {  // four accesses, not one
  const int at = int(threadIdx.x) * 4 + 1;
  for (int k = 0; k < 4; ++k) to[at + k] = from[at + k];
}
__global__ void reverse_block(std::int32_t* x, bool waits) {
  __shared__ std::int32_t held[128];
  held[threadIdx.x] = x[threadIdx.x];
  if (waits) __syncthreads();
  x[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
__global__ void split_barrier(std::int32_t* x) {
  if (threadIdx.x % 2 == 0) __syncthreads();
  x[threadIdx.x] = 1;
}
__global__ void fill(std::int32_t* x, int n, std::int32_t value) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= n) x[i] = value;  // one element too many if there are enough threads
}
__global__ void clock_of(std::int64_t* out) { *out = clock64(); }

}  // extern "C"
