// A linear layer on a GPU: its bias is added by the product, without a launch.
#include <array>
#include <complex>
#include <cstddef>
#include <type_traits>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>
#include <cleave/ops/products/linear.hpp>

#include "cuda_calls.hpp"
#include "cuda_stand_in/stand_in.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace linear_calls {

template <class T>
using Wide = std::conditional_t<is_complex<T>, std::complex<double>, double>;
template <class T>
Wide<T> wide(const T& x) {
  if constexpr (is_complex<T>) return {double(x.real()), double(x.imag())};
  else if constexpr (std::is_same_v<T, double>) return x;
  else return double(float(x));
}
template <class T>
T narrow(const Wide<T>& x) {
  if constexpr (is_complex<T> || std::is_same_v<T, double>) return T(x);
  else return T(float(x));
}

/// Fractions with few bits: their sums are exact in the accumulators of all types, not in 16 bits.
template <class T, int Dims>
Tensor<T, Dims> fractions(const std::array<index_t, std::size_t(Dims)>& extents, index_t seed) {
  Tensor<T, Dims> x(extents);
  for (index_t i = 0; i < x.size(); ++i) {
    Wide<T> value = double((i * seed + i / 7) % 9 - 4) * 0.3125 + 0x1p-7;
    if constexpr (is_complex<T>) value += std::complex<double>(0, double(i % 5) - 2.25);
    x.data()[i] = narrow<T>(value);
  }
  return x;
}

struct Calls {
  int products, launches;
  bool operator==(const Calls&) const = default;
};

constexpr index_t a = 3, b = 5, k = 8, n = 6;

/// Compares a layer of [3, 5, 8] to [3, 5, 6] with loops.
/// @param bias  of which every `step`th element is used, from `first` on
template <class T>
Calls compare(const Tensor<T, 1>& bias, index_t first, index_t step) {
  const auto x = fractions<T, 3>({a, b, k}, 5);
  const auto weight = fractions<T, 2>({n, k}, 7);
  const auto on_gpu = bias.to(Cuda{});
  const auto every = slice(on_gpu, dim<0>{}, first, first + n * step, step);
  const auto gpu_x = x.to(Cuda{});
  const auto gpu_weight = weight.to(Cuda{});
  const cuda_stand_in::Recording recording;
  const auto y = linear(gpu_x, gpu_weight, every);
  const Calls calls{calls_of(recording, "cublasLtMatmul"),
                    calls_of(recording, "cudaLaunchKernelEx")};
  const auto result = y.to(Host{});
  index_t wrong = 0;
  for (index_t i = 0; i < a * b; ++i)
    for (index_t j = 0; j < n; ++j) {
      Wide<T> sum = 0;
      for (index_t l = 0; l < k; ++l)
        sum += wide<T>(x.data()[i * k + l]) * wide<T>(weight.data()[j * k + l]);
      sum += wide<T>(bias.data()[first + j * step]);
      wrong += !(result.data()[i * n + j] == narrow<T>(sum));
    }
  CHECK(wrong == 0);
  return calls;
}

}  // namespace linear_calls

using namespace linear_calls;

TEST_CASE_TEMPLATE("the bias of a linear layer is added by its product", T, float, half, bfloat16) {
  const auto bias = fractions<T, 1>({600}, 2);
  CHECK(compare<T>(bias, 0, 1) == Calls{1, 0});
  CHECK(compare<T>(bias, 512, 1) == Calls{1, 0});  // at another address, by the same plan
  CHECK(compare<T>(bias, 1, 1) == Calls{1, 0});    // less aligned
}

TEST_CASE_TEMPLATE("a bias that cuBLASLt cannot add is added after the product", T, double,
                   std::complex<float>, std::complex<double>) {
  CHECK(compare<T>(fractions<T, 1>({n}, 2), 0, 1) == Calls{1, 1});
}

TEST_CASE("a bias with gaps is added after the product") {
  CHECK(compare<float>(fractions<float, 1>({2 * n}, 2), 0, 2) == Calls{1, 1});
}

TEST_CASE("a linear layer whose epilogue cuBLASLt refuses is computed without it") {
  const Tensor<float, 2> x({1, 3}, {1, 1, 1});
  const Tensor<float, 2> weight({4, 3}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  const Tensor<float, 1> bias({4}, {5, 5, 5, 5});
  const auto gpu_x = x.to(Cuda{});
  const auto gpu_weight = weight.to(Cuda{});
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
