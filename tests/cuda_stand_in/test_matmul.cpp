// Products by cuBLASLt against loops over the same numbers: layouts, types, batches, refusals.
#include <cmath>
#include <complex>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device.hpp"

using namespace cuda_stand_in;

namespace {

#define CHECK_BLAS(call) CHECK(std::string(cublasLtGetStatusName(call)) == "CUBLAS_STATUS_SUCCESS")

template <class T>
struct Traits;
template <>
struct Traits<float> {
  static constexpr auto type = CUDA_R_32F, scale = CUDA_R_32F;
  static constexpr auto compute = CUBLAS_COMPUTE_32F;
  using Scale = float;
};
template <>
struct Traits<double> {
  static constexpr auto type = CUDA_R_64F, scale = CUDA_R_64F;
  static constexpr auto compute = CUBLAS_COMPUTE_64F;
  using Scale = double;
};
template <>
struct Traits<__half> {
  static constexpr auto type = CUDA_R_16F, scale = CUDA_R_32F;
  static constexpr auto compute = CUBLAS_COMPUTE_32F;
  using Scale = float;
};
template <>
struct Traits<__nv_bfloat16> {
  static constexpr auto type = CUDA_R_16BF, scale = CUDA_R_32F;
  static constexpr auto compute = CUBLAS_COMPUTE_32F;
  using Scale = float;
};
template <>
struct Traits<std::complex<float>> {
  static constexpr auto type = CUDA_C_32F, scale = CUDA_C_32F;
  static constexpr auto compute = CUBLAS_COMPUTE_32F;
  using Scale = std::complex<float>;
};
template <>
struct Traits<std::complex<double>> {
  static constexpr auto type = CUDA_C_64F, scale = CUDA_C_64F;
  static constexpr auto compute = CUBLAS_COMPUTE_64F;
  using Scale = std::complex<double>;
};

template <class T>
std::complex<double> value_of(T value) {
  if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>)
    return double(float(value));
  else return std::complex<double>(value);
}

/// Small integers, so that every type holds every sum exactly.
template <class T>
T number(int i) {
  const int real = i * 7 % 5 - 2;
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return T(typename T::value_type(real), typename T::value_type(i * 3 % 4 - 1));
  else return T(float(real));
}

/// One operand: where element (i, j) of batch b lies, and a layout that says so.
struct Matrix {
  int rows, cols, leading, batches;
  bool row_major;

  int size() const { return (row_major ? rows : cols) * leading * batches; }
  std::size_t at(int batch, int i, int j) const {
    return std::size_t(batch * (size() / batches) +
                       (row_major ? i * leading + j : j * leading + i));
  }
  cublasLtMatrixLayoutOpaque_t layout(cudaDataType type) const {
    cublasLtMatrixLayoutOpaque_t layout;
    CHECK_BLAS(
        cublasLtMatrixLayoutInit(&layout, type, std::uint64_t(rows), std::uint64_t(cols), leading));
    const std::int32_t order = row_major ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    const std::int32_t count = batches;
    const std::int64_t stride = size() / batches;
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                                sizeof(order)));
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof(count)));
    CHECK_BLAS(cublasLtMatrixLayoutSetAttribute(
        &layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
    return layout;
  }
};

struct Handle {
  Handle() { CHECK_BLAS(cublasLtCreate(&handle)); }
  ~Handle() { cublasLtDestroy(handle); }
  Handle(const Handle&) = delete;  // owns the handle
  operator cublasLtHandle_t() const { return handle; }
  cublasLtHandle_t handle = nullptr;
};

cublasLtMatmulDescOpaque_t descriptor(cublasComputeType_t compute, cudaDataType scale,
                                      std::int32_t op_a, std::int32_t op_b) {
  cublasLtMatmulDescOpaque_t result;
  CHECK_BLAS(cublasLtMatmulDescInit(&result, compute, scale));
  CHECK_BLAS(
      cublasLtMatmulDescSetAttribute(&result, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof(op_a)));
  CHECK_BLAS(
      cublasLtMatmulDescSetAttribute(&result, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof(op_b)));
  return result;
}

template <class T>
std::vector<T> numbers(int count, int seed) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(number<T>(i + seed));
  return values;
}

template <class T>
void check_product(bool row_major_ab, bool row_major_d, std::int32_t op_a, std::int32_t op_b,
                   int batches, bool accumulate) {
  constexpr int m = 5, n = 3, k = 4;
  const bool ta = op_a != CUBLAS_OP_N, tb = op_b != CUBLAS_OP_N;
  const auto matrix = [&](int rows, int cols, bool row_major, int slack) {
    return Matrix{rows, cols, (row_major ? cols : rows) + slack, batches, row_major};
  };
  const Matrix a = matrix(ta ? k : m, ta ? m : k, row_major_ab, 2);
  const Matrix b = matrix(tb ? n : k, tb ? k : n, row_major_ab, 0);
  const Matrix d = matrix(m, n, row_major_d, 1);
  const auto a_values = numbers<T>(a.size(), 1), b_values = numbers<T>(b.size(), 2);
  const auto c_values = numbers<T>(d.size(), 3);

  using Scale = typename Traits<T>::Scale;
  const Scale alpha(2), beta(accumulate ? -1.0f : 0.0f);
  const Handle handle;
  const Stream stream;
  auto operation = descriptor(Traits<T>::compute, Traits<T>::scale, op_a, op_b);
  auto a_layout = a.layout(Traits<T>::type), b_layout = b.layout(Traits<T>::type);
  auto d_layout = d.layout(Traits<T>::type);
  const Array<T> a_data(a_values), b_data(b_values), d_data(c_values);
  CHECK_BLAS(cublasLtMatmul(handle, &operation, &alpha, a_data.data, &a_layout, b_data.data,
                            &b_layout, &beta, d_data.data, &d_layout, d_data.data, &d_layout,
                            nullptr, nullptr, 0, stream));

  std::vector<std::complex<double>> expected;
  for (const T& value : c_values) expected.push_back(value_of(value));
  const auto element = [](const Matrix& of, const std::vector<T>& values, std::int32_t op,
                          int batch, int i, int j) {
    const auto value =
        value_of(op == CUBLAS_OP_N ? values[of.at(batch, i, j)] : values[of.at(batch, j, i)]);
    return op == CUBLAS_OP_C ? std::conj(value) : value;
  };
  for (int batch = 0; batch < batches; ++batch)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        std::complex<double> sum = 0;
        for (int l = 0; l < k; ++l)
          sum += element(a, a_values, op_a, batch, i, l) * element(b, b_values, op_b, batch, l, j);
        auto& target = expected[d.at(batch, i, j)];
        target = 2.0 * sum - (accumulate ? target : 0.0);
      }
  const std::vector<T> result = d_data.read(stream);
  for (std::size_t i = 0; i < result.size(); ++i) CHECK(value_of(result[i]) == expected[i]);
}

/// The status of a product of square matrices of 4 floats each, described by the arguments.
struct Refusals {
  Handle handle;
  Stream stream;
  Array<float> data{std::vector<float>(64)};
  cublasLtMatmulDescOpaque_t operation =
      descriptor(CUBLAS_COMPUTE_32F, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N);
  cublasLtMatrixLayoutOpaque_t a = square(), b = square(), d = square();
  float one = 1;

  static cublasLtMatrixLayoutOpaque_t square() {
    return Matrix{4, 4, 4, 1, true}.layout(CUDA_R_32F);
  }
  std::string product(const cublasLtMatmulAlgo_t* algorithm = nullptr, void* workspace = nullptr,
                      std::size_t bytes = 0, std::size_t offset = 0) {
    return cublasLtGetStatusName(cublasLtMatmul(
        handle, &operation, &one, data.data + offset, &a, data.data + 16, &b, &one, data.data + 32,
        &d, data.data + 32, &d, algorithm, workspace, bytes, stream));
  }
};

}  // namespace

TEST_CASE_TEMPLATE("products of every type agree with loops, in both orders, whatever op", T, float,
                   double, __half, __nv_bfloat16, std::complex<float>, std::complex<double>) {
  const Fresh fresh;
  for (const bool row_major_ab : {false, true})
    for (const bool row_major_d : {false, true})
      for (const auto op_a : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})
        for (const auto op_b : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})
          check_product<T>(row_major_ab, row_major_d, op_a, op_b, 1, false);
}

TEST_CASE_TEMPLATE("batches lie at their strides, and beta adds what was there", T, float, __half,
                   std::complex<double>) {
  const Fresh fresh;
  for (const bool row_major : {false, true})
    check_product<T>(row_major, row_major, CUBLAS_OP_N, CUBLAS_OP_T, 3, true);
}

TEST_CASE("f32 keeps its mantissa unless tf32 is asked for") {
  const Fresh fresh;
  for (const auto compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32}) {
    const Handle handle;
    const Stream stream;
    auto operation = descriptor(compute, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N);
    auto layout = Matrix{1, 1, 1, 1, true}.layout(CUDA_R_32F);
    const float fine = 1 + std::ldexp(1.0f, -20), one = 1, zero = 0;
    const Array<float> a(std::vector<float>{fine}), b(std::vector<float>{1}), d(1);
    CHECK_BLAS(cublasLtMatmul(handle, &operation, &one, a.data, &layout, b.data, &layout, &zero,
                              nullptr, &layout, d.data, &layout, nullptr, nullptr, 0, stream));
    CHECK(d.read(stream) == std::vector{compute == CUBLAS_COMPUTE_32F ? fine : 1.0f});
  }
}

TEST_CASE("a chosen algorithm wants the alignment and the workspace it was chosen for") {
  const Fresh fresh;
  Refusals r;
  cublasLtMatmulPreference_t preference;
  CHECK_BLAS(cublasLtMatmulPreferenceCreate(&preference));
  const auto choose = [&] {
    cublasLtMatmulHeuristicResult_t result;
    int count = 0;
    CHECK_BLAS(cublasLtMatmulAlgoGetHeuristic(r.handle, &r.operation, &r.a, &r.b, &r.d, &r.d,
                                              preference, 1, &result, &count));
    CHECK(count == 1);
    return result;
  };
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, auto value) {
    CHECK_BLAS(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)));
  };
  auto result = choose();
  CHECK(result.workspaceSize == 0);
  CHECK(r.product(&result.algo) == "CUBLAS_STATUS_INVALID_VALUE");  // B is aligned to 64 bytes only
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t(16));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(16));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t(16));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t(16));
  result = choose();
  CHECK(r.product(&result.algo) == "CUBLAS_STATUS_SUCCESS");
  CHECK(r.product(&result.algo, nullptr, 0, 1) == "CUBLAS_STATUS_INVALID_VALUE");

  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(4096));
  result = choose();
  CHECK(result.workspaceSize == 4096);
  const Array<int> workspace(1024);
  CHECK(r.product(&result.algo) == "CUBLAS_STATUS_INVALID_VALUE");
  CHECK(r.product(&result.algo, workspace.data, 4000) == "CUBLAS_STATUS_INVALID_VALUE");
  CHECK(r.product(&result.algo, workspace.data, 4096) == "CUBLAS_STATUS_SUCCESS");
  CHECK_CUDA(cudaStreamSynchronize(r.stream));
  CHECK_BLAS(cublasLtMatmulPreferenceDestroy(preference));
}

TEST_CASE("descriptors that do not fit together are refused") {
  const Fresh fresh;
  Refusals r;
  CHECK(r.product() == "CUBLAS_STATUS_SUCCESS");
  r.b = Matrix{3, 4, 4, 1, true}.layout(CUDA_R_32F);
  CHECK(r.product() == "CUBLAS_STATUS_INVALID_VALUE");
  r.b = Matrix{4, 4, 3, 1, true}.layout(CUDA_R_32F);
  CHECK(r.product() == "CUBLAS_STATUS_INVALID_VALUE");
  r.b = Matrix{4, 4, 4, 2, true}.layout(CUDA_R_32F);
  CHECK(r.product() == "CUBLAS_STATUS_INVALID_VALUE");
  r.b = Matrix{4, 4, 4, 1, true}.layout(CUDA_R_16F);
  CHECK(r.product() == "CUBLAS_STATUS_NOT_SUPPORTED");
  r.b = Refusals::square();
  r.operation = descriptor(CUBLAS_COMPUTE_64F, CUDA_R_64F, CUBLAS_OP_N, CUBLAS_OP_N);
  CHECK(r.product() == "CUBLAS_STATUS_NOT_SUPPORTED");
  const std::int64_t wide = 1;
  CHECK(cublasLtMatmulDescSetAttribute(&r.operation, CUBLASLT_MATMUL_DESC_TRANSA, &wide,
                                       sizeof(wide)) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("a product runs in the order of its stream, and fails on memory that is not there") {
  const Fresh fresh;
  {
    Refusals r;
    const std::size_t before = pending_operations();
    CHECK(r.product() == "CUBLAS_STATUS_SUCCESS");
    CHECK(pending_operations() == before + 1);
    CHECK_CUDA(cudaStreamSynchronize(r.stream));
    CHECK(r.product(nullptr, nullptr, 0, 60) == "CUBLAS_STATUS_SUCCESS");
    CHECK_ERROR(cudaStreamSynchronize(r.stream), cudaErrorIllegalAddress);
    CHECK(take_faults() ==
          "a matrix product of 4x4x4 touches memory that is freed or, in its stream, not yet "
          "allocated\n");
    reset();
  }
  Refusals r;
  fail_call("cublasLtMatmul", 1, cudaErrorUnknown);
  CHECK(r.product() == "CUBLAS_STATUS_EXECUTION_FAILED");
}
