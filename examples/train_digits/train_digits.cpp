// Trains a network to read handwritten digits, on a mesh of dp x tp ranks: rows of a batch are
// sharded over dp, the hidden layer, or the filters of a convolution, over tp.
//
//     train_digits --ranks 4 --mesh dp=2,tp=2        four threads
//     mpirun -n 4 train_digits --mesh dp=2,tp=2      four processes
//     train_digits --model cnn                       filters instead of a hidden layer
//     train_digits --exact yes --losses FILE         exact sums; writes the bits of all losses
//
// Batches, initial parameters and losses are the same on any mesh, up to rounding; with exact sums,
// to the last bit.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <cleave/nn.hpp>

#include "../curve.hpp"
#include "../progress.hpp"
#include "cnn.hpp"
#include "options.hpp"

using namespace cleave;
using axes::dp;
using axes::tp;

namespace {

constexpr std::uint64_t seed = 1;
constexpr index_t held_out = 297;  // of 1797 digits; 1500 are trained on

struct Digits {
  Tensor<float, 2> points;  ///< 64 grey values each
  Tensor<std::uint8_t, 1> labels;

  explicit Digits(const std::string& directory)
      : points(load_npy<float, 2>(directory + "/digits.npy")),
        labels(load_npy<std::uint8_t, 1>(directory + "/labels.npy")) {}
};

/// The numbers [0, n) in a random order, the same on every rank: it depends on `draw` only.
std::vector<index_t> shuffled(index_t n, std::uint64_t draw) {
  RandomState state{seed, draw};
  const auto keys = rand<double>({n}, state);
  std::vector<index_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), index_t{0});
  std::sort(order.begin(), order.end(), [&](index_t a, index_t b) { return keys(a) < keys(b); });
  return order;
}

/// Some digits on a mesh, rows sharded over dp: each rank reads its own rows.
template <class Mesh>
struct Batch {
  DTensor<float, 2, Mesh, Placements<Shard<0>, Replicate>> x;
  DTensor<index_t, 1, Mesh, Placements<Shard<0>, Replicate>> classes;

  Batch(const Digits& digits, const index_t* rows, index_t n, const Mesh& mesh)
      : x(empty<float>({n, digits.points.extent(1)}, mesh, Shard<0>{}, Replicate{})),
        classes(empty<index_t>({n}, mesh, Shard<0>{}, Replicate{})) {
    const index_t first = x.local_box().begin[0];
    for (index_t i = 0; i < x.to_local().extent(0); ++i) {
      const index_t row = rows[first + i];
      for (index_t j = 0; j < digits.points.extent(1); ++j)
        x.to_local()(i, j) = digits.points(row, j) / 16;
      classes.to_local()(i) = digits.labels(row);
    }
  }
};

/// The share of digits that the model classifies correctly.
double accuracy(const auto& model, const auto& batch) {
  const auto read = argmax(model(batch.x), dim<1>{});
  const auto right = sum(cast<index_t>(equals(read, batch.classes)));
  return double(right.item()) / double(batch.classes.size());
}

/// Two linear layers.
template <class Mesh>
auto placed_mlp(const Mesh& mesh, index_t hidden) {
  const auto lazy = nn::mlp(64, hidden, 10);
  const nn::Linear down{nn::place(lazy.down.weight, mesh, Replicate{}, Shard<1>{}),
                        nn::place(lazy.down.bias, mesh)};
  return nn::Mlp{nn::place(lazy.up, mesh, Replicate{}, Shard<0>{}), nn::Relu{}, down};
}

/// The same, with exact sums.
template <class Mesh>
auto exact_mlp(const Mesh& mesh, index_t hidden) {
  const auto m = placed_mlp(mesh, hidden);
  return nn::Mlp{nn::ExactLinear{m.up.weight, m.up.bias}, nn::Relu{},
                 nn::ExactLinear{m.down.weight, m.down.bias}};
}

/// Ordinary floating-point sums, or exact ones.
struct Rounded {
  static auto loss(const auto& logits, const auto& classes) {
    return cross_entropy(logits, classes);
  }
  static void clip(const auto& model) { nn::clip_grad_norm_(model, 1.0); }
};
struct Exact {
  static auto loss(const auto& logits, const auto& classes) {
    return cross_entropy<exact>(logits, classes);
  }
  static void clip(const auto& model) { nn::clip_grad_norm_<exact>(model, 1.0); }
};

template <class Sums, class Mesh>
void train(World& world, const digits::Options& options, const Mesh& mesh, const auto& placed) {
  const Digits digits(options.data);
  const index_t count = digits.points.extent(0) - held_out;
  const std::vector<index_t> split = shuffled(digits.points.extent(0), 0);
  const Batch test(digits, split.data() + count, held_out, mesh);

  const auto model = requires_grad(placed);
  auto optimizer = nn::adamw(model, {.weight_decay = 0.01});

  const index_t steps = std::max<index_t>(1, count / options.batch);
  const nn::Cosine rate{
      .rate = 4e-3, .steps = options.epochs * steps, .least = 0, .warm_up = steps};
  auto state = nn::state_dict(model, "model.") + nn::state_dict(optimizer, "optimizer.");
  index_t epoch = 0;
  const std::string latest =
      options.checkpoints.empty() ? "" : nn::latest_checkpoint(options.checkpoints);
  if (!latest.empty()) epoch = std::stol(nn::note_of(nn::load_checkpoint(latest, state), "epoch"));
  if (world.rank() == 0) {
    std::printf("%s%lld parameters\n", nn::describe(model).c_str(),
                static_cast<long long>(nn::count(model)));
    if (epoch > 0) std::printf("resuming from %s\n", latest.c_str());
  }

  training::Curve curve;
  std::ofstream losses;
  if (world.rank() == 0 && !options.losses.empty()) losses.open(options.losses);
  losses << std::hexfloat;
  for (; epoch < options.epochs; ++epoch) {
    const std::vector<index_t> order = shuffled(count, std::uint64_t(epoch) + 1);
    training::Progress progress(world);
    for (index_t step = 0; step < steps; ++step) {
      std::vector<index_t> rows;
      for (index_t i = 0; i < std::min(options.batch, count); ++i)
        rows.push_back(split[std::size_t(order[std::size_t(step * options.batch + i)])]);
      const Batch batch(digits, rows.data(), index_t(rows.size()), mesh);
      const auto loss = Sums::loss(model(batch.x), batch.classes);
      zero_grad(model);
      backward(loss);
      Sums::clip(model);
      optimizer.options.learning_rate = rate(epoch * steps + step);
      optimizer.step(model);
      const float value = loss.value().item();
      progress.add(value);
      losses << value << '\n';
    }
    const std::string speed = progress.speed(options.batch, "digits");
    if (!options.checkpoints.empty() && (epoch + 1) % 10 == 0) {
      state.notes = {{"epoch", std::to_string(epoch + 1)}};
      const std::string name = "/epoch-" + std::to_string(epoch + 1);
      nn::save_checkpoint(world, options.checkpoints + name, state);
    }
    const double held = accuracy(detach(model), test);
    if (world.rank() != 0) continue;
    curve.add(double(epoch + 1), progress.mean_loss());
    std::printf("epoch %3lld  loss %.4f  held out %5.2f %%  %s\n",
                static_cast<long long>(epoch + 1), progress.mean_loss(), 100 * held, speed.c_str());
  }
  if (world.rank() == 0 && !options.curve.empty()) curve.write(options.curve, "epochs");
}

void train(World& world, const digits::Options& options) {
  const auto mesh =
      init_device_mesh<dp, tp>(world, {options.mesh.along_dp(world.size()), options.mesh.tp});
  manual_seed(world, seed);
  if (options.model == "cnn")
    train<Rounded>(world, options, mesh, digits::cnn(mesh, options.filters));
  else if (options.exact) train<Exact>(world, options, mesh, exact_mlp(mesh, options.hidden));
  else train<Rounded>(world, options, mesh, placed_mlp(mesh, options.hidden));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const digits::Options options = digits::parse(argc, argv);
    if (!options.curve.empty()) training::Curve{}.write(options.curve, "");  // whether it can be
    return run(argc, argv, [&](World& world) { train(world, options); });
  } catch (const digits::UsageError& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 2;
  }
}
