#include <array>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/ops/elementwise/pointwise.hpp>
#include <cleave/ops/products/matmul.hpp>
#include <cleave/spmd/expand.hpp>
#include <cleave/spmd/print_program.hpp>
#include <cleave/spmd/trace_function.hpp>

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::spmd;

namespace {

Graph printed_layers() {
  return trace([](const auto& x, const auto& w1,
                  const auto& w2) { return matmul(relu(matmul(x, w1) * 0.5f), w2); },
               arg<float>("x", {64, 32}), arg<float>("w1", {32, 128}), arg<float>("w2", {128, 16}));
}

}  // namespace

TEST_CASE("a graph prints its nodes, types and extents") {
  CHECK(to_string(printed_layers()) ==
        "%0 = input x  float32 [64, 32]\n"
        "%1 = input w1  float32 [32, 128]\n"
        "%2 = input w2  float32 [128, 16]\n"
        "%3 = matmul(%0, %1)  float32 [64, 128]\n"
        "%4 = constant  float32 []\n"
        "%5 = mul(%3, %4)  float32 [64, 128]\n"
        "%6 = relu(%5)  float32 [64, 128]\n"
        "%7 = matmul(%6, %2)  float32 [64, 16]\n"
        "return %7\n");
}

TEST_CASE("a program prints placements and traffic, for a mesh that need not exist") {
  const World world(dry_communicator(0, 32));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 8});
  const Program program = expand(
      printed_layers(), std::array{schema(Shard<0>{}, Replicate{}), schema(Replicate{}, Shard<1>{}),
                                   schema(Replicate{}, Shard<0>{})});
  // every rank has 16 x 16 elements of the last product; twice 7/8 of these are 1792 bytes
  CHECK(to_string(program, mesh) ==
        "%0 = input x  float32 [64, 32] (Shard(0), Replicate)\n"
        "%1 = input w1  float32 [32, 128] (Replicate, Shard(1))\n"
        "%2 = input w2  float32 [128, 16] (Replicate, Shard(0))\n"
        "%3 = constant  float32 [] (Replicate, Replicate)\n"
        "%4 = matmul(%0, %1)  float32 [64, 128] (Shard(0), Shard(1))\n"
        "%5 = mul(%4, %3)  float32 [64, 128] (Shard(0), Shard(1))\n"
        "%6 = relu(%5)  float32 [64, 128] (Shard(0), Shard(1))\n"
        "%7 = matmul(%6, %2)  float32 [64, 16] (Shard(0), Partial(sum))\n"
        "%8 = all_reduce(sum) over tp of %7, 1792 bytes  float32 [64, 16] (Shard(0), Replicate)\n"
        "return %8\n"
        "receives 1792 bytes per rank on dp=4 x tp=8\n");
  CHECK(received_bytes(program, mesh.extents()) == 1792);
}

TEST_CASE("a program that could not be expanded prints the reason") {
  const World world(dry_communicator(0, 2));
  const auto mesh = init_device_mesh<dp>(world, {2});
  const Program program = expand(printed_layers(), std::array{schema(Replicate{})});
  CHECK(to_string(program, mesh) ==
        "cannot be expanded: there are more or fewer schemas than inputs\n");
}
