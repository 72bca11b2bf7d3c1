// A linear layer on a GPU: its bias is added by the product, without a launch.
#include <array>
#include <cstddef>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>
#include <cleave/ops/products/linear.hpp>

#include "cuda_calls.hpp"
#include "cuda_stand_in/stand_in.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace linear_calls {

/// Small integers, so that sums are exact.
template <class T, int Dims>
Tensor<T, Dims> small_numbers(const std::array<index_t, std::size_t(Dims)>& extents, index_t seed) {
  Tensor<T, Dims> x(extents);
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = T(float((i * seed + i / 7) % 9) - 4);
  return x;
}

struct Calls {
  int products, launches;
  bool operator==(const Calls&) const = default;
};

constexpr index_t a = 3, b = 5, k = 8, n = 6;

/// Compares a layer of [3, 5, 8] to [3, 5, 6] with loops. @param bias  [6 · step] on the host
template <class T>
Calls compare(const Tensor<T, 1>& bias, index_t step) {
  const auto x = small_numbers<T, 3>({a, b, k}, 5);
  const auto weight = small_numbers<T, 2>({n, k}, 7);
  const auto on_gpu = bias.to(Cuda{});
  const auto every = slice(on_gpu, dim<0>{}, 0, n * step, step);
  const auto gpu_x = x.to(Cuda{}), gpu_weight = weight.to(Cuda{});
  const cuda_stand_in::Recording recording;
  const auto y = linear(gpu_x, gpu_weight, every);
  const Calls calls{calls_of(recording, "cublasLtMatmul"),
                    calls_of(recording, "cudaLaunchKernelEx")};
  const auto result = y.to(Host{});
  index_t wrong = 0;
  for (index_t i = 0; i < a * b; ++i)
    for (index_t j = 0; j < n; ++j) {
      float sum = float(bias.data()[j * step]);
      for (index_t l = 0; l < k; ++l)
        sum += float(x.data()[i * k + l]) * float(weight.data()[j * k + l]);
      wrong += float(result.data()[i * n + j]) != sum;
    }
  CHECK(wrong == 0);
  return calls;
}

}  // namespace linear_calls

using namespace linear_calls;

TEST_CASE_TEMPLATE("the bias of a linear layer is added by its product", T, float, half, bfloat16) {
  CHECK(compare<T>(small_numbers<T, 1>({n}, 2), 1) == Calls{1, 0});
  CHECK(compare<T>(small_numbers<T, 1>({n}, 4), 1) == Calls{1, 0});  // another bias, the same plan
}

TEST_CASE("a bias that cuBLASLt cannot add is added after the product") {
  CHECK(compare<double>(small_numbers<double, 1>({n}, 2), 1) == Calls{1, 1});
  CHECK(compare<float>(small_numbers<float, 1>({2 * n}, 2), 2) == Calls{1, 1});
}

TEST_CASE("a linear layer whose epilogue cuBLASLt refuses is computed without it") {
  const Tensor<float, 2> x({1, 3}, {1, 1, 1});
  const Tensor<float, 2> weight({4, 3}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  const Tensor<float, 1> bias({4}, {5, 5, 5, 5});
  const auto gpu_x = x.to(Cuda{}), gpu_weight = weight.to(Cuda{});
  const auto gpu_bias = bias.to(Cuda{});
  cuda_stand_in::fail_call("cublasLtMatmulAlgoGetHeuristic", 1, cudaErrorNotSupported);
  for (int call = 0; call < 2; ++call) {  // it is not asked again
    const cuda_stand_in::Recording recording;
    const auto y = linear(gpu_x, gpu_weight, gpu_bias);
    CHECK(calls_of(recording, "cudaLaunchKernelEx") == 1);
    const auto result = y.to(Host{});
    for (index_t i = 0; i < result.size(); ++i) CHECK(result.data()[i] == 1 * 2 * 3 + 5);
  }
}

TEST_CASE("16-bit floats of a linear layer are rounded once") {
  // 2048 + 1 + 1: in half, 2048 + 1 rounds to 2048.
  const Tensor<half, 2> x({1, 2}, {half(1.f), half(1.f)});
  const Tensor<half, 2> weight({1, 2}, {half(2048.f), half(1.f)});
  const Tensor<half, 1> bias({1}, {half(1.f)});
  CHECK(float(linear(x.to(Cuda{}), weight.to(Cuda{}), bias.to(Cuda{})).to(Host{}).data()[0]) ==
        2050);
}
