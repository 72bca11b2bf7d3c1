// -div grad u = f in a periodic box of side 2 pi, by Fourier transforms.
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include <cleave/cleave.hpp>

#include "stopwatch.hpp"

using namespace cleave;

int main(int argc, char** argv) {
  const index_t n = argc > 1 ? std::atoi(argv[1]) : 30;
  return run(argc, argv, [n](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
    const double step = 2 * std::numbers::pi / double(n);
    const auto x = step * arange<double>(n, mesh, Shard<0>{});
    const auto y = step * arange<double>(n, mesh, Replicate{});
    const auto f = einsum("i,j,k->ijk"_ein, sin(x), cos(2.0 * y), sin(3.0 * y));
    const Stopwatch stopwatch;
    const auto u = spectral(f, [](const auto& k) { return k.norm2() == 0 ? 0 : 1 / k.norm2(); });
    stopwatch.print(world.rank());
    const double length = norm(u).item(), error = max(abs(14.0 * u - f)).item();
    if (world.rank() == 0)
      std::printf("norm %.10e, error below 1e-12: %s\n", length, error < 1e-12 ? "yes" : "no");
  });
}
