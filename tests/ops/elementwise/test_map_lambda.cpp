// Lambdas as elementwise functions, where the host computes. (nvcc must know which lambdas run on a
// GPU and restricts where they may be defined.)
#include <array>

#include <doctest/doctest.h>

#include <cleave/ops/elementwise/map.hpp>

#include "../placed.hpp"

using namespace cleave;
using namespace cleave::testing;

TEST_CASE("a lambda is mapped, whatever it captures") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const double offset = 7;
    each_placements<1, Replicate, Shard<0>, Shard<1>, Partial<Sum>>([&](auto p) {
      const auto x = placed<double, decltype(p)>(mesh, std::array<index_t, 2>{5, 3}, 0);
      const auto y = placed<double, Placements<Shard<0>>>(mesh, std::array<index_t, 1>{3}, 1);
      const auto a = expected(x, 0), b = expected(y, 1);
      check_equal(map([offset](double u, double v) { return offset - u * v; }, x, y),
                  array_of<double>({5, 3}, [&](const naive::Indices& i) {
                    return offset - a.at(i) * b.at({i[1]});
                  }));
    });
  });
}
