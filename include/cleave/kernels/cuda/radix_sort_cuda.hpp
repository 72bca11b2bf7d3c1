// A stable sort of numbers by bits of their keys, on a GPU: CUB's radix sort.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <cleave/core/config.hpp>
#include <cleave/tensor/cuda/memory.hpp>

namespace cleave::inline v0::cuda::detail {

/// Numbers with keys, both uninitialised, and as much memory again for sorting them.
class KeyedNumbers {
 public:
  /// @throws Error if there is no memory: 32 bytes for each
  explicit KeyedNumbers(index_t count)
      : memory_(allocate_bytes(Cuda{}, std::size_t(4 * count) * sizeof(std::uint64_t))),
        count_(count) {
    auto* const first = static_cast<std::uint64_t*>(memory_.get());
    for (int i = 0; i < 2; ++i) keys_[i] = first + i * count, numbers_[i] = first + (2 + i) * count;
  }

  index_t count() const { return count_; }
  std::uint64_t* keys() const { return keys_[0]; }
  std::uint64_t* numbers() const { return numbers_[0]; }
  std::uint64_t* spare_keys() const { return keys_[1]; }
  std::uint64_t* spare_numbers() const { return numbers_[1]; }

  void swap_keys() { std::swap(keys_[0], keys_[1]); }
  void swap_numbers() { std::swap(numbers_[0], numbers_[1]); }
  /// Makes keys of the numbers and numbers of the keys.
  void swap_roles() { std::swap(keys_, numbers_); }

 private:
  std::shared_ptr<void> memory_;
  std::uint64_t* keys_[2];
  std::uint64_t* numbers_[2];
  index_t count_;
};

/// Sorts keys and numbers by the bits [first, end) of the keys, in the order of the current stream;
/// where these bits are equal, the order stays.
///
/// @param operation  the user's call, for errors
/// @pre    0 <= first <= end <= 64, count > 0
/// @cost   one launch for few keys; else two, and one per 8 bits that reads and writes all once
/// @throws Error if a launch fails, or there is no memory for counts
template <std::same_as<Cuda> Device>
void sort_by_keys(Device, const char* operation, KeyedNumbers& x, int first, int end);

}  // namespace cleave::inline v0::cuda::detail

#if !CLEAVE_COMPILED
#include <cleave/kernels/cuda/radix_sort_cuda_body.hpp>
#endif
