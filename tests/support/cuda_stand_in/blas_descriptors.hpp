// The contents of cuBLASLt's descriptors. The library's opaque structs are storage for them.
#pragma once

#include <cstdint>

#include <cublasLt.h>

namespace cuda_stand_in {

/// Column-major unless told otherwise, as in cuBLASLt.
struct MatrixLayout {
  std::uint32_t type;
  std::uint64_t rows;
  std::uint64_t cols;
  std::int64_t leading;
  std::int64_t batch_stride = 0;
  std::int32_t batches = 1;
};

struct MatmulDescriptor {
  std::int32_t compute;
  std::int32_t scale;
  std::int32_t transpose_a = CUBLAS_OP_N;
  std::int32_t transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct MatmulPreference {
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint64_t workspace = 0;                         ///< maximum, in bytes
  std::uint32_t alignments[4] = {256, 256, 256, 256};  ///< minimum alignments of A, B, C and D
};

/// The descriptor held in the library's opaque struct.
template <class Held, class Opaque>
Held& held_by(Opaque* opaque) {
  static_assert(sizeof(Held) <= sizeof(Opaque));
  return *reinterpret_cast<Held*>(opaque->data);
}

inline MatrixLayout& layout_of(cublasLtMatrixLayout_t opaque) {
  return held_by<MatrixLayout>(opaque);
}
inline MatmulDescriptor& descriptor_of(cublasLtMatmulDesc_t opaque) {
  return held_by<MatmulDescriptor>(opaque);
}
inline MatmulPreference& preference_of(cublasLtMatmulPreference_t opaque) {
  return held_by<MatmulPreference>(opaque);
}

}  // namespace cuda_stand_in
