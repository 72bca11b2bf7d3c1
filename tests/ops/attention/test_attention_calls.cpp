// The launches of attention on a GPU, and the memory that it allocates: no array of all pairs of
// queries and keys.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>
#include <cleave/grad.hpp>
#include <cleave/ops/attention/attention.hpp>

#include "cuda_calls.hpp"
#include "cuda_memory.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace attention_calls {

Tensor<double, 2, Cuda> rows_on_gpu(index_t n) {
  const Tensor<double, 2> x({n, 4});
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(double(i * 37 % 1009));
  return x.to(Cuda{});
}

/// The bytes of the largest allocation of f(), which uses no memory of earlier tensors.
template <class F>
std::size_t largest_allocation(const F& f) {
  static_cast<void>(in_use());
  const cuda_stand_in::Recording recording;
  f();
  std::size_t bytes = 0;
  for (const cuda_stand_in::Call& call : recording.calls())
    if (call.function.find("Malloc") != call.function.npos) bytes = std::max(bytes, call.bytes);
  return bytes;
}

}  // namespace attention_calls

using namespace attention_calls;

TEST_CASE("attention on a GPU allocates memory for a block, not for all pairs") {
  const auto most = [](index_t n) {
    const auto x = rows_on_gpu(n);
    return largest_allocation([&] {
      const auto q = requires_grad(x), k = requires_grad(x), v = requires_grad(x);
      backward(sum(scaled_dot_product_attention(q, k, v, causal)));
    });
  };
  CHECK(most(300) == std::size_t(300 * 256) * sizeof(double));  // a block has 256 keys
  CHECK(most(600) == 2 * most(300));
}

TEST_CASE("attention on a GPU launches one kernel per block of keys, besides products") {
  const auto x = rows_on_gpu(600);
  CHECK(launches_of([&] { scaled_dot_product_attention(x, x, x); }) == 3 + 1);
  CHECK(launches_of([&] {
          const auto q = requires_grad(x);
          scaled_dot_product_attention(q, x, x, causal);
        }) == 3 + 1);
}
