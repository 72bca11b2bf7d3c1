// Entry points of cuBLASLt: handles, the choice of an algorithm, and the product itself.
//
// The one algorithm relies on what it was chosen for, as the real ones do: operands aligned as the
// preference promised, and as much workspace as the choice asked for, which it overwrites. Where
// the preference lets it, it adds partial sums as the 16-bit floats that the result has.
#include <algorithm>
#include <cstring>
#include <string>

#include "blas_descriptors.hpp"
#include "blas_product.hpp"
#include "entry.hpp"
#include "poison.hpp"

struct cublasLtContext {};

using namespace cuda_stand_in;

namespace {

constexpr std::uint64_t mark = 0x6d6d;  // of an algorithm that was chosen here
constexpr std::size_t max_workspace = std::size_t(64) << 10;

// What users of cuBLASLt report that it refuses.
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

// The combinations of types that cuBLASLt documents for what is not quantised.
bool supported(const MatmulDescriptor& descriptor, const MatrixLayout& a, const MatrixLayout& b,
               const MatrixLayout& c, const MatrixLayout& d) {
  if (a.type != b.type || c.type != d.type) return false;
  const std::int32_t scale = descriptor.scale;
  const std::uint32_t in = a.type, out = c.type;
  const bool halves = (in == CUDA_R_16F || in == CUDA_R_16BF) && (out == in || out == CUDA_R_32F);
  switch (descriptor.compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return scale == CUDA_R_16F && in == CUDA_R_16F && out == CUDA_R_16F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      if (scale == CUDA_R_32F) return halves || (in == CUDA_R_32F && out == CUDA_R_32F);
      return scale == CUDA_C_32F && in == CUDA_C_32F && out == CUDA_C_32F;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return (scale == CUDA_R_32F || scale == CUDA_C_32F) && int(in) == scale && int(out) == scale;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return (scale == CUDA_R_64F || scale == CUDA_C_64F) && int(in) == scale && int(out) == scale;
    default: return false;
  }
}

bool sound(const MatrixLayout& layout) {
  const std::uint64_t contiguous = layout.row_major() ? layout.cols : layout.rows;
  return layout.rows > 0 && layout.cols > 0 && layout.batches > 0 &&
         layout.leading >= std::int64_t(contiguous) &&
         (layout.order == CUBLASLT_ORDER_COL || layout.row_major()) &&
         bytes_of(cudaDataType(layout.type)) > 0;
}

Operand operand(const MatrixLayout& layout, const void* base, std::int32_t operation) {
  Operand result{.base = const_cast<void*>(base),
                 .type = cudaDataType(layout.type),
                 .row_stride = layout.row_major() ? layout.leading : 1,
                 .col_stride = layout.row_major() ? 1 : layout.leading,
                 .batch_stride = layout.batch_stride,
                 .conjugate = operation == CUBLAS_OP_C};
  if (is_transposed(operation)) std::swap(result.row_stride, result.col_stride);
  return result;
}

std::size_t span_bytes(const MatrixLayout& layout) {
  const std::uint64_t lines = layout.row_major() ? layout.rows : layout.cols;
  const std::uint64_t line = layout.row_major() ? layout.cols : layout.rows;
  const auto stride = std::uint64_t(layout.batch_stride) * std::uint64_t(layout.batches - 1);
  return (stride + (lines - 1) * std::uint64_t(layout.leading) + line) *
         bytes_of(cudaDataType(layout.type));
}

/// The extents of the product; an error if the descriptors do not fit together.
cudaError_t describe(const MatmulDescriptor& descriptor, const MatrixLayout& a,
                     const MatrixLayout& b, const MatrixLayout& c, const MatrixLayout& d,
                     Product& product) {
  if (!sound(a) || !sound(b) || !sound(c) || !sound(d)) return cudaErrorInvalidValue;
  if (!supported(descriptor, a, b, c, d) || descriptor.transpose_c != CUBLAS_OP_N ||
      descriptor.epilogue != CUBLASLT_EPILOGUE_DEFAULT ||
      descriptor.pointer_mode != CUBLASLT_POINTER_MODE_HOST)
    return cudaErrorNotSupported;
  const bool ta = is_transposed(descriptor.transpose_a), tb = is_transposed(descriptor.transpose_b);
  product.m = std::int64_t(ta ? a.cols : a.rows);
  product.k = std::int64_t(ta ? a.rows : a.cols);
  product.n = std::int64_t(tb ? b.rows : b.cols);
  product.batches = d.batches;
  const bool fits = product.k == std::int64_t(tb ? b.cols : b.rows) && c.rows == d.rows &&
                    c.cols == d.cols && product.m == std::int64_t(d.rows) &&
                    product.n == std::int64_t(d.cols) && a.batches == d.batches &&
                    b.batches == d.batches && c.batches == d.batches;
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

const char* cublasLtGetStatusName(cublasStatus_t status) {
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

const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference_handle, int requested,
    cublasLtMatmulHeuristicResult_t results[], int* returned) {
  return status_of(entry("cublasLtMatmulAlgoGetHeuristic", {}, [&](Context&) {
    *returned = 0;
    if (handle == nullptr || requested < 1) return cudaErrorInvalidValue;
    Product product;
    const cudaError_t wrong = describe(descriptor_of(operation), layout_of(a), layout_of(b),
                                       layout_of(c), layout_of(d), product);
    if (wrong != cudaSuccess) return wrong;
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
  const MatrixLayout layouts[] = {layout_of(a_layout), layout_of(b_layout), layout_of(c_layout),
                                  layout_of(d_layout)};
  const cudaError_t wrong =
      describe(descriptor, layouts[0], layouts[1], layouts[2], layouts[3], product);
  const std::string text = text_of(product);
  return status_of(
      entry("cublasLtMatmul", {.stream = stream_handle, .detail = text}, [&](Context& context) {
        CUstream_st* stream = context.stream(stream_handle);
        if (handle == nullptr || stream == nullptr || alpha == nullptr || beta == nullptr)
          return cudaErrorInvalidValue;
        if (wrong != cudaSuccess) return wrong;

        const void* bases[] = {a, b, c != nullptr ? c : d, d};
        std::size_t needed = 0;
        if (algorithm != nullptr) {
          if (algorithm->data[0] != mark) return cudaErrorInvalidValue;
          for (int i = 0; i < 4; ++i)
            if (reinterpret_cast<std::uintptr_t>(bases[i]) % algorithm->data[1 + i] != 0)
              return cudaErrorInvalidValue;
          needed = algorithm->data[5];
        }
        if (needed > workspace_bytes || (needed > 0 && workspace == nullptr))
          return cudaErrorInvalidValue;

        product.a = operand(layouts[0], bases[0], descriptor.transpose_a);
        product.b = operand(layouts[1], bases[1], descriptor.transpose_b);
        product.c = operand(layouts[2], bases[2], CUBLAS_OP_N);
        product.d = operand(layouts[3], bases[3], CUBLAS_OP_N);
        product.scale = cudaDataType(descriptor.scale);
        product.tf32 = descriptor.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
        product.split = algorithm != nullptr && algorithm->data[6] != 0;
        std::memcpy(product.alpha, alpha, bytes_of(product.scale));
        std::memcpy(product.beta, beta, bytes_of(product.scale));
        if (c == nullptr && !product.ignores_c()) return cudaErrorInvalidValue;

        const std::string what = "a matrix product of " + text;
        Machine& machine = context.machine;
        machine.enqueue(
            context.lock, *stream,
            {.name = what, .body = [=, &machine] {
               const Operand* operands[] = {&product.a, &product.b, &product.c, &product.d};
               for (int i = 0; i < 4; ++i)
                 if (!machine.check_usable(what, operands[i]->base, span_bytes(layouts[i]))) return;
               if (needed > 0) {
                 if (!machine.check_usable(what, workspace, needed)) return;
                 poison(workspace, needed);
               }
               product.compute();
             }});
        return cudaSuccess;
      }));
}
