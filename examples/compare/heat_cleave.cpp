// Heat in a square with a hot edge: 200 steps of u' = div grad u, on a grid of ranks.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <cleave/cleave.hpp>

#include "stopwatch.hpp"

using namespace cleave;

struct Heat : Stencil {
  constexpr auto operator()(const auto& u) const {
    return u(0, 0) + 0.2 * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0));
  }
};

int main(int argc, char** argv) {
  const index_t n = argc > 1 ? std::atoi(argv[1]) : 101;
  return run(argc, argv, [n](World& world) {
    const index_t up = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<axes::row, axes::col>(world, {up, world.size() / up});
    auto u = zeros<double>({n, n}, mesh, Shard<0>{}, Shard<1>{}, margin(1));
    auto v = zeros<double>({n, n}, mesh, Shard<0>{}, Shard<1>{}, margin(1));
    const Stopwatch stopwatch;
    for (int step = 0; step < 200; ++step, std::swap(u, v))
      apply(out(v), Heat{}, u, edges(sides(dirichlet(1.0), zero), zero));
    const double total = sum(u).item(), highest = max(u).item();
    stopwatch.print(world.rank());
    if (world.rank() == 0) std::printf("sum %.10e, highest %.10e\n", total, highest);
  });
}
