// The number of threads requested: kernels that move more bytes per thread request fewer.
#include <cstdint>
#include <cstdio>
#include <string>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_calls.hpp"
#include "cuda_stand_in/recorder.hpp"

using namespace cleave;

namespace {

/// The number of threads of all kernels that f() enqueues.
template <class F>
index_t threads_of(const F& f) {
  const cuda_stand_in::Recording recording;
  f();
  index_t threads = 0;
  for (const cuda_stand_in::Call& call : recording.calls()) {
    long blocks = 0, per_block = 0;
    if (std::sscanf(call.detail.c_str(), "grid %ldx1x1 block %ldx1x1", &blocks, &per_block) == 2)
      threads += blocks * per_block;
  }
  return threads;
}

struct Halve {
  CLEAVE_HOST_DEVICE void operator()(float& p, const float& g, float& m) const {
    m = g, p -= m / 2;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("rows of small elements that are aligned to nothing move word by word", T,
                   std::uint8_t, bfloat16) {
  constexpr index_t rows = 64, cols = 1000;
  const Tensor<T, 2, Cuda> wide({rows, cols + 1}), packed({rows, cols});
  wide.fill_(T(3.0f));
  const auto part = wide.slice(1, 1, cols + 1);
  const index_t words = rows * cols * index_t(sizeof(T)) / 4;
  CHECK(threads_of([&] { packed.copy_(part); }) <= words / 3);  // four words each, some unused
  CHECK(float(packed.to(Host{})(rows - 1, cols - 1)) == 3);
}

TEST_CASE("planes of bytes are transposed word by word, wherever rows begin") {
  constexpr index_t n = 509;
  const Tensor<std::uint8_t, 2, Cuda> wide({n, n + 2}), transposed({n, n});
  wide.fill_(3);
  const auto part = wide.slice(1, 1, n + 1);
  CHECK(threads_of([&] { transposed.copy_(part.transpose(0, 1)); }) <= n * n / 4 / 6);
  CHECK(transposed.to(Host{})(n - 1, n - 1) == 3);
}

TEST_CASE("a thread updates four floats of each array") {
  const Tensor<float, 1, Cuda> p({4096}), g({4096}), m({4096});
  for (const auto& x : {p, g, m}) x.fill_(2);
  CHECK(threads_of([&] {
          kernels::update_elements(kernels::On<Cuda>{}, "test", Halve{}, 4096, p.data(),
                                   static_cast<const float*>(g.data()), m.data());
        }) == 1024);
  CHECK(p.to(Host{})(4095) == 1);
}

TEST_CASE("the launches of a sort depend on the bits of its keys, not on the length of lines") {
  const auto launches = [](index_t lines, index_t n) {
    const Tensor<float, 2, Cuda> x({lines, n});
    x.fill_(1);
    return testing::launches_of([&] { argsort(x, dim<1>{}); });
  };
  CHECK(launches(1, 20) == 3);  // keys, a sort in one block, indices
  CHECK(launches(1, 10000) == 2 + 2 + 4);
  CHECK(launches(1, 40000) == 2 + 2 + 4);
  CHECK(launches(100, 400) == 2 + 2 + 5);  // seven bits more
}

TEST_CASE("a long line is summed by as many blocks as it has chunks, in three launches") {
  const auto line = [](index_t n) {
    const Tensor<float, 1, Cuda> x({n});
    x.fill_(1);
    return x;
  };
  const auto x = line(3 * 4096 + 1), shorter = line(3 * 4096);
  CHECK(testing::launches_of([&] { cumsum(x, dim<0>{}); }) == 3);
  CHECK(threads_of([&] { cumsum(x, dim<0>{}); }) == (3 + 1 + 4) * 256);
  CHECK(testing::launches_of([&] { cumsum(shorter, dim<0>{}); }) == 1);
  CHECK(cumsum(x, dim<0>{}).to(Host{})(3 * 4096) == 3 * 4096 + 1);
}

TEST_CASE("categories are drawn without a copy to the host, or a wait for it") {
  const auto calls = [](index_t n, bool replacement) {
    const Tensor<float, 2, Cuda> weights({2, n});
    weights.fill_(1);
    RandomState state;
    const cuda_stand_in::Recording recording;
    multinomial(weights, 3, state, replacement);
    CHECK(testing::calls_of(recording, "cudaMemcpyAsync") == 0);
    CHECK(testing::calls_of(recording, "Synchronize") == 0);
    return testing::calls_of(recording, "cudaLaunchKernelEx");
  };
  CHECK(calls(32, true) == 2);  // a level of sums, and the draws
  CHECK(calls(33, true) == 3);
  CHECK(calls(32 * 32 + 1, true) == 4);
  CHECK(calls(20, false) ==
        2 + 1 + 1 + 2);  // variates and check; keys, two sorts of a block, indices
}
