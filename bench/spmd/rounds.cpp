// Training steps as programs whose collectives are merged and run while ranks compute: the messages
// of many small gradients against those of one by one, and the share of the latency that is hidden
// where every collective takes 2 ms longer. Two ranks, threads.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/ops/elementwise/activations.hpp>
#include <cleave/ops/elementwise/functions.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/ops/reductions/reduce.hpp>
#include <cleave/spmd.hpp>

#include "../parallel/delayed.hpp"
#include "../timing.hpp"
#include "traced_gpt_step.hpp"

using namespace cleave;
using namespace cleave::axes;
using bench::median;
using bench::seconds_of;

namespace {

constexpr double latency = 2e-3;
constexpr index_t width = 512, batch = 256;
constexpr int depth = 24, repetitions = 15;

/// The square of a network's output, and its weights after a step.
spmd::Graph traced_network() {
  const auto step = [](const auto& x, const auto& weights) {
    std::vector<decltype(requires_grad(weights[0]))> tracked;
    for (const auto& w : weights) tracked.push_back(requires_grad(w));
    auto y = requires_grad(x);
    for (const auto& w : tracked) y = tanh(matmul(y, w));
    backward(sum(square(y)));
    auto updated = weights;
    for (std::size_t i = 0; i < tracked.size(); ++i)
      updated[i] = sub(weights[i], mul(grad(tracked[i]), 1e-4f));
    return updated;
  };
  const std::vector weights(std::size_t(depth), spmd::arg<float>("w", {width, width}));
  return spmd::trace(step, spmd::arg<float>("x", {batch, width}), weights);
}

int calls_of(const spmd::Program& program) {
  int calls = 0;
  for (const StepKind kind : {StepKind::all_gather, StepKind::all_to_all, StepKind::exchange,
                              StepKind::reduce_scatter, StepKind::all_reduce})
    calls += rounds(program, kind);
  return calls;
}

void hidden_latency(World& world) {
  const World slow_world(std::make_shared<bench::Delayed>(world.shared_communicator(),
                                                          std::chrono::duration<double>(latency)));
  const auto fast = init_device_mesh<dp>(world, {world.size()});
  const auto slow = init_device_mesh<dp>(slow_world, {world.size()});
  const spmd::Graph graph = traced_network();
  std::vector<Layout> schemas(std::size_t(depth) + 1, spmd::schema(Replicate{}));
  schemas[0] = spmd::schema(Shard<0>{});
  const spmd::Program plain = spmd::expand(graph, schemas, {.mesh = slow.extents()});
  const spmd::Program program = spmd::optimize(plain, slow);
  spmd::Runner one_by_one(plain, slow), run_slow(program, slow), run_fast(program, fast);
  const auto inputs_on = [&](const auto& mesh) {
    std::vector<spmd::ErasedTensor> inputs{
        spmd::erased(randn<float>({batch, width}, mesh, Shard<0>{}))};
    for (int i = 0; i < depth; ++i)
      inputs.push_back(spmd::erased(mul(randn<float>({width, width}, mesh, Replicate{}), 0.05f)));
    return inputs;
  };
  const auto on_fast = inputs_on(fast), on_slow = inputs_on(slow);
  const auto seconds = [&](auto& runner, const auto& inputs) {
    world.barrier();
    return seconds_of(1, [&] {
      static_cast<void>(runner(inputs));
      world.barrier();
    });
  };
  std::vector<double> hidden, gain;
  for (int i = -2; i < repetitions; ++i) {
    const double without = seconds(run_fast, on_fast), with = seconds(run_slow, on_slow);
    const double alone = seconds(one_by_one, on_slow);
    if (i < 0) continue;
    hidden.push_back(1 - (with - without) / (latency * calls_of(program)));
    gain.push_back(alone / with);
  }
  if (world.rank() != 0) return;
  std::printf("spmd.hidden_latency_calls %d calls\n", calls_of(program));
  std::printf("spmd.hidden_latency_share %.3f ratio\n", median(hidden));
  std::printf("spmd.hidden_latency.vs_one_by_one %.2f ratio\n", median(gain));
}

void small_tensors(World& world) {
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  constexpr bench::GptSizes sizes{.batch = 2, .context = 16, .width = 32, .heads = 4, .layers = 12};
  const std::array<index_t, 3> shape{sizes.batch, sizes.context, sizes.width};
  const spmd::Graph graph = bench::traced_gpt_step(sizes);
  std::vector<Layout> schemas(graph.inputs.size(), spmd::schema(Replicate{}));
  schemas[0] = schemas[1] = spmd::schema(Shard<0>{});
  const spmd::Program plain = spmd::expand(graph, schemas, {.mesh = mesh.extents()});
  const spmd::Program program = spmd::optimize(plain, mesh);
  std::vector<spmd::ErasedTensor> inputs;
  for (int i = 0; i < program.inputs; ++i) {
    const spmd::PlacedValue& value = program.values[std::size_t(i)];
    if (value.shape.dims == 3)
      inputs.push_back(
          spmd::erased(randn<float>({shape[0], shape[1], shape[2]}, mesh, Shard<0>{})));
    else if (value.shape.dims == 2)
      inputs.push_back(spmd::erased(
          mul(randn<float>({value.shape[0], value.shape[1]}, mesh, Replicate{}), 0.1f)));
    else
      inputs.push_back(spmd::erased(mul(randn<float>({value.shape[0]}, mesh, Replicate{}), 0.1f)));
  }
  const auto messages = [&](const spmd::Program& of) {
    spmd::Runner runner(of, mesh);
    const CommTrace trace(mesh.communicator());
    static_cast<void>(runner(inputs));
    return double(trace.received_messages());
  };
  const auto time = [&](spmd::Runner<Host>& runner) {
    return seconds_of(2, [&] { static_cast<void>(runner(inputs)); });
  };
  const double before = messages(plain), after = messages(program);
  spmd::Runner one_by_one(plain, mesh), merged(program, mesh);
  std::vector<double> ratios;
  for (int i = 0; i < 2 * repetitions; ++i) ratios.push_back(time(one_by_one) / time(merged));
  if (world.rank() != 0) return;
  std::printf("spmd.small_tensors.messages %.0f messages\n", after);
  std::printf("spmd.small_tensors.messages_vs_one_by_one %.3f ratio\n", after / before);
  std::printf("spmd.small_tensors.vs_one_by_one %.2f ratio\n", median(ratios));
}

}  // namespace

int main() {
  run_threads(2, small_tensors);
  run_threads(2, hidden_latency);
}
