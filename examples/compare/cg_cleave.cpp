// 100 steps of conjugate gradients for -div grad u = 1 in a square, u = 0 on its edges.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <cleave/cleave.hpp>

#include "stopwatch.hpp"

using namespace cleave;

struct Laplace : Stencil {
  constexpr auto operator()(const auto& u) const {
    return 4 * u(0, 0) - (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1));
  }
};

int main(int argc, char** argv) {
  const index_t n = argc > 1 ? std::atoi(argv[1]) : 101;
  return run(argc, argv, [n](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
    const auto u = zeros<double>({n, n}, mesh, Shard<0>{});
    const auto q = zeros<double>({n, n}, mesh, Shard<0>{});
    const auto r = ones<double>({n, n}, mesh, Shard<0>{});
    const auto p = zeros<double>({n, n}, mesh, Shard<0>{}, margin(1));
    copy_(p, r);
    const Stopwatch stopwatch;
    double square = dot(r, r).item();
    for (int step = 0; step < 100; ++step) {
      apply(out(q), Laplace{}, p, edges(zero));
      const double alpha = square / dot(p, q).item(), before = square;
      map_([alpha](double x, double y) { return x + alpha * y; }, u, p);
      map_([alpha](double x, double y) { return x - alpha * y; }, r, q);
      square = dot(r, r).item();
      map_([beta = square / before](double x, double y) { return y + beta * x; }, p, r);
    }
    stopwatch.print(world.rank());
    const double highest = max(u).item();
    if (world.rank() == 0)
      std::printf("residual %.8e, highest %.10e\n", std::sqrt(square), highest);
  });
}
