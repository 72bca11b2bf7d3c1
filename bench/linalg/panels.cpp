// The share of a network's latency that a product in panels hides: on two ranks, exchanges that
// are delayed by 2 ms, against the same without the delay.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/products/einsum.hpp>

#include "../parallel/delayed.hpp"
#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

constexpr double latency = 2e-3;
constexpr index_t n = 2048;
constexpr int repetitions = 15;

void measure(World& world) {
  const World slow_world(std::make_shared<bench::Delayed>(world.shared_communicator(),
                                                          std::chrono::duration<double>(latency)));
  const index_t own = n * n / world.size();
  const fewest_bytes limits{.memory_limit = (2 * own + n * n / 4) * index_t(sizeof(double))};
  const auto seconds_on = [&](const auto& mesh) {
    const auto x = ones<double>({n, n}, mesh, Shard<0>{});
    world.barrier();
    return bench::seconds_of(1, [&] {
      (void)einsum<Placements<Shard<0>>>("ik,kj->ij"_ein, limits, x, x);
      world.barrier();
    });
  };
  const auto fast = init_device_mesh<dp>(world, {world.size()});
  const auto slow = init_device_mesh<dp>(slow_world, {world.size()});
  const auto x = ones<double>({n, n}, slow, Shard<0>{});
  const ContractionStep step =
      explain<Placements<Shard<0>>>("ik,kj->ij"_ein, limits, x, x).steps[0];
  const index_t panels = step.panel == 0 ? 1 : (n + step.panel - 1) / step.panel;
  std::vector<double> hidden;
  for (int i = -2; i < repetitions; ++i) {
    const double without = seconds_on(fast), with = seconds_on(slow);
    if (i >= 0) hidden.push_back(1 - (with - without) / (latency * double(panels)));
  }
  if (world.rank() != 0) return;
  std::printf("linalg.einsum.panels %d exchanges\n", int(panels));
  std::printf("linalg.einsum.panels.hidden_latency_share %.3f ratio\n", bench::median(hidden));
}

}  // namespace

int main() {
  char program[] = "linalg_panels", ranks[] = "--ranks", two[] = "2";
  char* words[] = {program, ranks, two, nullptr};
  return run(3, words, [](World& world) { measure(world); });
}
