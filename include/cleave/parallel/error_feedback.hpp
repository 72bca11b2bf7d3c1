// Error feedback for communication hooks: the part of each gradient that was not communicated is
// kept by parameter and added to the gradient of the next step.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/nn/update.hpp>
#include <cleave/parallel/comm_hook.hpp>

namespace cleave::inline v0::parallel {

/// Arrays of numbers by the key of a parameter, initially 0.
class NumbersByKey {
 public:
  template <class A>
  A* of(int key, index_t count) {
    if (bytes_.size() <= std::size_t(key)) bytes_.resize(std::size_t(key) + 1);
    std::vector<std::byte>& bytes = bytes_[std::size_t(key)];
    const std::size_t size = std::size_t(count) * sizeof(A);
    if (bytes.size() != size) bytes.assign(size, {});
    return reinterpret_cast<A*>(bytes.data());
  }

 private:
  std::vector<std::vector<std::byte>> bytes_{};
};

/// Calls f(part, numbers, count) for every part of a bucket; a complex element is two numbers.
template <class Real, class F>
void for_parts(const GradientBucket& bucket, const F& f) {
  const auto numbers = index_t(size_of(bucket.gradient.dtype) / sizeof(Real));
  for (const BucketPart& part : bucket.parts) {
    const View elements = bucket.part(part);
    f(part, static_cast<Real*>(elements.data), elements.size() * numbers);
  }
}

}  // namespace cleave::inline v0::parallel
