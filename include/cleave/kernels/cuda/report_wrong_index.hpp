// How a kernel reports an out-of-range index to the host.
#pragma once

#include <cuda_runtime.h>

#include <cleave/core/config.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave::inline v0::cuda::detail {

/// Checks indices in a kernel.
struct IndexCheck {
  kernels::RowRange range;
  const IndexedCall* call;
  WrongIndex* report;

  explicit IndexCheck(const kernels::RowRange& of)
      : range(of),
        call(remember({of.operation, of.total - of.shift, of.shift})),
        report(wrong_index_of_thread()) {}

  /// Whether the index is in range; reports it if not.
  __device__ bool operator()(index_t index) const {
    if (range.has(index)) return true;
    // one 16-byte access, which the host cannot see partially (CUDA programming guide 13, "Mapped
    // Memory")
    *reinterpret_cast<ulonglong2*>(report) = make_ulonglong2(
        reinterpret_cast<unsigned long long>(call), static_cast<unsigned long long>(index));
    return false;
  }
};

}  // namespace cleave::inline v0::cuda::detail
