// Attention's weights as a program, softmax(scores / 8 + mask): reads a count per line, writes the
// seconds of a run, the mean of so many, and the sum of the last one's squares. softmax_mask.py
// drives it, interleaved with the same calls of torch.
#include <array>
#include <iostream>
#include <limits>
#include <type_traits>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/normalisation/softmax.hpp>
#include <cleave/spmd.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

constexpr index_t heads = 32, length = 512;

struct Weights {
  constexpr auto operator()(const auto& scores, const auto& mask) const {
    return softmax(add(mul(scores, 0.125f), mask), dim<2>{});
  }
};

constexpr auto graph = spmd::frozen([] {
  return spmd::trace(Weights{}, spmd::arg<float>("scores", {heads, length, length}),
                     spmd::arg<float>("mask", {length, length}));
});
constexpr std::array schemas{spmd::schema(Shard<0>{}), spmd::schema(Replicate{})};
constexpr auto program = spmd::frozen([] { return spmd::expand(graph, schemas); });

/// The elements are those of softmax_mask.py.
void answer(World& world) {
  const auto mesh = init_device_mesh<dp>(world, {1});
  const auto scores = zeros<float>({heads, length, length}, mesh, Shard<0>{});
  const auto mask = zeros<float>({length, length}, mesh, Replicate{});
  float* const x = scores.to_local().data();
  for (index_t i = 0; i < heads * length * length; ++i) x[i] = float(i * 7919 % 8000) / 1000 - 4;
  for (index_t i = 0; i < length; ++i)
    for (index_t j = i + 1; j < length; ++j)
      mask.to_local()(i, j) = -std::numeric_limits<float>::infinity();
  std::remove_const_t<decltype(scores)> y = scores;
  for (int count; std::cin >> count;) {
    const double seconds =
        bench::seconds_of(count, [&] { y = std::get<0>(spmd::run<program>(mesh, scores, mask)); });
    double squares = 0;
    for (index_t i = 0; i < heads * length * length; ++i)
      squares += double(y.to_local().data()[i]) * double(y.to_local().data()[i]);
    std::cout << seconds << " " << squares << std::endl;
  }
}

}  // namespace

int main() { run_threads(1, answer); }
