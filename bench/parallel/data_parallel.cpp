// The share of the latency of gradient sums that backward hides: a network on two ranks, threads
// or, under mpirun, processes, with collectives over dp that are delayed by 2 ms, against the same
// without the delay.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/parallel.hpp>

#include "../timing.hpp"
#include "delayed.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

constexpr double latency = 2e-3;
constexpr index_t width = 512, batch = 256;
constexpr int depth = 24, repetitions = 25;

template <class Layers = std::vector<nn::Linear<>>>
struct Network {
  Layers layers;
  static constexpr nn::names members{"layers"};

  auto operator()(const auto& x) const {
    auto y = tanh(layers[0](x));
    for (std::size_t i = 1; i < layers.size(); ++i) y = tanh(layers[i](y));
    return y;
  }
};

auto make(const World& world, const auto& mesh) {
  manual_seed(world, 1);
  return nn::place(Network<>{std::vector(std::size_t(depth), nn::linear(width, width))}, mesh);
}

/// Seconds of a backward, from the first rank's start to the last rank's end.
double seconds_of_backward(const World& world, const auto& model, const auto& x) {
  zero_grad(model);
  const auto loss = sum(square(model(x)));
  world.barrier();
  return bench::seconds_of(1, [&] {
    backward(loss);
    world.barrier();
  });
}

void measure(World& world) {
  const World slow_world(std::make_shared<bench::Delayed>(world.shared_communicator(),
                                                          std::chrono::duration<double>(latency)));
  const auto fast = init_device_mesh<dp>(world, {world.size()});
  const auto slow = init_device_mesh<dp>(slow_world, {world.size()});
  // a layer has 1 MiB of weights: the first bucket holds one layer, the others two
  const ReplicateOptions options{.bucket_bytes = {.first = 1 << 20, .others = 2 << 20}};
  const auto replicated = [&](const auto& mesh) {
    return requires_grad(replicate(make(world, mesh), mesh, dp{}, options));
  };
  const auto model_fast = replicated(fast), model_slow = replicated(slow);
  const auto single_slow = requires_grad(make(world, slow));
  const auto x_fast = randn<float>({batch, width}, fast, Shard<0>{});
  const auto x_slow = randn<float>({batch, width}, slow, Shard<0>{});

  std::vector<double> hidden, gain;
  for (int i = -2; i < repetitions; ++i) {  // two to warm up: buckets are rearranged
    const double without = seconds_of_backward(world, model_fast, x_fast);
    const double with = seconds_of_backward(world, model_slow, x_slow);
    const double single = seconds_of_backward(world, single_slow, x_slow);
    if (i < 0) continue;
    hidden.push_back(1 - (with - without) / (latency * double(model_slow.bucket_count())));
    gain.push_back(single / with);
  }
  if (world.rank() != 0) return;
  const char* const ranks =
      world.communicator().backend() == std::string("mpi") ? ".processes" : "";
  std::printf("ddp%s.hidden_latency_share %.2f ratio\n", ranks, bench::median(hidden));
  std::printf("ddp%s.backward.vs_one_sum_per_parameter %.2f ratio\n", ranks, bench::median(gain));
}

}  // namespace

int main() {
  char program[] = "parallel_data", ranks[] = "--ranks", two[] = "2";
  char* words[] = {program, ranks, two, nullptr};
  return run(3, words, [](World& world) { measure(world); });
}
