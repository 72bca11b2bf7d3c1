// Entry points of cuBLASLt: handles, the choice of an algorithm, and the product itself.
//
// The one algorithm relies on what it was chosen for, as the real ones do: operands aligned as the
// preference promised, and a workspace of the requested size, which it overwrites. If the
// preference allows it, partial sums are added in the result's 16-bit type. Only the products that
// the project uses are supported: D = op(A) op(B), without conjugates, with C equal to D.
#include <algorithm>
#include <string>

#include "blas_descriptors.hpp"
#include "blas_product.hpp"
#include "entry.hpp"

struct cublasLtContext {};

using namespace cuda_stand_in;

namespace {

constexpr std::uint64_t mark = 0x6d6d;  // of an algorithm chosen by the stand-in
constexpr std::size_t max_workspace = std::size_t(64) << 10;

// Limits beyond which users report that cuBLASLt refuses a product.
constexpr std::int64_t max_batches = 65535, max_complex_columns = 4194240;

cublasStatus_t status_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return CUBLAS_STATUS_SUCCESS;
    case cudaErrorInvalidValue: return CUBLAS_STATUS_INVALID_VALUE;
    case cudaErrorMemoryAllocation: return CUBLAS_STATUS_ALLOC_FAILED;
    case cudaErrorNotSupported: return CUBLAS_STATUS_NOT_SUPPORTED;
    case cudaErrorNoDevice:
    case cudaErrorInitializationError: return CUBLAS_STATUS_NOT_INITIALIZED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

bool is_transposed(std::int32_t operation) { return operation != CUBLAS_OP_N; }
bool is_known(std::int32_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T;
}

// The combinations of types documented by cuBLASLt in which A, B and D have the same type.
bool supported(const MatmulDescriptor& descriptor, const MatrixLayout& a, const MatrixLayout& b,
               const MatrixLayout& d) {
  if (a.type != b.type || a.type != d.type) return false;
  const int type = int(a.type), scale = descriptor.scale;
  switch (descriptor.compute) {
    case CUBLAS_COMPUTE_32F:
      if (scale == CUDA_R_32F)
        return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
      return scale == CUDA_C_32F && type == scale;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return (scale == CUDA_R_32F || scale == CUDA_C_32F) && type == scale;
    case CUBLAS_COMPUTE_64F: return (scale == CUDA_R_64F || scale == CUDA_C_64F) && type == scale;
    default: return false;
  }
}

// cublasLtEpilogue_t (cublasLt.h 13.0): only a bias of one product of floats or 16-bit floats.
bool known_epilogue(const MatmulDescriptor& descriptor, std::int64_t batches) {
  return descriptor.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
         (descriptor.epilogue == CUBLASLT_EPILOGUE_BIAS && descriptor.scale == CUDA_R_32F &&
          batches == 1);
}

std::uint64_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return bits & (~bits + 1);
}

bool sound(const MatrixLayout& layout) {
  return layout.rows > 0 && layout.cols > 0 && layout.batches > 0 &&
         layout.leading >= std::int64_t(layout.rows) && bytes_of(cudaDataType(layout.type)) > 0;
}

Operand operand(const MatrixLayout& layout, const void* base, std::int32_t operation) {
  Operand result{.base = const_cast<void*>(base),
                 .type = cudaDataType(layout.type),
                 .row_stride = 1,
                 .col_stride = layout.leading,
                 .batch_stride = layout.batch_stride};
  if (is_transposed(operation)) std::swap(result.row_stride, result.col_stride);
  return result;
}

std::size_t span_bytes(const MatrixLayout& layout) {
  const auto stride = std::uint64_t(layout.batch_stride) * std::uint64_t(layout.batches - 1);
  return (stride + (layout.cols - 1) * std::uint64_t(layout.leading) + layout.rows) *
         bytes_of(cudaDataType(layout.type));
}

/// The extents of the product; an error if the descriptors do not fit together.
cudaError_t describe(const MatmulDescriptor& descriptor, const MatrixLayout& a,
                     const MatrixLayout& b, const MatrixLayout& d, Product& product) {
  if (!sound(a) || !sound(b) || !sound(d)) return cudaErrorInvalidValue;
  if (!supported(descriptor, a, b, d) || !is_known(descriptor.transpose_a) ||
      !is_known(descriptor.transpose_b) || !known_epilogue(descriptor, d.batches))
    return cudaErrorNotSupported;
  const bool ta = is_transposed(descriptor.transpose_a), tb = is_transposed(descriptor.transpose_b);
  product.m = std::int64_t(ta ? a.cols : a.rows);
  product.k = std::int64_t(ta ? a.rows : a.cols);
  product.n = std::int64_t(tb ? b.rows : b.cols);
  product.batches = d.batches;
  const bool fits = product.k == std::int64_t(tb ? b.cols : b.rows) &&
                    product.m == std::int64_t(d.rows) && product.n == std::int64_t(d.cols) &&
                    a.batches == d.batches && b.batches == d.batches;
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

std::string text_of(const Product& product) {
  return std::to_string(product.m) + 'x' + std::to_string(product.n) + 'x' +
         std::to_string(product.k) +
         (product.batches > 1 ? " by " + std::to_string(product.batches) : "");
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return status_of(entry("cublasLtCreate", {}, [&](Context&) {
    *handle = new cublasLtContext;
    return cudaSuccess;
  }));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference_handle, int requested,
    cublasLtMatmulHeuristicResult_t results[], int* returned) {
  return status_of(entry("cublasLtMatmulAlgoGetHeuristic", {}, [&](Context&) {
    *returned = 0;
    if (handle == nullptr || requested < 1) return cudaErrorInvalidValue;
    Product product;
    const cudaError_t wrong =
        describe(descriptor_of(operation), layout_of(a), layout_of(b), layout_of(d), product);
    if (wrong != cudaSuccess) return wrong;
    if (c != d) return cudaErrorNotSupported;
    if (product.batches > max_batches ||
        (layout_of(d).type == CUDA_C_32F && product.n > max_complex_columns))
      return cudaErrorNotSupported;
    const MatmulPreference& preference = preference_of(preference_handle);
    for (const std::uint32_t alignment : preference.alignments)
      if (alignment < bytes_of(cudaDataType(layout_of(d).type))) return cudaErrorNotSupported;
    const bool rounds = bytes_of(cudaDataType(layout_of(d).type)) == 2 &&
                        (preference.reductions & (CUBLASLT_REDUCTION_SCHEME_INPLACE |
                                                  CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) != 0;
    cublasLtMatmulHeuristicResult_t& result = results[0];
    result = {};
    result.algo.data[0] = mark;
    for (int i = 0; i < 4; ++i) result.algo.data[1 + i] = preference.alignments[i];
    result.workspaceSize = std::min<std::size_t>(preference.workspace, max_workspace);
    result.algo.data[5] = result.workspaceSize;
    result.algo.data[6] = rounds;
    // cublasLt.h 13.0, CUBLASLT_MATMUL_DESC_BIAS_POINTER: its alignment counts here.
    result.algo.data[7] = alignment_of(descriptor_of(operation).bias);
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
    *returned = 1;
    return cudaSuccess;
  }));
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream_handle) {
  Product product;
  const MatmulDescriptor& descriptor = descriptor_of(operation);
  const MatrixLayout layouts[] = {layout_of(a_layout), layout_of(b_layout), layout_of(d_layout)};
  const cudaError_t wrong = describe(descriptor, layouts[0], layouts[1], layouts[2], product);
  const bool biased = descriptor.epilogue == CUBLASLT_EPILOGUE_BIAS;
  const std::string text = text_of(product) + (biased ? " and a bias" : "");
  return status_of(
      entry("cublasLtMatmul", {.stream = stream_handle, .detail = text}, [&](Context& context) {
        CUstream_st* stream = context.stream(stream_handle);
        if (handle == nullptr || stream == nullptr || algorithm == nullptr ||
            algorithm->data[0] != mark)
          return cudaErrorInvalidValue;
        if (wrong != cudaSuccess) return wrong;
        product.scale = cudaDataType(descriptor.scale);
        product.add = is_number(product.scale, beta, 1);
        if (!is_number(product.scale, alpha, 1) ||
            !(product.add || is_number(product.scale, beta, 0)) || c != d || c_layout != d_layout)
          return cudaErrorNotSupported;

        const void* bases[] = {a, b, d, d};
        for (int i = 0; i < 4; ++i)
          if (reinterpret_cast<std::uintptr_t>(bases[i]) % algorithm->data[1 + i] != 0)
            return cudaErrorInvalidValue;
        if (biased) {
          product.bias = descriptor.bias;
          if (product.bias == nullptr || alignment_of(product.bias) < algorithm->data[7])
            return cudaErrorInvalidValue;
        }
        const std::size_t needed = algorithm->data[5];
        if (needed > workspace_bytes || (needed > 0 && workspace == nullptr))
          return cudaErrorInvalidValue;

        product.a = operand(layouts[0], a, descriptor.transpose_a);
        product.b = operand(layouts[1], b, descriptor.transpose_b);
        product.d = operand(layouts[2], d, CUBLAS_OP_N);
        product.tf32 = descriptor.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
        product.split = algorithm->data[6] != 0;

        const std::string what = "a matrix product of " + text;
        Machine& machine = context.machine;
        machine.enqueue(
            *stream,
            {.name = what, .body = [=, &machine] {
               const Operand* operands[] = {&product.a, &product.b, &product.d};
               for (int i = 0; i < 3; ++i)
                 if (!machine.check_usable(what, operands[i]->base, span_bytes(layouts[i]))) return;
               const std::size_t bias_bytes = std::size_t(product.m) * bytes_of(product.d.type);
               if (biased && !machine.check_usable(what, product.bias, bias_bytes)) return;
               if (needed > 0) {
                 if (!machine.check_usable(what, workspace, needed)) return;
                 poison(workspace, needed);
               }
               product.compute();
             }});
        return cudaSuccess;
      }));
}
