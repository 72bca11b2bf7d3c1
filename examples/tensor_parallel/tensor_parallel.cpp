// A transformer over all ranks: a plan of styles shards heads, hidden layers and vocabulary, and
// between these the sequence, so that no rank holds a whole activation.
//
//     tensor_parallel --ranks 4             four threads
//     mpirun -n 4 tensor_parallel           four processes
//
// It learns to count: the next number after each one of a sequence. Losses are the same on any
// number of ranks, up to rounding.
#include <cstdio>
#include <vector>

#include <cleave/parallel.hpp>

using namespace cleave;
using axes::tp;

namespace {

constexpr index_t vocabulary = 16, width = 16, heads = 4, batch = 8, context = 8;

template <class Tokens = nn::Embedding<>, class Blocks = std::vector<nn::TransformerBlock<>>,
          class Norm = nn::LayerNorm<>, class Head = nn::Linear<>>
struct Counter {
  Tokens tokens;
  Blocks blocks;
  Norm norm;
  Head head;
  static constexpr nn::names members{"tokens", "blocks", "norm", "head"};

  /// @param ids  [batch, sequence]
  /// @return     [batch, sequence, vocabulary], not normalised
  auto operator()(const auto& ids) const {
    auto y = tokens(ids);
    for (const auto& block : blocks) y = block(y);
    return head(norm(y));
  }
};

/// The style of each layer, along the axis of the mesh.
template <class Mesh>
auto placed_model(const Mesh& mesh) {
  const Counter<> model{nn::embedding(vocabulary, width),
                        std::vector(2, nn::transformer_block(width, heads)), nn::layer_norm(width),
                        nn::linear(width, vocabulary)};
  const ColwiseParallel columns;
  const auto rows = RowwiseParallel{}.output_layouts(Shard<1>{});  // the sum, sharded by sequence
  return parallelize_module(
      model, mesh, on("tokens"_path, rows), on("blocks.*.*norm"_path, SequenceParallel{}),
      on("blocks.*.attention"_path, PrepareModuleInput(Replicate{})),
      on("blocks.*.attention.query"_path, columns), on("blocks.*.attention.key"_path, columns),
      on("blocks.*.attention.value"_path, columns), on("blocks.*.attention.out"_path, rows),
      on("blocks.*.mlp.up"_path, columns), on("blocks.*.mlp.down"_path, rows),
      on("norm"_path, SequenceParallel{}), on("head"_path, columns));
}

/// Sequences that count by 1, 2 or 3; with `ahead` = 1 the number that follows each.
template <class Mesh>
auto sequences(const Mesh& mesh, index_t ahead) {
  Tensor<index_t, 2> ids({batch, context});
  for (index_t i = 0; i < batch; ++i)
    for (index_t j = 0; j < context; ++j) ids(i, j) = (i + (j + ahead) * (1 + i % 3)) % vocabulary;
  return distribute_tensor(ids, mesh, Replicate{});
}

void train(World& world) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()});
  manual_seed(world, 1);
  const auto model = requires_grad(placed_model(mesh));
  auto optimizer = nn::adamw(model, {.learning_rate = 0.01});
  const auto ids = sequences(mesh, 0);
  const auto next = flatten(sequences(mesh, 1), dim<0, 1>{});
  if (world.rank() == 0) std::printf("%s", nn::describe(model).c_str());

  for (int step = 0; step <= 40; ++step) {
    zero_grad(model);
    CommTrace trace(world);
    const auto loss = cross_entropy(flatten(model(ids), dim<0, 1>{}), next);
    if (step == 0 && world.rank() == 0) std::printf("forward\n%s", trace.to_string().c_str());
    trace.clear();
    backward(loss);
    if (step == 0 && world.rank() == 0) std::printf("backward\n%s", trace.to_string().c_str());
    const double value = double(loss.value().item());
    if (step % 10 == 0 && world.rank() == 0) std::printf("step %2d  loss %.4f\n", step, value);
    optimizer.step(model);
  }
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, train); }
