// Atomic operations of device code, for the types that CUDA supports and the project uses. All
// return the old value. One thread of a device runs at a time, so plain reads and writes suffice.
#pragma once

#include <concepts>
#include <type_traits>

namespace cuda_stand_in {

template <class T, class F>
T exchange_by(T* address, F&& next) {
  const T old = *address;
  *address = next(old);
  return old;
}

template <class T>
concept Word = std::same_as<T, unsigned> || std::same_as<T, unsigned long long>;

template <class T>
concept Addend = Word<T> || std::same_as<T, float> || std::same_as<T, double>;

}  // namespace cuda_stand_in

template <cuda_stand_in::Addend T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return cuda_stand_in::exchange_by(address, [&](T old) { return old + value; });
}
template <cuda_stand_in::Word T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return cuda_stand_in::exchange_by(address, [&](T old) { return old | value; });
}
template <cuda_stand_in::Word T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return cuda_stand_in::exchange_by(address, [&](T old) { return old == expected ? value : old; });
}
