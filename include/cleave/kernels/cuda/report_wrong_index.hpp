// How a kernel reports a wrong index or row to the host.
#pragma once

#include <cuda_runtime.h>

#include <cleave/core/config.hpp>
#include <cleave/kernels/row_range.hpp>
#include <cleave/tensor/cuda/wrong_index.hpp>

namespace cleave::inline v0::cuda::detail {

/// Reports the wrong indices or rows of a call.
struct WrongIndexReport {
  const IndexedCall* call;
  WrongIndex* place;

  explicit WrongIndexReport(const IndexedCall& of)
      : call(remember(of)), place(wrong_index_of_thread()) {}

  __device__ void operator()(index_t index) const {
    // one 16-byte access, which the host cannot see partially (CUDA programming guide 13, "Mapped
    // Memory")
    *reinterpret_cast<ulonglong2*>(place) = make_ulonglong2(
        reinterpret_cast<unsigned long long>(call), static_cast<unsigned long long>(index));
  }
};

/// Checks indices in a kernel.
struct IndexCheck {
  kernels::RowRange range;
  WrongIndexReport report;

  explicit IndexCheck(const kernels::RowRange& of)
      : range(of), report({of.operation, of.total - of.shift, of.shift}) {}

  /// Whether the index is in range; reports it if not.
  __device__ bool operator()(index_t index) const {
    if (!range.has(index)) report(index);
    return range.has(index);
  }
};

}  // namespace cleave::inline v0::cuda::detail
