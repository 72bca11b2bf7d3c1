// The same array under other placements: what is communicated, and at what cost.
//
//     redistribute --ranks 4
#include <cstdio>

#include <cleave/cleave.hpp>

using namespace cleave;
using axes::col;
using axes::row;

int main(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    if (world.size() % 2 != 0) throw Error("redistribute", "start an even number of ranks");
    const auto mesh = init_device_mesh<row, col>(world, {world.size() / 2, 2});
    const bool prints = world.rank() == 0;

    // every rank computes its own part of a[i, j] = 10 i + j; nothing is sent
    auto a = empty<float>({8, 10}, mesh, Shard<0>{}, Replicate{});
    const Box mine = a.local_box();
    for (index_t i = 0; i < a.to_local().extent(0); ++i)
      for (index_t j = 0; j < a.to_local().extent(1); ++j)
        a.to_local()(i, j) = float(10 * (mine.begin[0] + i) + j);

    const CommTrace trace(world);
    const auto blocks = a.redistribute(Shard<0>{}, Shard<1>{});         // a slice: nothing is sent
    const auto columns = blocks.redistribute(Replicate{}, Shard<1>{});  // a gather over row
    const auto transposed = a.redistribute(Shard<1>{}, Replicate{});    // an exchange over row
    const Tensor<float, 2> whole = transposed.full_tensor();

    if (!prints) return;
    std::printf("a\n%s\nblocks\n%s\ncolumns\n%s\ntransposed\n%s\n", visualize_sharding(a).c_str(),
                visualize_sharding(blocks).c_str(), visualize_sharding(columns).c_str(),
                visualize_sharding(transposed).c_str());
    std::printf(
        "a to transposed, planned by the compiler:\n%s\n",
        explain<Placements<Shard<0>, Replicate>, Placements<Shard<1>, Replicate>>(mesh, {8, 10})
            .text()
            .c_str());
    std::printf("all of it:\n%s\n%s\n", trace.to_string().c_str(), to_string(whole).c_str());
  });
}
