// k-means by Lloyd's algorithm: ten iterations on n points of 16 features, eight clusters.
#include <cstdio>
#include <cstdlib>

#include <cleave/cleave.hpp>

#include "stopwatch.hpp"

using namespace cleave;

int main(int argc, char** argv) {
  const index_t n = argc > 1 ? std::atoi(argv[1]) : 1003, features = 16, k = 8;
  return run(argc, argv, [n](World& world) {
    const auto mesh = init_device_mesh<axes::dp>(world, {world.size()});
    const auto i = unsqueeze(arange<double>(n, mesh, Shard<0>{}), dim<1>{});
    const auto points =
        frac(0.6180339887498949 * (i + 1.0) * (arange<double>(features, mesh, Replicate{}) + 1.0));
    const auto one = ones<double>({n}, mesh, Shard<0>{});
    auto centroids = slice(points, dim<0>{}, 0, k).redistribute(Replicate{});
    double inertia = 0;
    const Stopwatch stopwatch;
    const auto squares = unsqueeze(sum(square(points), dim<1>{}), dim<1>{});
    for (int iteration = 0; iteration < 10; ++iteration) {
      const auto lengths = sum(square(centroids), dim<1>{});
      const auto distances = squares - 2.0 * matmul(points, transpose(centroids)) + lengths;
      const auto nearest = argmin(distances, dim<1>{});
      const auto [sums, counts, total] =
          reduce_partials(index_add(points, dim<0>{}, nearest, k),
                          index_add(one, dim<0>{}, nearest, k), sum(min(distances, dim<1>{})));
      centroids =
          where(unsqueeze(counts, dim<1>{}) > 0.0, sums / unsqueeze(counts, dim<1>{}), centroids);
      inertia = total.item();
    }
    stopwatch.print(world.rank());
    const auto result = centroids.to_local();
    if (world.rank() == 0)
      for (index_t c = 0; c < k; ++c)
        std::printf("inertia %.8e, centroid %d at %.8e\n", inertia, int(c), result(c, 0));
  });
}
