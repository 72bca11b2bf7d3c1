// The training step of a transformer block, written once: traced into a graph, which is expanded
// into the programs of data parallelism, tensor parallelism, both, and fully sharded parameters.
//
//     spmd_expand --ranks 4                        four threads
//     mpirun -n 4 spmd_expand                      four processes
//     spmd_expand --ranks 4 --to DIRECTORY         writes and draws graphs and programs there
//
// Each program runs three steps, and so do the same calls on DTensors: losses, parameters and the
// state of AdamW must have the same bits.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <cleave/nn.hpp>
#include <cleave/spmd.hpp>

#include "../command_line.hpp"
#include "placed_block.hpp"

using namespace cleave;
using axes::dp;
using axes::tp;

namespace {

constexpr index_t batch = 8, sequence = 16, width = spmd_expand::width;

/// A training step, for DTensors and for traced values. Changes the parameters and the optimizer.
///
/// @param used       gives the parameters to compute with
/// @param x, target  [batch, sequence, width]
constexpr auto train_step = [](const auto& used) {
  return [&used](const auto& block, const auto& optimizer, const auto& x, const auto& target) {
    const auto loss = mse_loss(used(block)(x), target);
    backward(loss);
    optimizer.step(block);
    return detach(loss);
  };
};

/// Values under the placements of one scheme, the same for calls and program.
template <class Mesh, class Place>
auto start(const Mesh& mesh, const Place& place) {
  manual_seed(mesh, 1);
  const auto block = place(mesh);
  const auto x = randn<float>({batch, sequence, width}, mesh, Shard<0>{}, Replicate{});
  const auto target = randn<float>({batch, sequence, width}, mesh, Shard<0>{}, Replicate{});
  return std::tuple{block, nn::adamw(block, {.learning_rate = 0.01}), x, target};
}

/// Whether this rank's parts of the tensors in a and in b have the same bits.
bool same_bits(const std::vector<spmd::ErasedTensor>& a, const std::vector<spmd::ErasedTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    const auto bytes = std::size_t(x.local.size()) * size_of(x.local.dtype);
    return x.local.extents == y.local.extents &&
           (bytes == 0 || std::memcmp(x.local.data, y.local.data, bytes) == 0);
  });
}

/// A graph and the program of one way to place its inputs, written and drawn.
struct Report {
  std::string name, graph, program, graph_picture, program_picture;
};

/// Traces and expands the step, and runs the program and the same calls on DTensors.
///
/// @param place  makes a block on a mesh
template <class Mesh, class Place, class Used>
Report expand_step(World& world, const std::string& name, const Mesh& mesh, const Place& place,
                   const Used& used) {
  const auto step = train_step(used);
  const auto called = start(mesh, place), given = start(mesh, place);
  const auto& [block, optimizer, x, target] = given;
  const spmd::Graph graph =
      spmd::trace(step, spmd::args_of(block, "block"), spmd::args_of(optimizer, "adamw"),
                  spmd::arg<float>("x", {batch, sequence, width}),
                  spmd::arg<float>("target", {batch, sequence, width}));
  const auto schemas = spmd::schemas_of(block, optimizer, x, target);
  const spmd::Program program =
      spmd::optimize(spmd::expand(graph, schemas, {.mesh = mesh.extents()}), mesh);
  spmd::Runner runner(program, mesh);

  bool alike = true;
  std::string losses;
  for (int n = 0; n < 3; ++n) {
    using Loss = DTensor<float, 0, Mesh, Placements<Replicate, Replicate>>;
    const Loss expected = resolve(std::apply(step, called));
    zero_grad(std::get<0>(called));
    const auto [loss] = runner.template run<Loss>(block, optimizer, x, target);
    alike = alike && same_bits(spmd::inputs_of(loss), spmd::inputs_of(expected));
    losses += " " + std::to_string(loss.item());
  }
  if (!alike || !same_bits(spmd::inputs_of(given), spmd::inputs_of(called)))
    throw Error("spmd_expand", name + ": the program differs from the calls");

  if (world.rank() == 0) {
    std::printf("%s on %s: %zu nodes, %zu instructions, losses%s\n", name.c_str(),
                mesh.state().describe().c_str(), graph.nodes.size(), program.code.size(),
                losses.c_str());
    for (const StepKind kind :
         {StepKind::all_reduce, StepKind::reduce_scatter, StepKind::all_gather})
      std::printf("  %d %s in %d", spmd::count(program, kind), name_of(kind),
                  spmd::rounds(program, kind));
    std::printf("  %lld bytes received, at most %lld kept at a time\n",
                static_cast<long long>(spmd::received_bytes(program, mesh.extents())),
                static_cast<long long>(runner.peak_bytes()));
  }
  return {name, to_string(graph), to_string(program, mesh), to_svg(graph), to_svg(program, mesh)};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (!(file << text).flush()) throw Error("spmd_expand", "cannot write '" + path + "'");
}

/// @param directory  for texts and pictures; empty: they are not written
void expand_all(World& world, const std::string& directory) {
  using namespace spmd_expand;
  const index_t n = world.size(), half = n % 2 == 0 ? 2 : 1;
  const auto mesh = [&](index_t along_dp, index_t along_tp) {
    return init_device_mesh<dp, tp>(world, {along_dp, along_tp});
  };
  const std::vector all{expand_step(world, "data_parallel", mesh(n, 1), replicated, as_placed),
                        expand_step(world, "tensor_parallel", mesh(1, n), sharded_heads, as_placed),
                        expand_step(world, "both", mesh(n / half, half), sharded_heads, as_placed),
                        expand_step(world, "fully_sharded", mesh(n, 1), sharded, gathered)};
  if (world.rank() != 0 || directory.empty()) return;
  std::filesystem::create_directories(directory);
  for (const Report& report : all) {
    const std::string path = directory + "/" + report.name;
    write(path + ".graph.txt", report.graph);
    write(path + ".graph.svg", report.graph_picture);
    write(path + ".program.txt", report.program);
    write(path + ".program.svg", report.program_picture);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string directory;
    command_line::parse(argc, argv, [&](const std::string& option, const std::string& value) {
      if (option == "--to") directory = value;
      else if (option != "--ranks")  // read by cleave::run
        throw command_line::UsageError("unknown option '" + option +
                                       "'; the options are --to DIRECTORY, --ranks N");
    });
    return run(argc, argv, [&](World& world) { expand_all(world, directory); });
  } catch (const command_line::UsageError& error) {
    std::fprintf(stderr, "spmd_expand: %s\n", error.what());
    return 2;
  }
}
