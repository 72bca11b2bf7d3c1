// The transpose of a matrix whose rows are distributed, again by rows.
#include <cstdio>
#include <cstdlib>

#include <cleave/cleave.hpp>

#include "stopwatch.hpp"

using namespace cleave;

int main(int argc, char** argv) {
  const index_t n = argc > 1 ? std::atoi(argv[1]) : 101, m = n + 2;
  return run(argc, argv, [n, m](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
    const auto i = unsqueeze(arange<double>(n, mesh, Shard<0>{}), dim<1>{});
    const auto a = double(m) * i + arange<double>(m, mesh, Replicate{});
    auto b = zeros<double>({m, n}, mesh, Shard<0>{});
    const Stopwatch stopwatch;
    for (int k = 0; k < 10; ++k) b = transpose(a).redistribute(Shard<0>{});
    stopwatch.print(world.rank());
    const auto weights = unsqueeze(arange<double>(m, mesh, Shard<0>{}), dim<1>{});
    const double moment = sum(weights * b).item();
    if (world.rank() == 0) std::printf("moment %.10e\n", moment);
  });
}
