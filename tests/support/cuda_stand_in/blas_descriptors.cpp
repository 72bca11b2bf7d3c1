// Entry points of cuBLASLt: descriptors. As in cuBLASLt, they touch no device.
#include "blas_descriptors.hpp"

#include <cstring>
#include <new>

using namespace cuda_stand_in;

namespace {

template <class Held, class Opaque>
cublasStatus_t create(Opaque** result, const Held& value) {
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *result = new Opaque{};
  new ((*result)->data) Held(value);
  return CUBLAS_STATUS_SUCCESS;
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

}  // namespace

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols,
                                          std::int64_t leading) {
  return create(
      layout,
      MatrixLayout{.type = std::uint32_t(type), .rows = rows, .cols = cols, .leading = leading});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, std::size_t size) {
  MatrixLayout& layout = layout_of(opaque);
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(layout.batches, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(layout.batch_stride, value, size);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor,
                                        cublasComputeType_t compute, cudaDataType scale) {
  return create(descriptor, MatmulDescriptor{.compute = compute, .scale = std::int32_t(scale)});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
  return destroy(descriptor);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t opaque,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t size) {
  MatmulDescriptor& descriptor = descriptor_of(opaque);
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
  MatmulPreference& preference = preference_of(opaque);
  switch (name) {
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
