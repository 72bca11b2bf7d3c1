// Entry points of cuBLASLt: descriptors, the choice of an algorithm, and the product itself.
//
// The one algorithm relies on what it was chosen for, as the real ones do: operands aligned as the
// preference promised, and a workspace of the requested size, which it overwrites. If the
// preference allows it, partial sums are added in the result's 16-bit type. Only the products that
// the project uses are supported: of one type, without conjugates, with C equal to D.
#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>

#include "blas_product.hpp"
#include "entry.hpp"

struct cublasLtContext {};

namespace cuda_stand_in {
namespace {

constexpr std::size_t max_workspace = std::size_t(64) << 10;

// Limits beyond which users report that cuBLASLt refuses a product.
constexpr std::int64_t max_batches = 65535, max_complex_columns = 4194240;

struct MatmulDescriptor {
  cublasComputeType_t compute;
  cudaDataType scale;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct MatmulPreference {
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint64_t workspace = 0;                         ///< maximum, in bytes
  std::uint32_t alignments[4] = {256, 256, 256, 256};  ///< minimum alignments of A, B, C and D
};

/// The content of cublasLtMatmulAlgo_t: what the product has to keep to.
struct Algorithm {
  std::uint64_t mark = 0x6d6d;  ///< chosen by the stand-in
  std::uint64_t workspace = 0, split = 0, bias_alignment = 0;
  std::uint32_t alignments[4] = {};
  std::uint64_t unused[2] = {};
};

/// The library's opaque structs are storage for descriptors.
template <class Held, class Opaque>
cublasStatus_t create(Opaque** result, const Held& value) {
  static_assert(sizeof(Held) <= sizeof(Opaque));
  *result = new Opaque{};
  new ((*result)->data) Held(value);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Held>
Held& held_by(auto* opaque) {
  return *reinterpret_cast<Held*>(opaque->data);
}

template <class Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t set(T& field, const void* value, std::size_t size) {
  if (value == nullptr || size != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

/// The element types of products, and the types in which they are computed, with the compute types
/// that cublasLtMatmul documents if A, B and D have the same type.
constexpr struct {
  cudaDataType type, scale;
  cublasComputeType_t compute;
} supported[] = {
    {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    {CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F},
    {CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F},
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
};

std::uint64_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return bits & (~bits + 1);
}

bool is_sound(const MatrixLayout& layout) {
  return layout.rows > 0 && layout.cols > 0 && layout.batches > 0 && layout.leading >= layout.rows;
}

/// Sets the extents of the product. @return an error if the descriptors do not fit together
cudaError_t describe(const MatmulDescriptor& descriptor, const MatrixLayout& a,
                     const MatrixLayout& b, const MatrixLayout& d, Product& product) {
  if (!is_sound(a) || !is_sound(b) || !is_sound(d)) return cudaErrorInvalidValue;
  const bool known = std::any_of(std::begin(supported), std::end(supported), [&](const auto& one) {
    return one.type == a.type && one.type == b.type && one.type == d.type &&
           one.scale == descriptor.scale && one.compute == descriptor.compute;
  });
  // cublasLtEpilogue_t (cublasLt.h 13.0): only a bias of one product of floats or 16-bit floats.
  const bool known_epilogue = descriptor.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
                              (descriptor.epilogue == CUBLASLT_EPILOGUE_BIAS &&
                               descriptor.scale == CUDA_R_32F && d.batches == 1);
  if (!known || !known_epilogue ||
      std::max(descriptor.transpose_a, descriptor.transpose_b) > CUBLAS_OP_T)
    return cudaErrorNotSupported;
  const bool ta = descriptor.transpose_a != CUBLAS_OP_N, tb = descriptor.transpose_b != CUBLAS_OP_N;
  product.m = ta ? a.cols : a.rows;
  product.k = ta ? a.rows : a.cols;
  product.n = tb ? b.rows : b.cols;
  product.batches = d.batches;
  product.tf32 = descriptor.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const bool fits = product.k == (tb ? b.cols : b.rows) && product.m == d.rows &&
                    product.n == d.cols && a.batches == d.batches && b.batches == d.batches;
  return fits ? cudaSuccess : cudaErrorInvalidValue;
}

std::string text_of(const Product& product) {
  return std::to_string(product.m) + 'x' + std::to_string(product.n) + 'x' +
         std::to_string(product.k) +
         (product.batches > 1 ? " by " + std::to_string(product.batches) : "");
}

cublasStatus_t blas_status(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return CUBLAS_STATUS_SUCCESS;
    case cudaErrorInvalidValue: return CUBLAS_STATUS_INVALID_VALUE;
    case cudaErrorNotSupported: return CUBLAS_STATUS_NOT_SUPPORTED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return blas_status(entry("cublasLtCreate", {}, [&](Context&) {
    *handle = new cublasLtContext;
    return cudaSuccess;
  }));
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols,
                                          std::int64_t leading) {
  return create(layout, MatrixLayout{.type = type,
                                     .rows = std::int64_t(rows),
                                     .cols = std::int64_t(cols),
                                     .leading = leading});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, std::size_t size) {
  auto& layout = held_by<MatrixLayout>(opaque);
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(layout.batches, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(layout.batch_stride, value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor,
                                        cublasComputeType_t compute, cudaDataType scale) {
  return create(descriptor, MatmulDescriptor{.compute = compute, .scale = scale});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
  return destroy(descriptor);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t size) {
  auto& descriptor = held_by<MatmulDescriptor>(opaque);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(descriptor.transpose_a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(descriptor.transpose_b, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(descriptor.epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(descriptor.bias, value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, MatmulPreference{});
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t opaque,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t size) {
  auto& preference = held_by<MatmulPreference>(opaque);
  auto& alignments = preference.alignments;
  switch (name) {
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(preference.reductions, value, size);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(preference.workspace, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(alignments[0], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(alignments[1], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(alignments[2], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(alignments[3], value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference_handle, int,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
  return blas_status(entry("cublasLtMatmulAlgoGetHeuristic", {}, [&](Context&) {
    *returned = 0;
    const auto& descriptor = held_by<MatmulDescriptor>(operation);
    const auto& layout = held_by<MatrixLayout>(d);
    Product product;
    if (const cudaError_t wrong = describe(descriptor, held_by<MatrixLayout>(a),
                                           held_by<MatrixLayout>(b), layout, product))
      return wrong;
    if (c != d || product.batches > max_batches ||
        (layout.type == CUDA_C_32F && product.n > max_complex_columns))
      return cudaErrorNotSupported;
    const auto& preference = held_by<MatmulPreference>(preference_handle);
    const std::size_t element = bytes_of(layout.type);
    if (std::ranges::min(preference.alignments) < element) return cudaErrorNotSupported;
    Algorithm algorithm;
    algorithm.workspace = std::min<std::size_t>(preference.workspace, max_workspace);
    algorithm.split =
        element == 2 && (preference.reductions & (CUBLASLT_REDUCTION_SCHEME_INPLACE |
                                                  CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) != 0;
    // cublasLt.h 13.0, CUBLASLT_MATMUL_DESC_BIAS_POINTER: its alignment counts here.
    algorithm.bias_alignment = alignment_of(descriptor.bias);
    std::ranges::copy(preference.alignments, algorithm.alignments);
    results[0] = {.algo = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm),
                  .workspaceSize = algorithm.workspace,
                  .state = CUBLAS_STATUS_SUCCESS,
                  .wavesCount = 1,
                  .reserved = {}};
    *returned = 1;
    return cudaSuccess;
  }));
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen,
                              void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream_handle) {
  Product product;
  const auto& descriptor = held_by<MatmulDescriptor>(operation);
  const auto& layout = held_by<MatrixLayout>(d_layout);
  const cudaError_t wrong = describe(descriptor, held_by<MatrixLayout>(a_layout),
                                     held_by<MatrixLayout>(b_layout), layout, product);
  const bool biased = descriptor.epilogue == CUBLASLT_EPILOGUE_BIAS;
  const std::string text = text_of(product) + (biased ? " and a bias" : "");
  const Arguments arguments{.stream = stream_handle, .detail = text};
  return blas_status(entry("cublasLtMatmul", arguments, [&](Context& context) {
    CUstream_st* stream = context.stream(stream_handle);
    const auto algorithm = std::bit_cast<Algorithm>(*chosen);
    if (stream == nullptr || algorithm.mark != Algorithm().mark) return cudaErrorInvalidValue;
    if (wrong != cudaSuccess) return wrong;
    const auto is = [&](const void* factor, int number) {
      return with(layout.type, [&](auto, auto zero) {
        using Number = decltype(zero);
        return *static_cast<const Number*>(factor) == Number(float(number));
      });
    };
    product.add = is(beta, 1);
    if (!is(alpha, 1) || !(product.add || is(beta, 0)) || c != d || c_layout != d_layout)
      return cudaErrorNotSupported;

    const void* const bases[] = {a, b, d, d};
    for (int i = 0; i < 4; ++i)
      if (reinterpret_cast<std::uintptr_t>(bases[i]) % algorithm.alignments[i] != 0)
        return cudaErrorInvalidValue;
    if (biased) {
      product.bias = descriptor.bias;
      if (product.bias == nullptr || alignment_of(product.bias) < algorithm.bias_alignment)
        return cudaErrorInvalidValue;
    }
    const std::size_t needed = algorithm.workspace;
    if (needed > workspace_bytes || (needed > 0 && workspace == nullptr))
      return cudaErrorInvalidValue;

    product.split = algorithm.split != 0;
    const Operand first(held_by<MatrixLayout>(a_layout), a, descriptor.transpose_a),
        second(held_by<MatrixLayout>(b_layout), b, descriptor.transpose_b),
        result(layout, d, CUBLAS_OP_N);
    const std::string what = "a matrix product of " + text;
    context.machine.enqueue(
        *stream, {.name = what, .body = [=, type = layout.type, &machine = context.machine] {
                    for (const Operand& operand : {first, second, result})
                      if (!machine.check_usable(what, operand.data, operand.bytes)) return;
                    const std::size_t bias_bytes = std::size_t(product.m) * bytes_of(type);
                    if (biased && !machine.check_usable(what, product.bias, bias_bytes)) return;
                    if (needed > 0) {
                      if (!machine.check_usable(what, workspace, needed)) return;
                      poison(workspace, needed);
                    }
                    with(type, [&](auto element, auto number) {
                      multiply<decltype(element), decltype(number)>(product, first, second, result);
                    });
                  }});
    return cudaSuccess;
  }));
}
