// How many of n distributed numbers in [0, 1) are in each of ten bins.
#include <array>
#include <cstdio>
#include <cstdlib>

#include <cleave/cleave.hpp>

#include "stopwatch.hpp"

using namespace cleave;

int main(int argc, char** argv) {
  const index_t n = argc > 1 ? std::atoi(argv[1]) : 10007;
  return run(argc, argv, [n](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
    const auto x = square(frac(0.6180339887498949 * arange<double>(n, mesh, Shard<0>{})));
    const Stopwatch stopwatch;
    std::array<index_t, 10> mine{};
    for (const double value : as_span(x.to_local())) ++mine[std::size_t(10 * value)];
    const auto counts = from_local(as_tensor(mine), mesh, Partial<Sum>{}, {10}).full_tensor();
    stopwatch.print(world.rank());
    if (world.rank() == 0)
      for (index_t bin = 0; bin < 10; ++bin)
        std::printf("bin %d: %d\n", int(bin), int(counts(bin)));
  });
}
