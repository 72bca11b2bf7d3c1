// A user's program: four ranks on a 2 x 2 mesh sum a distributed table.
#include <cstdio>

#include <cleave/cleave.hpp>

using namespace cleave;

struct dp : axis {};
struct tp : axis {};

int main(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    Tensor<double, 2> table({3, 5});
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 5; ++j) table(i, j) = double(10 * i + j);

    auto x = distribute_tensor(table, mesh, Shard<0>{}, Shard<1>{});
    auto y = x.redistribute(Shard<1>{}, Replicate{});
    const Tensor<double, 2> all = y.full_tensor();

    double total = 0;
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 5; ++j) total += all(i, j);
    if (world.rank() == 0) std::printf("total %g on %d ranks\n", total, world.size());
  });
}
