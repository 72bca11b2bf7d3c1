// Entry points of cuBLASLt: descriptors. They touch no device, as there.
#include "blas_descriptors.hpp"

#include <cstring>
#include <new>

using namespace cuda_stand_in;

namespace {

template <class Held, class Opaque>
cublasStatus_t initialise(Opaque* opaque, std::size_t size, const Held& value) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (size < sizeof(Held)) return CUBLAS_STATUS_ALLOC_FAILED;
  std::memset(opaque->data, 0, sizeof(opaque->data));
  new (opaque->data) Held(value);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Held, class Opaque>
cublasStatus_t create(Opaque** result, const Held& value) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *result = new Opaque;
  return initialise(*result, sizeof(Opaque), value);
}

template <class T>
cublasStatus_t set(T& field, const void* value, std::size_t size) {
  if (value == nullptr || size != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, std::size_t size,
                                                 cudaDataType type, std::uint64_t rows,
                                                 std::uint64_t cols, std::int64_t leading) {
  return initialise(
      layout, size,
      MatrixLayout{.type = std::uint32_t(type), .rows = rows, .cols = cols, .leading = leading});
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols,
                                          std::int64_t leading) {
  return create(
      layout,
      MatrixLayout{.type = std::uint32_t(type), .rows = rows, .cols = cols, .leading = leading});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, std::size_t size) {
  MatrixLayout& layout = layout_of(opaque);
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return set(layout.type, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return set(layout.order, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return set(layout.rows, value, size);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return set(layout.cols, value, size);
    case CUBLASLT_MATRIX_LAYOUT_LD: return set(layout.leading, value, size);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(layout.batches, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(layout.batch_stride, value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t descriptor, std::size_t size,
                                               cublasComputeType_t compute, cudaDataType scale) {
  return initialise(descriptor, size,
                    MatmulDescriptor{.compute = compute, .scale = std::int32_t(scale)});
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor,
                                        cublasComputeType_t compute, cudaDataType scale) {
  return create(descriptor, MatmulDescriptor{.compute = compute, .scale = std::int32_t(scale)});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
  delete descriptor;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t size) {
  MatmulDescriptor& descriptor = descriptor_of(opaque);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return set(descriptor.compute, value, size);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return set(descriptor.scale, value, size);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return set(descriptor.pointer_mode, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(descriptor.transpose_a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(descriptor.transpose_b, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSC: return set(descriptor.transpose_c, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(descriptor.epilogue, value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     std::size_t size) {
  return initialise(preference, size, MatmulPreference{});
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, MatmulPreference{});
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t opaque,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t size) {
  MatmulPreference& preference = preference_of(opaque);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE: return set(preference.search, value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(preference.reductions, value, size);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(preference.workspace, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference.alignments[0], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference.alignments[1], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference.alignments[2], value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference.alignments[3], value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
