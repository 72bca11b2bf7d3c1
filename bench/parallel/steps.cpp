// Training steps of the GPT of examples/train_gpt on processes, each with its share of the batch:
// gradients summed in buckets, or parameters, gradients and the optimizer's state sharded.
//
//     mpirun -n 2 parallel_steps ddp|fsdp STEPS      prints the median seconds of a step, and the
//     last loss
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/parallel.hpp>

#include "../timing.hpp"
#include "../train/gpt_step.hpp"

using namespace cleave;
using axes::dp;

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 0;
  if ((what != "ddp" && what != "fsdp") || steps < 1) {
    std::fprintf(stderr, "usage: parallel_steps ddp|fsdp STEPS\n");
    return 2;
  }
  return run(argc, argv, [&](World& world) {
    const auto measure = [&](const auto& step) {
      std::vector<double> times;
      double loss = 0;
      for (int i = 0; i < steps; ++i) times.push_back(bench::seconds_of(1, [&] { loss = step(); }));
      if (world.rank() == 0) std::printf("%.9f %.6f\n", bench::median(times), loss);
    };
    if (what == "ddp")
      bench::with_gpt(
          world, {}, [](const auto& m, const auto& mesh) { return replicate(m, mesh, dp{}); },
          measure);
    else
      bench::with_gpt(
          world, {},
          [](const auto& m, const auto& mesh) {
            return fully_shard(m, mesh, dp{}, "blocks.*"_path);
          },
          measure);
  });
}
