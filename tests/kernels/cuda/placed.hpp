// Strided arrays in device memory for tests of kernels: part of a larger buffer whose other
// elements must not change, at addresses aligned only to the element.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/kernels/strided.hpp>
#include <cleave/tensor/cuda/memory.hpp>
#include <cleave/tensor/cuda/stream.hpp>
#include <cleave/tensor/view.hpp>

#include "errors.hpp"

namespace cleave::testing {

inline Shape shape(std::initializer_list<index_t> extents) {
  Shape s;
  for (const index_t extent : extents) s[s.dims++] = extent;
  return s;
}

/// The positions of an array's elements, counted in elements of its buffer.
struct Place {
  Shape extents{};
  Shape strides{};
  index_t first = 0;  ///< offset of element (0, .., 0)
  index_t size = 0;   ///< of the buffer

  /// Dimensions in the storage order `order`, outermost first (row-major if empty), each followed
  /// by a number of spare elements (none if empty).
  static Place of(const Shape& extents, std::vector<int> order = {}, std::vector<int> gaps = {},
                  index_t first = 0) {
    Place p{extents, Shape::filled(extents.dims, 1), first, 0};
    index_t step = 1;
    for (int i = extents.dims - 1; i >= 0; --i) {
      const auto at = std::size_t(i);
      const int d = order.empty() ? i : order[at];
      p.strides[d] = step;
      step *= extents[d] + (gaps.empty() ? 0 : gaps[at]);
    }
    p.size = first + step + 9;
    return p;
  }

  /// The same array with dimension d broadcast.
  Place repeating(int d) const {
    Place p = *this;
    p.strides[d] = 0;
    return p;
  }

  /// The offsets of all elements in row-major order, computed one by one.
  std::vector<index_t> offsets() const {
    std::vector<index_t> all;
    Shape index = Shape::filled(extents.dims, 0);
    for (index_t i = 0; i < extents.product(); ++i) {
      index_t offset = first;
      for (int d = 0; d < extents.dims; ++d) offset += index[d] * strides[d];
      all.push_back(offset);
      for (int d = extents.dims - 1; d >= 0 && ++index[d] == extents[d]; --d) index[d] = 0;
    }
    return all;
  }
};

/// A number as any element type: integers and a few fractions.
template <class T>
T entry(index_t i) {
  const auto number = (i * 7919 + i / 13) % 251;
  if constexpr (is_complex<T>) {
    using R = typename T::value_type;
    return T(R(number) / 4 - 20, R(i % 17) / 2);
  } else if constexpr (std::is_same_v<T, bool>) {
    return number % 3 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return T(number);
  } else {
    return T(float(number) / 8 - 10);
  }
}

/// A host buffer: `std::vector<bool>` has no elements that can be copied.
template <class T>
struct HostArray {
  std::unique_ptr<T[]> elements;
  index_t size = 0;

  explicit HostArray(index_t n) : elements(new T[std::size_t(n)]{}), size(n) {}
  T& operator[](index_t i) { return elements[std::size_t(i)]; }
  const T& operator[](index_t i) const { return elements[std::size_t(i)]; }
};

/// An array on the device, and the original contents of its buffer.
template <class T>
class Placed {
 public:
  explicit Placed(const Place& place, index_t seed = 0) : Placed(place, counting(place, seed)) {}

  Placed(const Place& place, HostArray<T> buffer)
      : place_(place),
        before_(std::move(buffer)),
        device_(allocate_bytes(Cuda{}, std::size_t(before_.size) * sizeof(T))) {
    copy(device_.get(), before_.elements.get());
  }

  const Place& place() const { return place_; }
  T* data() const { return static_cast<T*>(device_.get()) + place_.first; }
  kernels::Strided<const T> read() const { return {data(), place_.extents, place_.strides}; }
  kernels::Strided<T> write() const { return {data(), place_.extents, place_.strides}; }
  View view() const { return {data(), dtype_of<T>(), place_.extents, place_.strides}; }

  /// The original elements, row-major.
  HostArray<T> values() const {
    const auto offsets = place_.offsets();
    HostArray<T> result(index_t(offsets.size()));
    for (index_t i = 0; i < result.size; ++i) result[i] = before_[offsets[std::size_t(i)]];
    return result;
  }

  /// The current elements, row-major.
  HostArray<T> result() const {
    const HostArray<T> buffer = download();
    const auto offsets = place_.offsets();
    HostArray<T> result(index_t(offsets.size()));
    for (index_t i = 0; i < result.size; ++i) result[i] = buffer[offsets[std::size_t(i)]];
    return result;
  }

  /// The number of wrong elements in the buffer: those of the array must equal `expected`, in
  /// row-major order, as judged by `close(actual, expected)`; all others must be unchanged.
  template <class E, class Close>
  index_t wrong(const E& expected, const Close& close) const {
    const HostArray<T> now = download();
    std::vector<char> written(std::size_t(now.size));
    index_t count = 0, at = 0;
    for (const index_t offset : place_.offsets()) {
      count += !close(now[offset], expected[at++]);
      written[std::size_t(offset)] = 1;
    }
    for (index_t i = 0; i < now.size; ++i)
      count += !written[std::size_t(i)] && std::memcmp(&now[i], &before_[i], sizeof(T)) != 0;
    return count;
  }

  /// The same with bitwise comparison.
  template <class E>
  index_t wrong(const E& expected) const {
    return wrong(expected, [](const T& a, const T& b) { return same_bits(a, b); });
  }

  /// NaNs are equal, whatever their bits.
  static bool same_bits(const T& a, const T& b) {
    if constexpr (!std::is_integral_v<T>) {
      if (a != a && b != b) return true;
    }
    return std::memcmp(&a, &b, sizeof(T)) == 0;
  }

 private:
  static HostArray<T> counting(const Place& place, index_t seed) {
    HostArray<T> buffer(place.size);
    for (index_t i = 0; i < place.size; ++i) buffer[i] = entry<T>(i + seed);
    return buffer;
  }

  HostArray<T> download() const {
    HostArray<T> now(before_.size);
    copy(now.elements.get(), device_.get());
    return now;
  }

  void copy(void* to, const void* from) const {
    cuda::check(cudaMemcpyAsync(to, from, std::size_t(before_.size) * sizeof(T), cudaMemcpyDefault,
                                cuda::current_stream().get()),
                "test");
    cuda::current_stream().synchronize();
  }

  Place place_;
  HostArray<T> before_;
  std::shared_ptr<void> device_;
};

/// The error thrown by a wait for the device; empty if there is none.
inline std::string reported() {
  return error_of([] { cuda::current_stream().synchronize(); });
}

}  // namespace cleave::testing
