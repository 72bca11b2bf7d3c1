// The counterparts of bench/cuda: what a CUDA programmer would write without cleave.
#pragma once

#include <cublasLt.h>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>

namespace bare {

using cleave::index_t;

/// Reads all elements; the write, for a sum that never occurs, keeps the loads from being removed.
inline __global__ void read_kernel(const float4* from, index_t packs, float* never) {
  float sum = 0;
  const index_t step = index_t(gridDim.x) * blockDim.x;
  index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < packs; i += 4 * step) {
    const float4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
    sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
    sum += c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
  }
  for (; i < packs; i += step) sum += from[i].x + from[i].y + from[i].z + from[i].w;
  if (sum == -1.0f) *never = sum;
}

inline void read(float* from, index_t count) {
  cleave::cuda::launch("bare::read", read_kernel,
                       dim3(unsigned(8 * cleave::cuda::multiprocessors())), dim3(512),
                       reinterpret_cast<const float4*>(from), count / 4, from);
}

inline void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw cleave::Error("bare::Matmul", "cuBLASLt failed");
}

/// c = a · b for square row-major matrices of bfloat16. cuBLAS is column-major and sees the
/// transposes, so it computes cᵀ = bᵀ · aᵀ.
class Matmul {
 public:
  explicit Matmul(int side) {
    check(cublasLtCreate(&handle_));
    check(cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    check(cublasLtMatrixLayoutCreate(&layout_, CUDA_R_16BF, std::uint64_t(side),
                                     std::uint64_t(side), side));
    cleave::cuda::check(cudaMalloc(&workspace_, workspace_bytes), "bare::Matmul");
    cublasLtMatmulPreference_t preference;
    check(cublasLtMatmulPreferenceCreate(&preference));
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof workspace_bytes));
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_, product_, layout_, layout_, layout_, layout_,
                                         preference, 1, &best_, &found));
    check(cublasLtMatmulPreferenceDestroy(preference));
    if (found == 0) throw cleave::Error("bare::Matmul", "cuBLASLt found no algorithm");
  }
  Matmul(const Matmul&) = delete;  // owns handles
  Matmul& operator=(const Matmul&) = delete;
  ~Matmul() {
    cudaFree(workspace_);
    cublasLtMatrixLayoutDestroy(layout_);
    cublasLtMatmulDescDestroy(product_);
    cublasLtDestroy(handle_);
  }

  void operator()(const void* a, const void* b, void* c) const {
    const float one = 1, zero = 0;
    check(cublasLtMatmul(handle_, product_, &one, b, layout_, a, layout_, &zero, c, layout_, c,
                         layout_, &best_.algo, workspace_, workspace_bytes,
                         cleave::cuda::current_stream().get()));
  }

 private:
  static constexpr std::size_t workspace_bytes = std::size_t(32) << 20;

  cublasLtHandle_t handle_{};
  cublasLtMatmulDesc_t product_{};
  cublasLtMatrixLayout_t layout_{};
  cublasLtMatmulHeuristicResult_t best_{};
  void* workspace_ = nullptr;
};

}  // namespace bare
