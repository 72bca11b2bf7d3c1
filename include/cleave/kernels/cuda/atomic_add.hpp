// Atomic addition to an element of any type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/kernels/element_arithmetic.hpp>

namespace cleave::cuda::detail {

/// *to += value, atomically; integers wrap.
///
/// Elements of one or two bytes are updated by compare-and-swap of the word that contains them, as
/// the CUDA C++ programming guide (13.0, "Atomic functions") does for types without an instruction.
template <class T>
__device__ void atomic_add(T* to, const T& value) {
  using Word = std::conditional_t<(sizeof(T) > 4), unsigned long long, unsigned>;
  if constexpr (is_complex<T>) {
    auto* const parts = reinterpret_cast<typename T::value_type*>(to);
    atomic_add(parts, value.real());
    atomic_add(parts + 1, value.imag());
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    atomicAdd(to, value);
  } else if constexpr (sizeof(T) >= 4) {
    atomicAdd(reinterpret_cast<Word*>(to), static_cast<Word>(value));
  } else {
    const auto address = reinterpret_cast<std::uintptr_t>(to);
    auto* const word = reinterpret_cast<Word*>(address & ~std::uintptr_t(3));
    const std::size_t at = address & 3;
    Word seen = *word;
    for (;;) {
      Word next = seen;
      T element;
      memcpy(&element, reinterpret_cast<const char*>(&next) + at, sizeof(T));
      element = kernels::plus(element, value);
      memcpy(reinterpret_cast<char*>(&next) + at, &element, sizeof(T));
      const Word old = atomicCAS(word, seen, next);
      if (old == seen) return;
      seen = old;
    }
  }
}

}  // namespace cleave::cuda::detail
