// Declares what the library uses of CUB, which g++ does not parse.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

namespace cub {

template <class T>
struct DoubleBuffer {
  DoubleBuffer(T* current, T* alternate);
  T* Current();
};

struct DeviceRadixSort {
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,
                               DoubleBuffer<Value>& values, Count count, int begin, int end,
                               cudaStream_t stream);
};

}  // namespace cub
