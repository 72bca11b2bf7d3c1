// Complete training steps: forward, backward, the norm of all gradients if the program uses it, and
// the optimizer. Compared with a hand-written loop; on two ranks with one; and, driven by
// compare.py, with torch.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <cleave/nn.hpp>
#include <cleave/parallel/replicate.hpp>

#include "../timing.hpp"
#include "gpt_step.hpp"
#include "handwritten.hpp"

using namespace cleave;
using axes::dp;
using bench::median;
using bench::seconds_of;

namespace {

constexpr int rounds = 15, at_once = 4;

/// A model whose gradients are summed over dp in buckets.
constexpr auto replicated = [](const auto& model, const auto& mesh) {
  return replicate(model, mesh, dp{});
};

/// The median time of a step on `ranks` ranks, measured on the first.
double gpt_seconds(int ranks, const bench::GptSizes& sizes) {
  double result = 0;
  run_threads(ranks, [&](World& world) {
    bench::with_gpt(world, sizes, replicated, [&](const auto& step) {
      seconds_of(at_once, step);
      std::vector<double> times;
      for (int i = 0; i < rounds; ++i) times.push_back(seconds_of(at_once, step));
      if (world.rank() == 0) result = median(times);
    });
  });
  return result;
}

/// The same global batch on one rank and on two ranks that are threads: the time on one divided by
/// twice the time on two; the median of pairs.
void gpt_efficiency() {
  std::vector<double> ratios;
  for (int i = 0; i < 7; ++i) ratios.push_back(gpt_seconds(1, {}) / (2 * gpt_seconds(2, {})));
  std::printf("train.gpt_step.2x1.efficiency %.2f ratio\n", median(ratios));
}

/// The time of a hand-written step divided by that of the library, interleaved, with the same
/// losses.
void mlp(World& world) {
  constexpr index_t rows = 256, inputs = 256, hidden = 1024, outputs = 10;
  const auto mesh = init_device_mesh<dp>(world, {1});
  const auto model = requires_grad(nn::place(nn::mlp(inputs, hidden, outputs), mesh));
  auto optimizer = nn::adam(model, {});
  const auto x = randn<float>({rows, inputs}, mesh, Shard<0>{});
  const auto classes = empty<index_t>({rows}, mesh, Shard<0>{});
  for (index_t i = 0; i < rows; ++i) classes.to_local()(i) = i * 7 % outputs;

  bench::HandwrittenMlp by_hand{rows, inputs, hidden, outputs};
  float* to = by_hand.up();
  nn::parameters(model, [&](const auto& p) {
    const auto& local = p.value().to_local();
    for (index_t i = 0; i < local.size(); ++i) *to++ = local.data()[i];
  });
  double loss = 0, hand_loss = 0;
  const auto step = [&] {
    const auto now = cross_entropy(model(x), classes);
    zero_grad(model);
    backward(now);
    optimizer.step(model);
    loss = now.value().item();
  };
  const auto hand_step = [&] {
    hand_loss = by_hand.step(x.to_local().data(), classes.to_local().data());
  };
  std::vector<double> ratios;
  for (int i = 0; i < 31; ++i) {
    const double ours = seconds_of(2, step), theirs = seconds_of(2, hand_step);
    if (std::abs(loss - hand_loss) > 1e-3 * (1 + std::abs(loss)))
      throw Error("bench",
                  "losses differ: " + std::to_string(loss) + " and " + std::to_string(hand_loss));
    if (i > 0) ratios.push_back(theirs / ours);
  }
  std::printf("train.mlp_step.1rank.vs_handwritten %.2f ratio\n", median(ratios));
}

/// Reads a number of steps per line; writes the seconds per step and the last loss.
void answer(World& world) {
  bench::with_gpt(world, {}, replicated, [](const auto& step) {
    for (int count; std::cin >> count;) {
      double loss = 0;
      const double seconds = seconds_of(count, [&] { loss = step(); });
      std::cout << seconds << ' ' << loss << std::endl;
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "gpt") run_threads(1, answer);
  if (what == "mlp" || what.empty()) run_threads(1, mlp);
  if (what == "efficiency" || what.empty()) gpt_efficiency();
}
