// Products by cuBLASLt: what an algorithm relies on, refused calls, and when a product runs. The
// tests of the library's products check values.
#include <cublasLt.h>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

#define CHECK_BLAS(call) \
  CHECK(std::string(cublasLtGetStatusString(call)) == "CUBLAS_STATUS_SUCCESS")

/// The status of a product of square matrices of 4 floats each, described by the members.
struct Square {
  cublasLtHandle_t handle{};
  Stream stream;
  Array<float> data{std::vector<float>(64)};
  cublasLtMatmulDesc_t operation{};
  cublasLtMatrixLayout_t a{}, b{}, d{};
  cublasLtMatmulPreference_t preference{};

  Square() {
    CHECK_BLAS(cublasLtCreate(&handle));
    CHECK_BLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    for (cublasLtMatrixLayout_t* const layout : {&a, &b, &d}) lay_out(*layout, 4, 4);
    CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference));
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(name, std::uint32_t(16));
  }
  ~Square() {
    cublasLtMatmulPreferenceDestroy(preference);
    for (const cublasLtMatrixLayout_t layout : {a, b, d}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation);
    cublasLtDestroy(handle);
  }
  Square(const Square&) = delete;  // owns handles

  static void lay_out(cublasLtMatrixLayout_t& layout, std::uint64_t rows, std::int64_t leading,
                      cudaDataType type = CUDA_R_32F, std::int32_t batches = 1) {
    cublasLtMatrixLayoutDestroy(layout);
    CHECK_BLAS(cublasLtMatrixLayoutCreate(&layout, type, rows, 4, leading));
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                &batches, sizeof(batches)));
  }
  void set(cublasLtMatmulPreferenceAttributes_t name, auto value) {
    CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)));
  }
  cublasLtMatmulHeuristicResult_t chosen() {
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    result.state = cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, d, d, preference, 1,
                                                  &result, &count);
    CHECK((result.state == CUBLAS_STATUS_SUCCESS) == (count == 1));
    return result;
  }
  std::string refusal() { return cublasLtGetStatusString(chosen().state); }
  std::string product(const cublasLtMatmulAlgo_t& algorithm, void* workspace = nullptr,
                      std::size_t bytes = 0, std::size_t offset = 0) {
    const float one = 1, zero = 0;
    float* const result = data.data + 32;
    return cublasLtGetStatusString(cublasLtMatmul(handle, operation, &one, data.data + offset, a,
                                                  data.data + 16, b, &zero, result, d, result, d,
                                                  &algorithm, workspace, bytes, stream));
  }
};

}  // namespace

TEST_CASE("a chosen algorithm requires the alignment and the workspace it was chosen for") {
  const Fresh fresh;
  Square s;
  auto result = s.chosen();
  CHECK(result.workspaceSize == 0);
  CHECK(s.product(result.algo) == "CUBLAS_STATUS_SUCCESS");
  CHECK(s.product(result.algo, nullptr, 0, 1) == "CUBLAS_STATUS_INVALID_VALUE");
  s.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(256));
  CHECK(s.product(s.chosen().algo) == "CUBLAS_STATUS_INVALID_VALUE");  // workspace of 64 bytes only
  s.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(16));

  s.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(4096));
  result = s.chosen();
  CHECK(result.workspaceSize == 4096);
  const Array<int> workspace(1024);
  CHECK(s.product(result.algo) == "CUBLAS_STATUS_INVALID_VALUE");
  CHECK(s.product(result.algo, workspace.data, 4000) == "CUBLAS_STATUS_INVALID_VALUE");
  CHECK(s.product(result.algo, workspace.data, 4096) == "CUBLAS_STATUS_SUCCESS");
  CHECK_CUDA(cudaStreamSynchronize(s.stream));
}

TEST_CASE("descriptors that do not fit together are refused") {
  const Fresh fresh;
  Square s;
  CHECK(s.refusal() == "CUBLAS_STATUS_SUCCESS");
  Square::lay_out(s.b, 3, 4);
  CHECK(s.refusal() == "CUBLAS_STATUS_INVALID_VALUE");
  Square::lay_out(s.b, 4, 3);
  CHECK(s.refusal() == "CUBLAS_STATUS_INVALID_VALUE");
  Square::lay_out(s.b, 4, 4, CUDA_R_32F, 2);
  CHECK(s.refusal() == "CUBLAS_STATUS_INVALID_VALUE");
  Square::lay_out(s.b, 4, 4, CUDA_R_16F);
  CHECK(s.refusal() == "CUBLAS_STATUS_NOT_SUPPORTED");
  const std::int64_t wide = 1;
  CHECK(cublasLtMatmulDescSetAttribute(s.operation, CUBLASLT_MATMUL_DESC_TRANSA, &wide,
                                       sizeof(wide)) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("a bias is added to each column, and aligned as when the algorithm was chosen") {
  const Fresh fresh;
  Square s;
  const auto use = [&](cublasLtEpilogue_t epilogue, const float* bias) {
    const std::uint32_t number = epilogue;
    CHECK_BLAS(cublasLtMatmulDescSetAttribute(s.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &number,
                                              sizeof(number)));
    CHECK_BLAS(cublasLtMatmulDescSetAttribute(s.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                              sizeof(bias)));
  };
  const std::vector<float> elements = {0.5f, -1, 2, 4, 8, 16};
  const Array<float> bias(elements);
  use(CUBLASLT_EPILOGUE_GELU, bias.data);
  CHECK(s.refusal() == "CUBLAS_STATUS_NOT_SUPPORTED");
  use(CUBLASLT_EPILOGUE_BIAS, bias.data);
  const auto algorithm = s.chosen().algo;
  CHECK(s.product(algorithm) == "CUBLAS_STATUS_SUCCESS");  // of zeros
  const std::vector<float> results = s.data.read(s.stream);
  for (std::size_t i = 0; i < 16; ++i) CHECK(results[32 + i] == elements[i % 4]);

  use(CUBLASLT_EPILOGUE_BIAS, nullptr);
  CHECK(s.product(algorithm) == "CUBLAS_STATUS_INVALID_VALUE");
  use(CUBLASLT_EPILOGUE_BIAS, bias.data + 1);
  CHECK(s.product(algorithm) == "CUBLAS_STATUS_INVALID_VALUE");
  CHECK(s.product(s.chosen().algo) == "CUBLAS_STATUS_SUCCESS");
  CHECK_CUDA(cudaStreamSynchronize(s.stream));
  use(CUBLASLT_EPILOGUE_BIAS, bias.data + 64);
  CHECK(s.product(algorithm) == "CUBLAS_STATUS_SUCCESS");
  CHECK_ERROR(cudaStreamSynchronize(s.stream), cudaErrorIllegalAddress);
  CHECK(take_faults() ==
        "a matrix product of 4x4x4 and a bias touches memory that is freed or, in its stream, not "
        "yet allocated\n");
  reset();
}

TEST_CASE("a product runs in the order of its stream, and fails on unallocated memory") {
  const Fresh fresh;
  {
    Square s;
    const auto algorithm = s.chosen().algo;
    const std::size_t before = pending_operations();
    CHECK(s.product(algorithm) == "CUBLAS_STATUS_SUCCESS");
    CHECK(pending_operations() == before + 1);
    CHECK_CUDA(cudaStreamSynchronize(s.stream));
    CHECK(s.product(algorithm, nullptr, 0, 60) == "CUBLAS_STATUS_SUCCESS");
    CHECK_ERROR(cudaStreamSynchronize(s.stream), cudaErrorIllegalAddress);
    CHECK(take_faults() ==
          "a matrix product of 4x4x4 touches memory that is freed or, in its stream, not yet "
          "allocated\n");
    reset();
  }
  Square s;
  const auto algorithm = s.chosen().algo;
  fail_call("cublasLtMatmul", 1, cudaErrorUnknown);
  CHECK(s.product(algorithm) == "CUBLAS_STATUS_EXECUTION_FAILED");
}
