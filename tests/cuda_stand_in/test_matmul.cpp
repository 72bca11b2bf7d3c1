// Products by cuBLASLt: what an algorithm relies on, refused calls, and when a product runs. The
// tests of the library's products check values.
#include <cublasLt.h>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

#define CHECK_BLAS(call, status) \
  CHECK(std::string(cublasLtGetStatusString(call)) == "CUBLAS_STATUS_" #status)

/// Products of square matrices of 4 floats each, described by the members.
struct Square : Setup {
  cublasLtHandle_t handle{};
  Array<float> data{std::vector<float>(64)};
  cublasLtMatmulDesc_t operation{};
  cublasLtMatrixLayout_t a{}, b{}, d{};
  cublasLtMatmulPreference_t preference{};

  Square() {
    CHECK_BLAS(cublasLtCreate(&handle), SUCCESS);
    CHECK_BLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), SUCCESS);
    for (cublasLtMatrixLayout_t* const layout : {&a, &b, &d}) lay_out(*layout);
    CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference), SUCCESS);
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(name, std::uint32_t(16));
  }
  ~Square() {
    cublasLtMatmulPreferenceDestroy(preference);
    for (const cublasLtMatrixLayout_t layout : {a, b, d}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation);
    cublasLtDestroy(handle);
  }

  static void lay_out(cublasLtMatrixLayout_t& layout, std::uint64_t rows = 4,
                      std::int64_t leading = 4, cudaDataType type = CUDA_R_32F,
                      std::int32_t batches = 1) {
    cublasLtMatrixLayoutDestroy(layout);
    CHECK_BLAS(cublasLtMatrixLayoutCreate(&layout, type, rows, 4, leading), SUCCESS);
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                &batches, sizeof(batches)),
               SUCCESS);
  }
  void prefer(cublasLtMatmulPreferenceAttributes_t name, auto value) {
    CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)),
               SUCCESS);
  }
  cublasStatus_t set(cublasLtMatmulDescAttributes_t name, auto value) {
    return cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof(value));
  }
  cublasStatus_t choose(cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, d, d,
                                                                 preference, 1, &result, &count);
    CHECK((status == CUBLAS_STATUS_SUCCESS) == (count == 1));
    algorithm = result.algo;
    return status;
  }
  cublasLtMatmulAlgo_t chosen() {
    cublasLtMatmulAlgo_t algorithm;
    CHECK_BLAS(choose(algorithm), SUCCESS);
    return algorithm;
  }
  cublasStatus_t product(const cublasLtMatmulAlgo_t& algorithm, std::size_t offset = 0,
                         void* workspace = nullptr, std::size_t bytes = 0) {
    const float one = 1, zero = 0;
    float* const sums = data + 32;
    return cublasLtMatmul(handle, operation, &one, data + offset, a, data + 16, b, &zero, sums, d,
                          sums, d, &algorithm, workspace, bytes, stream);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Square,
                  "an algorithm requires the alignment and the workspace it was chosen for") {
  CHECK_BLAS(product(chosen()), SUCCESS);
  CHECK_BLAS(product(chosen(), 1), INVALID_VALUE);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(256));
  CHECK_BLAS(product(chosen()), INVALID_VALUE);  // B is aligned to 64 bytes only
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(16));
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(4096));
  const Array<int> workspace(1024);
  CHECK_BLAS(product(chosen()), INVALID_VALUE);
  CHECK_BLAS(product(chosen(), 0, workspace, 4000), INVALID_VALUE);
  CHECK_BLAS(product(chosen(), 0, workspace, 4096), SUCCESS);
  CHECK(read(stream, workspace) == poisoned_int);
}

TEST_CASE_FIXTURE(Square, "descriptors that do not fit together are refused") {
  cublasLtMatmulAlgo_t none;
  lay_out(b, 3, 4);
  CHECK_BLAS(choose(none), INVALID_VALUE);
  lay_out(b, 4, 3);
  CHECK_BLAS(choose(none), INVALID_VALUE);
  lay_out(b, 4, 4, CUDA_R_32F, 2);
  CHECK_BLAS(choose(none), INVALID_VALUE);
  lay_out(b, 4, 4, CUDA_R_16F);
  CHECK_BLAS(choose(none), NOT_SUPPORTED);
  lay_out(b);
  CHECK_BLAS(set(CUBLASLT_MATMUL_DESC_TRANSA, std::int64_t(1)), INVALID_VALUE);
  CHECK_BLAS(set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU), SUCCESS);
  CHECK_BLAS(choose(none), NOT_SUPPORTED);
}

TEST_CASE_FIXTURE(Square, "a bias is aligned as when the algorithm was chosen") {
  const Array<float> bias(std::vector<float>(6));
  const auto add = [&](const float* elements) {
    CHECK_BLAS(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, elements), SUCCESS);
  };
  CHECK_BLAS(set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS), SUCCESS);
  add(bias);
  const cublasLtMatmulAlgo_t algorithm = chosen();
  CHECK_BLAS(product(algorithm), SUCCESS);
  add(nullptr);
  CHECK_BLAS(product(algorithm), INVALID_VALUE);
  add(bias + 1);
  CHECK_BLAS(product(algorithm), INVALID_VALUE);
  CHECK_BLAS(product(chosen()), SUCCESS);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  add(bias + 64);
  CHECK_BLAS(product(algorithm), SUCCESS);
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  CHECK(says(failure(), "a matrix product of 4x4x4 and a bias touches memory that is freed"));
}

TEST_CASE_FIXTURE(Square,
                  "a product runs in the order of its stream, and fails on unallocated memory") {
  const std::size_t before = pending_operations();
  CHECK_BLAS(product(chosen()), SUCCESS);
  CHECK(pending_operations() == before + 1);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_BLAS(product(chosen(), 60), SUCCESS);
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  CHECK(says(failure(), "a matrix product of 4x4x4 touches memory that is freed"));
  fail_call("cublasLtMatmul", 1, cudaErrorUnknown);
  CHECK_BLAS(product(chosen()), EXECUTION_FAILED);
}
