// Data-parallel training: a network learns the function that another one computes. Each rank has a
// part of every batch; gradients are summed in buckets during backward.
//
//     data_parallel --ranks 4                        four threads
//     mpirun -n 4 data_parallel --hook top_k         four processes, sending a tenth of all
//
// Batches, initial parameters and losses are the same on any number of ranks, up to rounding,
// unless a hook omits elements.
#include <cstdio>

#include <cleave/parallel.hpp>

#include "options.hpp"

using namespace cleave;
using axes::dp;

namespace {

constexpr index_t batch = 64, width = 16;

void train(World& world, const data_parallel::Options& options) {
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  manual_seed(world, 1);
  const auto teacher = nn::place(nn::mlp(width, 32, 4, nn::Tanh{}), mesh);
  const auto model =
      requires_grad(replicate(nn::mlp(width, 128, 4, nn::Gelu{}), mesh, dp{},
                              {.bucket_bytes = {.first = 1 << 10, .others = 8 << 10}}));
  model.register_comm_hook(data_parallel::hook_named(options.hook));
  auto optimizer = nn::adamw(model, {.learning_rate = 0.005, .weight_decay = 0});

  for (index_t step = 1; step <= options.steps; ++step) {
    CommTrace trace(world);
    zero_grad(model);
    double total = 0;
    for (index_t part = 1; part <= options.parts; ++part) {
      const auto x = randn<float>({batch, width}, mesh, Shard<0>{});
      const auto loss = mean(square(model(x) - teacher(x))) / float(options.parts);
      model.set_requires_gradient_sync(part == options.parts);  // the last one sends all sums
      backward(loss);
      total += double(loss.value().item());
    }
    optimizer.step(model);
    if (world.rank() == 0 && (step == 1 || step % 50 == 0))
      std::printf("step %3lld  loss %.4f  %lld buckets  received %.1f KiB\n",
                  static_cast<long long>(step), total, static_cast<long long>(model.bucket_count()),
                  double(trace.received_bytes()) / 1024);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const data_parallel::Options options = data_parallel::parse(argc, argv);
    return run(argc, argv, [&](World& world) { train(world, options); });
  } catch (const data_parallel::UsageError& error) {
    std::fprintf(stderr, "data_parallel: %s\n", error.what());
    return 2;
  }
}
