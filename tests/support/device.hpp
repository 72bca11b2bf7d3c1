// The device of a test's tensors and meshes: the host, unless the test is compiled for CUDA.
//
// A test for both makes its meshes on `TestDevice{}`, fills host tensors and copies them to the
// device (`.to(TestDevice{})`), and checks results on the host (`.to(Host{})`).
#pragma once

#include <cstddef>
#include <vector>

#if defined(CLEAVE_TEST_CUDA)
#include <cleave/cuda.hpp>
#endif
#include <cleave/comm/world.hpp>
#include <cleave/redistribute/block.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::testing {

#if defined(CLEAVE_TEST_CUDA)
using TestDevice = Cuda;
#else
using TestDevice = Host;
#endif

/// The communicator of all ranks of the world, for memory of the test's device.
inline Communicator& all_ranks(const World& world) {
  return communicator_on(TestDevice{}, world.communicator());
}

/// Local elements on the test's device.
template <class T>
redistribution::Block placed(const std::vector<T>& values, const Shape& extents) {
  redistribution::Block block = redistribution::allocate<TestDevice>(dtype_of<T>(), extents);
  const auto count = index_t(values.size());
  Tensor<T, 1, TestDevice>::adopt(static_cast<T*>(block.view.data), {count})
      .copy_(Tensor<T, 1>::adopt(const_cast<T*>(values.data()), {count}).to(TestDevice{}));
  return block;
}

/// The elements of a contiguous block, row-major.
template <class T>
std::vector<T> elements_of(const redistribution::Block& block) {
  const auto host =
      Tensor<T, 1, TestDevice>::adopt(static_cast<T*>(block.view.data), {block.view.size()})
          .to(Host{});
  return {host.data(), host.data() + host.size()};
}

}  // namespace cleave::testing

using cleave::testing::TestDevice;
