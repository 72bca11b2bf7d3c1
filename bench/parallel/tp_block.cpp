// The forward of a transformer block whose layers are split into columns and rows over the
// processes, against a hand-written one with BLAS and MPI, interleaved.
#include <cmath>
#include <cstdio>
#include <string>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/parallel.hpp>

#include "../in_turn.hpp"
#include "handwritten_block.hpp"

using namespace cleave;
using axes::tp;

namespace {

constexpr index_t batch = 4, sequence = 128, width = 512, heads = 8;

bench::HandwrittenLayer layer_of(const auto& layer) {
  const auto& weight = layer.weight.to_local();
  return {weight.data(), layer.bias.to_local().data(), int(weight.shape().back()),
          int(weight.shape().front())};
}

void measure(World& world) {
  const auto mesh = init_device_mesh<tp>(world, {world.size()});
  manual_seed(world, 1);
  const auto block = parallelize_module(
      nn::transformer_block(width, heads, nn::Gelu{}), mesh,
      on("attention.query"_path, ColwiseParallel{}), on("attention.key"_path, ColwiseParallel{}),
      on("attention.value"_path, ColwiseParallel{}), on("attention.out"_path, RowwiseParallel{}),
      on("mlp.up"_path, ColwiseParallel{}), on("mlp.down"_path, RowwiseParallel{}));
  bench::HandwrittenBlock by_hand{int(batch),
                                  int(sequence),
                                  int(width),
                                  int(heads) / world.size(),
                                  int(4 * width) / world.size(),
                                  int(width / heads),
                                  world.rank() == 0,
                                  layer_of(block.attention_norm),
                                  layer_of(block.attention.query),
                                  layer_of(block.attention.key),
                                  layer_of(block.attention.value),
                                  layer_of(block.attention.out),
                                  layer_of(block.mlp_norm),
                                  layer_of(block.mlp.up),
                                  layer_of(block.mlp.down)};
  const auto x = randn<float>({batch, sequence, width}, mesh, Replicate{});
  const auto y = block(x).to_local();
  const float* const expected = by_hand.forward(x.to_local().data());
  for (index_t i = 0; i < y.size(); ++i)
    if (std::abs(y.data()[i] - expected[i]) > 1e-3f)
      throw Error("bench", "element " + std::to_string(i) + " is " + std::to_string(y.data()[i]) +
                               ", by hand " + std::to_string(expected[i]));
  const auto times = bench::times_in_turn(
      61, [&] { by_hand.forward(x.to_local().data()); }, [&] { static_cast<void>(block(x)); });
  if (world.rank() != 0) return;
  std::printf("tp_block.vs_handwritten_mpi %.2f ratio\n", bench::ratio_of(times, 1));
  std::printf("tp_block.forward %.2f ms\n", bench::median(times[1]) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  measure(world);
}
