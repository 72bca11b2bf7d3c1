// A training step of a transformer as a program against the same step as calls, interleaved, with
// the same weights bit by bit.
#include "gpt_step.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <cleave/comm/run.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/spmd.hpp>

#include "../timing.hpp"
#include "traced_gpt_step.hpp"

using namespace cleave;
using namespace cleave::axes;
using bench::median;
using bench::seconds_of;

namespace {

constexpr bench::GptSizes sizes;

void step(World& world) {
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  const auto random = [&]<std::size_t Rank>(const std::array<index_t, Rank>& shape, auto placed) {
    index_t extents[Rank];
    for (std::size_t d = 0; d < Rank; ++d) extents[d] = shape[d];
    return randn<float>(extents, mesh, placed);
  };
  const auto made = [&](const auto& shape) { return mul(random(shape, Replicate{}), 0.1f); };
  using Block = bench::GptBlock<decltype(made(std::array<index_t, 2>{})),
                                decltype(made(std::array<index_t, 1>{}))>;
  const std::array<index_t, 3> shape{sizes.batch, sizes.context, sizes.width};
  const auto x = random(shape, Shard<0>{}), target = random(shape, Shard<0>{});
  std::vector<Block> blocks;
  for (index_t i = 0; i < sizes.layers; ++i) blocks.push_back(Block::made(sizes.width, made));

  std::vector<spmd::ErasedTensor> inputs{spmd::erased(x), spmd::erased(target)};
  bench::each_weight(blocks, [&](const auto& w) { inputs.push_back(spmd::erased(w)); });
  std::vector<Layout> schemas;
  for (const spmd::ErasedTensor& input : inputs) schemas.push_back(input.layout);
  const spmd::Program program =
      spmd::expand(bench::traced_gpt_step(sizes), schemas, {.mesh = mesh.extents()});
  reset_memory_peak();
  const std::size_t before = memory_stats().allocated;
  spmd::Runner runner(program, mesh);

  std::vector<spmd::ErasedTensor> by_program, by_calls;
  const auto run_program = [&] {
    by_program.clear();
    by_program = runner(inputs);
  };
  const auto call = [&] {
    by_calls.clear();
    const auto loss = bench::gpt_step(x, target, blocks, sizes.heads,
                                      [&](const auto& w) { by_calls.push_back(spmd::erased(w)); });
    by_calls.insert(by_calls.begin(), spmd::erased(resolve(loss)));
  };
  run_program();
  const auto peak = double(memory_stats().peak - before);
  call();
  for (std::size_t i = 0; i < by_program.size(); ++i) {
    const View &a = by_program[i].local, &b = by_calls[i].local;
    if (a.size() != b.size() ||
        std::memcmp(a.data, b.data, std::size_t(a.size()) * sizeof(float)) != 0)
      throw Error("bench", "output " + std::to_string(i) + " of the program differs");
  }
  std::vector<double> calls, runs, ratios;
  for (int i = 0; i < 31; ++i) {
    calls.push_back(seconds_of(2, call));
    runs.push_back(seconds_of(2, run_program));
    ratios.push_back(calls.back() / runs.back());
  }
  if (world.rank() != 0) return;
  if (world.size() > 1) {
    std::printf("spmd.gpt_step.2x1.vs_eager %.2f ratio\n", median(ratios));
    return;
  }
  std::printf("spmd.gpt_step.program_ms %.2f ms\n", 1e3 * median(runs));
  std::printf("spmd.gpt_step.calls_ms %.2f ms\n", 1e3 * median(calls));
  std::printf("spmd.peak_predicted_over_measured %.3f ratio\n", double(runner.peak_bytes()) / peak);
  std::printf("spmd.gpt_step.vs_eager %.2f ratio\n", median(ratios));
}

}  // namespace

int main() {
  run_threads(1, step);
  run_threads(2, step);
}
