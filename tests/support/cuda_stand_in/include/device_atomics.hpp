// Atomic operations of device code, with the types that CUDA gives them: all return the old value.
// One thread of a device runs at a time, so plain reads and writes do.
#pragma once

namespace cuda_stand_in {

template <class T, class F>
T exchange_by(T* address, F&& next) {
  const T old = *address;
  *address = next(old);
  return old;
}

template <class T>
T add(T* address, T value) {
  return exchange_by(address, [&](T old) { return T(old + value); });
}

template <class T>
T smaller(T* address, T value) {
  return exchange_by(address, [&](T old) { return value < old ? value : old; });
}

template <class T>
T larger(T* address, T value) {
  return exchange_by(address, [&](T old) { return old < value ? value : old; });
}

template <class T>
T swap_if(T* address, T expected, T value) {
  return exchange_by(address, [&](T old) { return old == expected ? value : old; });
}

}  // namespace cuda_stand_in

// Signed overflow wraps on the device.
inline int atomicAdd(int* address, int value) {
  return int(cuda_stand_in::add(reinterpret_cast<unsigned*>(address), unsigned(value)));
}
inline unsigned atomicAdd(unsigned* address, unsigned value) {
  return cuda_stand_in::add(address, value);
}
inline unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  return cuda_stand_in::add(address, value);
}
inline float atomicAdd(float* address, float value) { return cuda_stand_in::add(address, value); }
inline double atomicAdd(double* address, double value) {
  return cuda_stand_in::add(address, value);
}

inline int atomicMin(int* address, int value) { return cuda_stand_in::smaller(address, value); }
inline unsigned atomicMin(unsigned* address, unsigned value) {
  return cuda_stand_in::smaller(address, value);
}
inline long long atomicMin(long long* address, long long value) {
  return cuda_stand_in::smaller(address, value);
}
inline unsigned long long atomicMin(unsigned long long* address, unsigned long long value) {
  return cuda_stand_in::smaller(address, value);
}

inline int atomicMax(int* address, int value) { return cuda_stand_in::larger(address, value); }
inline unsigned atomicMax(unsigned* address, unsigned value) {
  return cuda_stand_in::larger(address, value);
}
inline long long atomicMax(long long* address, long long value) {
  return cuda_stand_in::larger(address, value);
}
inline unsigned long long atomicMax(unsigned long long* address, unsigned long long value) {
  return cuda_stand_in::larger(address, value);
}

inline int atomicCAS(int* address, int expected, int value) {
  return cuda_stand_in::swap_if(address, expected, value);
}
inline unsigned atomicCAS(unsigned* address, unsigned expected, unsigned value) {
  return cuda_stand_in::swap_if(address, expected, value);
}
inline unsigned long long atomicCAS(unsigned long long* address, unsigned long long expected,
                                    unsigned long long value) {
  return cuda_stand_in::swap_if(address, expected, value);
}

inline unsigned atomicOr(unsigned* address, unsigned value) {
  return cuda_stand_in::exchange_by(address, [&](unsigned old) { return old | value; });
}
inline unsigned long long atomicOr(unsigned long long* address, unsigned long long value) {
  return cuda_stand_in::exchange_by(address, [&](unsigned long long old) { return old | value; });
}

inline int atomicExch(int* address, int value) {
  return cuda_stand_in::exchange_by(address, [&](int) { return value; });
}
inline unsigned atomicExch(unsigned* address, unsigned value) {
  return cuda_stand_in::exchange_by(address, [&](unsigned) { return value; });
}
