// The product of two square matrices that lie in blocks on a grid of ranks.
#include <cstdio>
#include <cstdlib>

#include <cleave/cleave.hpp>

#include "stopwatch.hpp"

using namespace cleave;

int main(int argc, char** argv) {
  const index_t n = argc > 1 ? std::atoi(argv[1]) : 101;
  return run(argc, argv, [n](World& world) {
    const index_t up = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<axes::row, axes::col>(world, {up, world.size() / up});
    const auto i = unsqueeze(arange<double>(n, mesh, Shard<0>{}, Replicate{}), dim<1>{});
    const auto j = arange<double>(n, mesh, Replicate{}, Shard<0>{});
    const auto a = sin(i + 2.0 * j), b = cos(i - j);  // [S0,S1]
    const Stopwatch stopwatch;
    const auto c = matmul<Placements<Shard<0>, Shard<1>>>(a, b);
    stopwatch.print(world.rank());
    const double length = norm(c).item();
    if (world.rank() == 0) std::printf("norm %.10e\n", length);
  });
}
