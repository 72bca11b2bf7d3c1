// The steps of AdamW for all parameters of a module, as a program against the same fused steps as
// calls, interleaved, with the same parameters and state bit by bit: few large parameters, and many
// small ones.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/nn.hpp>
#include <cleave/spmd.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;
using bench::median;
using bench::seconds_of;

namespace {

/// Gives parameters their gradients.
constexpr auto take_gradients = [](const auto& layers, const auto& gradients) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    backward(layers[i].weight, gradients[i].weight);
    backward(layers[i].bias, gradients[i].bias);
  }
};

bool same_bits(const std::vector<spmd::ErasedTensor>& a, const std::vector<spmd::ErasedTensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i)
    same = std::memcmp(a[i].local.data, b[i].local.data,
                       std::size_t(a[i].local.size()) * size_of(a[i].local.dtype)) == 0;
  return same;
}

/// @param repeats  steps per measurement
void steps(World& world, const char* name, index_t layers, index_t width, int repeats) {
  const auto mesh = init_device_mesh<dp>(world, {1});
  const auto make_layers = [&](std::uint64_t seed, const auto& wrap) {
    manual_seed(world, seed);
    const auto layer = [&] {
      return wrap(nn::Linear{randn<float>({width, width}, mesh), randn<float>({width}, mesh)});
    };
    std::vector<decltype(layer())> made;
    for (index_t i = 0; i < layers; ++i) made.push_back(layer());
    return made;
  };
  const auto tracked = [](const auto& m) { return requires_grad(m); };
  const auto gradients = make_layers(1, [](const auto& m) { return m; });
  const auto given = make_layers(2, tracked), called = make_layers(2, tracked);
  const auto adamw_of = [](const auto& m) {
    return nn::adamw(m, {.learning_rate = 1e-3, .weight_decay = 0.01});
  };
  const auto given_adamw = adamw_of(given), called_adamw = adamw_of(called);
  const spmd::Graph graph = spmd::trace(
      [](const auto& m, const auto& adamw, const auto& g) {
        take_gradients(m, g);
        adamw.step(m);
        return std::tuple{};
      },
      spmd::args_of(given), spmd::args_of(given_adamw), spmd::args_of(gradients));
  spmd::Runner runner(spmd::expand(graph, spmd::schemas_of(given, given_adamw, gradients)), mesh);
  take_gradients(called, gradients);
  std::vector<double> ratios;
  for (int i = 0; i < 32; ++i) {
    const double run = seconds_of(repeats, [&] { runner.run<>(given, given_adamw, gradients); });
    const double call = seconds_of(repeats, [&] { called_adamw.step(called); });
    if (i > 0) ratios.push_back(call / run);
  }
  if (!same_bits(spmd::inputs_of(given, given_adamw), spmd::inputs_of(called, called_adamw)))
    throw Error("bench", "the program and the calls give different parameters or states");
  std::printf("%s %.2f ratio\n", name, median(ratios));
}

}  // namespace

int main() {
  run_threads(1, [](World& world) {
    steps(world, "spmd.adam.vs_fused_eager", 4, 1024, 1);
    steps(world, "spmd.adam_of_gpt.vs_fused_eager", 48, 64, 4);
    steps(world, "spmd.adam_of_small_parameters.vs_fused_eager", 100, 16, 20);
  });
}
