// C = A · B, C += A · B or C = A · B + bias through cuBLASLt, for 16-bit floats, float, double and
// complex numbers.
//
// cuBLASLt is column-major, and a row-major matrix is its own transpose in column-major order:
// cuBLASLt computes C^T = B^T · A^T, without copies. Sums and partial sums of 16-bit floats are
// accumulated in float; floats are multiplied in full precision, unless TF32 is allowed.
//
// Plans of products (descriptors and the choice of an algorithm) are cached per thread and device,
// by shape and layout. Needs no device compiler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include <cleave/core/cuda/fp16.hpp>
// CUDA's headers must follow fp16.hpp.
#include <cublasLt.h>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/error.hpp>
#include <cleave/kernels/cuda/tf32.hpp>
#include <cleave/kernels/matrix.hpp>
#include <cleave/tensor/cuda/device.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::inline v0::cuda {

namespace detail {

/// @throws Error  unless `status` is success
inline void check_cublaslt(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error("matmul", std::string("cuBLASLt: ") + cublasLtGetStatusString(status));
}

template <class T>
inline constexpr bool cublaslt_knows = !std::is_integral_v<T>;

template <class T>
constexpr cudaDataType cuda_type() {
  if constexpr (std::is_same_v<T, half>) return CUDA_R_16F;
  else if constexpr (std::is_same_v<T, bfloat16>) return CUDA_R_16BF;
  else if constexpr (std::is_same_v<T, float>) return CUDA_R_32F;
  else if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return CUDA_C_32F;
  else return CUDA_C_64F;
}

/// Limits of one cuBLASLt call: matrices in a batch, and columns of complex<float>. Not documented
/// by cuBLASLt; XLA uses the same limits.
inline constexpr index_t max_batches = 65535, max_complex_columns = 4194240;

/// A column-major operand.
struct LtOperand {
  bool transposed = false;      ///< whether the factor is the transpose of the stored matrix
  std::uint32_t alignment = 1;  ///< of every matrix of the batch, in bytes
  index_t rows = 0, cols = 0;   ///< as stored
  index_t leading = 1;          ///< from one column to the next, in elements
  index_t batch_stride = 0;

  friend bool operator==(const LtOperand&, const LtOperand&) = default;
};

/// The largest power of two, up to 256, that divides an address.
inline std::uint32_t alignment_of(std::uintptr_t address) {
  address |= 256;
  return std::uint32_t(address & (~address + 1));
}

/// Describes the transpose of a row-major matrix, which has the same bytes.
/// @return whether cuBLASLt can use it in place
template <class T>
bool describe(const kernels::Matrix<T>& m, index_t batch_stride, index_t batches,
              LtOperand& operand) {
  const auto stored = [&](index_t rows, index_t cols, index_t stride) {
    operand.rows = rows;
    operand.cols = cols;
    operand.leading = cols == 1 ? rows : stride;  // the stride of a single column is unused
    return operand.leading >= rows;
  };
  const bool by_rows = (m.col_stride == 1 || m.cols == 1) && stored(m.cols, m.rows, m.row_stride);
  if (!by_rows && !((m.row_stride == 1 || m.rows == 1) && stored(m.rows, m.cols, m.col_stride)))
    return false;
  operand.transposed = !by_rows;
  operand.batch_stride = batches == 1 ? 0 : batch_stride;
  auto address = reinterpret_cast<std::uintptr_t>(m.data);
  if (batches > 1) address |= std::uintptr_t(batch_stride) * sizeof(T);
  operand.alignment = alignment_of(address);
  return batch_stride >= 0 && operand.alignment >= sizeof(T);
}

/// The cache key of a product: `first` · `second` = `result`, all column-major.
struct LtProduct {
  cudaDataType type{};
  cudaDataType scale{};
  cublasComputeType_t compute{};
  std::int32_t batches = 1;
  std::uint32_t bias_alignment = 0;  ///< of the bias, in bytes; 0: there is none
  LtOperand first{}, second{}, result{};

  friend bool operator==(const LtProduct&, const LtProduct&) = default;

  std::size_t hash() const {
    std::uint64_t h = std::uint64_t(type) * 31 + std::uint64_t(compute) + bias_alignment;
    for (const LtOperand* o : {&first, &second, &result})
      for (const index_t value : {o->rows, o->cols, o->leading, o->batch_stride,
                                  index_t(o->alignment) * 2 + o->transposed, index_t(batches)})
        h = (h ^ std::uint64_t(value)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return std::size_t(h);
  }

  /// @throws Error  with the factors' shapes, unless `status` is success
  void check(cublasStatus_t status) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    const auto text = [](index_t a, index_t b) {
      return "[" + std::to_string(a) + ", " + std::to_string(b) + "]";
    };
    const index_t k = second.transposed ? second.cols : second.rows;
    throw Error("matmul", std::string("cuBLASLt: ") + cublasLtGetStatusString(status),
                {.shapes = text(result.cols, k) + " and " + text(k, result.rows)});
  }
};

/// Destroys cuBLASLt's objects.
struct LtDestroy {
  void operator()(cublasLtMatmulDesc_t p) const { cublasLtMatmulDescDestroy(p); }
  void operator()(cublasLtMatrixLayout_t p) const { cublasLtMatrixLayoutDestroy(p); }
  void operator()(cublasLtMatmulPreference_t p) const { cublasLtMatmulPreferenceDestroy(p); }
};
template <class Opaque>
using LtOwned = std::unique_ptr<Opaque, LtDestroy>;

/// A product that is ready to be launched.
class LtPlan {
 public:
  /// @throws Error if cuBLASLt cannot compute it, unless a bias is to be added
  LtPlan(cublasLtHandle_t handle, const LtProduct& product, const void* bias)
      : product_(product),
        operation_(describe_operation(product)),
        first_(lay_out(product, product.first)),
        second_(lay_out(product, product.second)),
        result_(lay_out(product, product.result)) {
    if (bias != nullptr) add_bias(bias);
    choose(handle);
  }

  const LtProduct& product() const { return product_; }

  /// Enqueues the product on the current stream.
  /// @param add   whether it is added to the result
  /// @param bias  added to every column; null without one
  /// @return whether cuBLASLt can add the bias; if not, nothing was enqueued
  bool run(cublasLtHandle_t handle, const void* first, const void* second, void* result, bool add,
           const void* bias) const {
    if (!supported_) return false;
    if (bias != nullptr) point_to_bias(bias);
    const std::shared_ptr<void> workspace = allocate_bytes(Cuda{}, workspace_);
    static constexpr double one_double[] = {1, 0}, zero_double[] = {0, 0};  // and complex numbers
    static constexpr float one_float[] = {1, 0};
    const bool doubles = product_.compute == CUBLAS_COMPUTE_64F;
    const void* zero = zero_double;  // also of floats
    const void* one = doubles ? static_cast<const void*>(one_double) : one_float;
    product_.check(cublasLtMatmul(handle, operation_.get(), one, first, first_.get(), second,
                                  second_.get(), add ? one : zero, result, result_.get(), result,
                                  result_.get(), &algorithm_, workspace.get(), workspace_,
                                  current_stream().get()));
    return true;
  }

 private:
  using Operation = LtOwned<cublasLtMatmulDescOpaque_t>;
  using Layout = LtOwned<cublasLtMatrixLayoutOpaque_t>;
  using Preference = LtOwned<cublasLtMatmulPreferenceOpaque_t>;

  static constexpr std::uint64_t max_workspace = std::uint64_t(32) << 20;

  static Operation describe_operation(const LtProduct& product) {
    cublasLtMatmulDesc_t made = nullptr;
    check_cublaslt(cublasLtMatmulDescCreate(&made, product.compute, product.scale));
    Operation operation(made);
    const auto transpose = [&](cublasLtMatmulDescAttributes_t which, const LtOperand& operand) {
      const std::int32_t op = operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
      check_cublaslt(cublasLtMatmulDescSetAttribute(made, which, &op, sizeof(op)));
    };
    transpose(CUBLASLT_MATMUL_DESC_TRANSA, product.first);
    transpose(CUBLASLT_MATMUL_DESC_TRANSB, product.second);
    return operation;
  }

  void point_to_bias(const void* bias) const {
    check_cublaslt(cublasLtMatmulDescSetAttribute(
        operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
  }

  /// A bias that is aligned as this one, which also determines the algorithm.
  void add_bias(const void* bias) const {
    const std::uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    check_cublaslt(cublasLtMatmulDescSetAttribute(operation_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                  &epilogue, sizeof(epilogue)));
    point_to_bias(bias);
  }

  static Layout lay_out(const LtProduct& product, const LtOperand& operand) {
    cublasLtMatrixLayout_t made = nullptr;
    check_cublaslt(cublasLtMatrixLayoutCreate(&made, product.type, std::uint64_t(operand.rows),
                                              std::uint64_t(operand.cols), operand.leading));
    Layout layout(made);
    if (product.batches > 1) {
      check_cublaslt(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                      &product.batches, sizeof(product.batches)));
      check_cublaslt(
          cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                           &operand.batch_stride, sizeof(operand.batch_stride)));
    }
    return layout;
  }

  void choose(cublasLtHandle_t handle) {
    cublasLtMatmulPreference_t made = nullptr;
    check_cublaslt(cublasLtMatmulPreferenceCreate(&made));
    const Preference preference(made);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
      check_cublaslt(cublasLtMatmulPreferenceSetAttribute(made, which, &value, sizeof(value)));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, max_workspace);
    if (product_.type != product_.scale)  // else partial sums may be added as 16-bit floats
      set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
          std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product_.first.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product_.second.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product_.result.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product_.result.alignment);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation_.get(), first_.get(), second_.get(),
                                       result_.get(), result_.get(), made, 1, &best, &found);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = found == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : best.state;
    supported_ = product_.bias_alignment == 0 || status != CUBLAS_STATUS_NOT_SUPPORTED;
    if (supported_) product_.check(status);
    algorithm_ = best.algo;
    workspace_ = best.workspaceSize;
  }

  LtProduct product_;
  Operation operation_;
  Layout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_ = 0;
  bool supported_ = true;
};

/// The cuBLASLt handle and plans of a thread on one device.
class LtContext {
 public:
  LtContext() { check_cublaslt(cublasLtCreate(&handle_)); }
  LtContext(const LtContext&) = delete;  // owns a handle
  LtContext& operator=(const LtContext&) = delete;
  ~LtContext() { cublasLtDestroy(handle_); }

  bool run(const LtProduct& product, const void* first, const void* second, void* result, bool add,
           const void* bias) {
    std::unique_ptr<LtPlan>& plan = plans_[product.hash() % plans_.size()];
    if (plan == nullptr || !(plan->product() == product))
      plan = std::make_unique<LtPlan>(handle_, product, bias);
    return plan->run(handle_, first, second, result, add, bias);
  }

 private:
  cublasLtHandle_t handle_ = nullptr;
  std::array<std::unique_ptr<LtPlan>, 256> plans_;  ///< direct-mapped cache by hash
};

/// Computes C if cuBLASLt can use all operands in place, and add the bias to its rows.
/// @param bias  as many elements as C has columns; null without one
/// @pre no extent is 0, at most `max_batches` matrices; one, and not `add`, with a bias
/// @return whether it was computed; if not, an operand has to be packed, or the bias added later
template <class T>
bool cublaslt_gemm(const kernels::Matrix<const T>& a, const kernels::Matrix<const T>& b,
                   const kernels::Matrix<T>& c, const kernels::Batches& batches, bool add,
                   const T* bias = nullptr) {
  LtProduct product;
  product.type = cuda_type<T>();
  product.scale = cuda_type<accumulator_t<T>>();
  product.compute = product.scale == CUDA_R_64F || product.scale == CUDA_C_64F ? CUBLAS_COMPUTE_64F
                    : std::is_same_v<T, float> && tf32_is_allowed() ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                    : CUBLAS_COMPUTE_32F;
  product.batches = std::int32_t(batches.count);
  if (!describe(b, batches.b_stride, batches.count, product.first) ||
      !describe(a, batches.a_stride, batches.count, product.second) ||
      !describe(c, batches.c_stride, batches.count, product.result) || product.result.transposed)
    return false;
  if (bias != nullptr)
    product.bias_alignment = alignment_of(reinterpret_cast<std::uintptr_t>(bias));
  return of_current_device<LtContext>("matmul").run(product, b.data, a.data, c.data, add, bias);
}

}  // namespace detail

}  // namespace cleave::inline v0::cuda
