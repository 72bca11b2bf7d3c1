// The heat equation on a square whose top edge is hot: explicit steps on a grid of points.
//
//     heat --ranks 4
#include <cstdio>

#include <cleave/cleave.hpp>

using namespace cleave;

struct rows : axis {};

// Sharded by rows, the differences in dimension 0 read one row of each neighbour.
template <class X>
auto laplacian(const X& u) {
  const index_t n = u.shape()[0];
  const auto north = pad(slice(u, dim<0>{}, 0, n - 1), dim<0>{}, 1, 0);
  const auto south = pad(slice(u, dim<0>{}, 1, n), dim<0>{}, 0, 1);
  const auto west = pad(slice(u, dim<1>{}, 0, n - 1), dim<1>{}, 1, 0);
  const auto east = pad(slice(u, dim<1>{}, 1, n), dim<1>{}, 0, 1);
  return north + south + west + east - 4.0 * u;
}

int main(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    const index_t n = 64;
    const double alpha = 0.2;
    const auto mesh = init_device_mesh<rows>(world, {world.size()});

    // the temperature is 1 on the top edge, 0 on the others, and 0 inside
    auto u = zeros<double>({n, n}, mesh, Shard<0>{});
    auto inside = zeros<double>({n, n}, mesh, Shard<0>{});
    const Box mine = u.local_box();
    for (index_t i = mine.begin[0]; i < mine.end[0]; ++i)
      for (index_t j = 0; j < n; ++j) {
        const bool edge = i == 0 || j == 0 || i == n - 1 || j == n - 1;
        u.to_local()(i - mine.begin[0], j) = i == 0 ? 1.0 : 0.0;
        inside.to_local()(i - mine.begin[0], j) = edge ? 0.0 : 1.0;
      }

    for (int step = 1; step <= 500; ++step) {
      const auto change = alpha * inside * laplacian(u);
      add_(u, change);
      if (step % 100 != 0) continue;
      const double largest = max(abs(change)).item();
      const double mean_value = mean(u).item();
      if (world.rank() == 0)
        std::printf("step %d: mean %.6f, largest change %.2e\n", step, mean_value, largest);
      if (largest < 1e-6) break;
    }

    const Tensor<double, 2> all = u.full_tensor();
    if (world.rank() == 0) std::printf("in the middle: %.6f\n", all(n / 2, n / 2));
  });
}
