// How a kernel tells the host that an index it was given is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <cuda_runtime_api.h>

#include <cleave/core/cuda/error.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>

namespace cleave::cuda::detail {

/// The position of the first wrong index, in row-major order: threads take minima.
class FirstWrong {
 public:
  /// @param operation  what the user called, for errors
  explicit FirstWrong(const char* operation)
      : operation_(operation), position_(allocate_bytes(Cuda{}, sizeof(Position))) {
    check(cudaMemsetAsync(position_.get(), 0xff, sizeof(Position), current_stream().get()),
          operation);
  }

  using Position = unsigned long long;
  Position* position() const { return static_cast<Position*>(position_.get()); }

  /// The index there, if a thread has found one. Waits for the current stream.
  template <class I>
  std::optional<I> get(const kernels::Strided<const I>& indices) const {
    Position position = fetch(this->position());
    if (position == ~Position(0)) return std::nullopt;
    index_t offset = 0;
    for (int d = indices.extents.dims - 1; d >= 0; --d) {
      const auto extent = Position(indices.extents[d]);
      offset += index_t(position % extent) * indices.strides[d];
      position /= extent;
    }
    return fetch(indices.data + offset);
  }

 private:
  template <class T>
  T fetch(const T* from) const {
    T value{};
    check(cudaMemcpyAsync(&value, from, sizeof(T), cudaMemcpyDeviceToHost, current_stream().get()),
          operation_);
    current_stream().synchronize();
    return value;
  }

  const char* operation_;
  std::shared_ptr<void> position_;
};

}  // namespace cleave::cuda::detail
