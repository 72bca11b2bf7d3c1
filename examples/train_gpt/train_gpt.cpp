// Trains a small GPT on a text, character by character, on a mesh of dp x tp ranks: sequences of a
// batch are sharded over dp, with gradients summed in buckets, heads and hidden layers over tp.
// Then it generates some text.
//
//     train_gpt --ranks 4 --mesh dp=2,tp=2                      four threads
//     mpirun -n 4 train_gpt --mesh dp=2,tp=2 --text FILE        four processes
//     train_gpt --ranks 4 --mesh dp=2,tp=2 --sharded            parameters sharded over dp, too
//     train_gpt --ranks 2 --resume DIRECTORY                    saves there, and resumes from there
//     train_gpt --curve loss.svg                                draws the losses
//
// With --sharded each rank of dp keeps its part of parameters, gradients and the optimizer's state,
// and gathers a block when it is used. Batches, initial parameters and losses are the same on any
// mesh, up to rounding.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <cleave/nn.hpp>
#include <cleave/parallel/fully_shard.hpp>
#include <cleave/parallel/replicate.hpp>

#include "../curve.hpp"
#include "../progress.hpp"
#include "model.hpp"
#include "options.hpp"
#include "text.hpp"

using namespace cleave;
using axes::dp;
using axes::tp;

namespace {

constexpr std::uint64_t seed = 1;

/// The mean of -log(probability) of the following characters.
auto loss_of(const auto& model, const auto& batch, const auto& where) {
  return cross_entropy(flatten(model(batch.x, where), dim<0, 1>{}),
                       flatten(batch.next, dim<0, 1>{}));
}

/// The text that the model generates from the beginning of a text, one character after the other.
template <class Mesh>
std::string written(const auto& model, const gpt::Text& text, const auto& where, index_t context,
                    index_t count, const Mesh& mesh) {
  std::vector<index_t> tokens;
  for (index_t i = 0; i < context; ++i) tokens.push_back(text.token(i));
  RandomState state{seed + 1, 0};
  for (index_t n = 0; n < count; ++n) {
    const gpt::Tokens<Mesh> window = empty<index_t>({1, context}, mesh, Shard<0>{}, Replicate{});
    for (index_t j = 0; j < window.to_local().size(); ++j)
      window.to_local().data()[j] = tokens[tokens.size() - std::size_t(context - j)];
    const auto chances = softmax(model(window, where), dim<2>{}).full_tensor();
    Tensor<float, 1> last({text.vocabulary()});
    for (index_t c = 0; c < last.size(); ++c) last(c) = chances(0, context - 1, c);
    tokens.push_back(multinomial(last, 1, state)(0));
  }
  std::string result;
  for (const index_t token : tokens) result += text.character(token);
  return result;
}

/// @param model  on the mesh, its parameters tracked
template <class Mesh>
void train(World& world, const auto& model, const gpt::Text& text, const gpt::Options& options,
           const Mesh& mesh) {
  auto optimizer = nn::adamw(model, {.weight_decay = 0.01});
  const nn::Cosine rate{.rate = 3e-3,
                        .steps = options.steps,
                        .least = 3e-4,
                        .warm_up = std::min<index_t>(20, options.steps / 4)};
  const auto where = empty<index_t>({options.context}, mesh, Replicate{}, Replicate{});
  for (index_t i = 0; i < options.context; ++i) where.to_local()(i) = i;

  auto state = nn::state_dict(model, "model.") + nn::state_dict(optimizer, "optimizer.");
  index_t step = 0;
  const std::string latest = options.resume.empty() ? "" : nn::latest_checkpoint(options.resume);
  if (!latest.empty()) step = std::stol(nn::note_of(nn::load_checkpoint(latest, state), "step"));
  if (world.rank() == 0) {
    std::printf("%lld parameters, %lld characters of text, %lld distinct\n",
                static_cast<long long>(nn::count(model)), static_cast<long long>(text.size()),
                static_cast<long long>(text.vocabulary()));
    if (!latest.empty()) std::printf("resuming from %s\n", latest.c_str());
  }

  training::Curve curve;
  while (step < options.steps) {
    training::Progress progress(world);
    do {
      const gpt::Batch batch(text, options.batch, options.context, std::uint64_t(step), mesh);
      const auto loss = loss_of(model, batch, where);
      zero_grad(model);
      backward(loss);
      nn::clip_grad_norm_(model, 1.0);
      optimizer.options.learning_rate = rate(step);
      optimizer.step(model);
      progress.add(double(loss.value().item()));
      ++step;
      if (!options.resume.empty() && step % options.save == 0) {
        state.notes = {{"step", std::to_string(step)}};
        nn::save_checkpoint(world, options.resume + "/step-" + std::to_string(step), state);
      }
    } while (step < options.steps && step % options.every != 0);
    if (world.rank() != 0) continue;
    curve.add(double(step), progress.mean_loss());
    std::printf("step %5lld  loss %.4f  %s\n", static_cast<long long>(step), progress.mean_loss(),
                progress.speed(options.batch * options.context, "tokens").c_str());
    std::fflush(stdout);
  }
  if (world.rank() == 0 && !options.curve.empty()) curve.write(options.curve, "steps");
  const std::string sample =
      written(detach(model), text, where, options.context, options.sample, mesh);
  if (world.rank() == 0) std::printf("----\n%s\n----\n", sample.c_str());
}

void train(World& world, const gpt::Text& text, const gpt::Options& options) {
  const auto mesh =
      init_device_mesh<dp, tp>(world, {options.mesh.along_dp(world.size()), options.mesh.tp});
  if (options.batch % mesh.extents()[0] != 0)
    throw gpt::UsageError("--batch " + std::to_string(options.batch) +
                          " is not a multiple of dp=" + std::to_string(mesh.extents()[0]));
  manual_seed(world, seed);
  const auto model = gpt::placed_model(text.vocabulary(), options.context, options.width,
                                       options.heads, options.layers, mesh);
  if (options.sharded) {  // groups: each block, and the rest; replicate sums biases of columns
    train(world,
          requires_grad(replicate(fully_shard(model, mesh, dp{}, "blocks.*"_path), mesh, dp{})),
          text, options, mesh);
  } else {
    train(world, requires_grad(replicate(model, mesh, dp{})), text, options, mesh);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const gpt::Options options = gpt::parse(argc, argv);
    const gpt::Text text(options.text, options.context);
    if (!options.resume.empty()) std::filesystem::create_directories(options.resume);
    if (!options.curve.empty()) training::Curve{}.write(options.curve, "");  // whether it can be
    return run(argc, argv, [&](World& world) { train(world, text, options); });
  } catch (const gpt::UsageError& error) {
    std::fprintf(stderr, "train_gpt: %s\n", error.what());
    return 2;
  }
}
