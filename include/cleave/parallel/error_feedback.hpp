// What a hook has not sent of gradients, by parameter: it is added to those of the next step, so
// that nothing is lost for good.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/nn/update.hpp>
#include <cleave/parallel/comm_hook.hpp>

namespace cleave::parallel {

/// Arrays of numbers by the key of a parameter; all 0 at first.
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

/// Calls f(part, its numbers in the bucket, how many) for every part; a complex element is two.
template <class Real, class F>
void for_parts(const GradientBucket& bucket, const F& f) {
  const auto numbers = index_t(size_of(bucket.gradient.dtype) / sizeof(Real));
  for (const BucketPart& part : bucket.parts) {
    const View elements = bucket.part(part);
    f(part, static_cast<Real*>(elements.data), elements.size() * numbers);
  }
}

}  // namespace cleave::parallel
