// Calls CUB's radix sort.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <cleave/core/cuda/fp16.hpp>
// CUB includes CUDA's 16-bit types, and must follow fp16.hpp.
#include <cub/device/device_radix_sort.cuh>

#include <cleave/core/cuda/cuda_error.hpp>
#include <cleave/kernels/cuda/launch_kernel.hpp>
#include <cleave/kernels/cuda/radix_sort_cuda.hpp>

namespace cleave::inline v0::cuda::detail {

template <std::same_as<Cuda> Device>
void sort_by_keys(Device, const char* operation, KeyedNumbers& x, int first, int end) {
  cub::DoubleBuffer<std::uint64_t> keys(x.keys(), x.spare_keys());
  cub::DoubleBuffer<std::uint64_t> numbers(x.numbers(), x.spare_numbers());
  const auto sort = [&](void* memory, std::size_t& bytes) {
    static_cast<void>(cudaGetLastError());  // CUB would return an error that was handled before
    check(cub::DeviceRadixSort::SortPairs(memory, bytes, keys, numbers, x.count(), first, end,
                                          current_stream().get()),
          operation);
  };
  std::size_t bytes = 0;
  sort(nullptr, bytes);
  const std::shared_ptr<void> memory = allocate_bytes(Cuda{}, bytes);
  sort(memory.get(), bytes);
  if (keys.Current() != x.keys()) x.swap_keys();
  if (numbers.Current() != x.numbers()) x.swap_numbers();
}

}  // namespace cleave::inline v0::cuda::detail
