// The first principal components of a table, by power iteration with deflation.
//
//     pca --ranks 4
#include <cmath>
#include <cstdio>

#include <cleave/cleave.hpp>

using namespace cleave;

struct rows : axis {};

int main(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    const index_t samples = 1000, features = 16;
    const auto mesh = init_device_mesh<rows>(world, {world.size()});

    // rows of samples over the ranks, each computed where it is kept
    auto table = empty<double>({samples, features}, mesh, Shard<0>{});
    const Box mine = table.local_box();
    for (index_t i = mine.begin[0]; i < mine.end[0]; ++i)
      for (index_t j = 0; j < features; ++j)
        table.to_local()(i - mine.begin[0], j) =
            std::sin(0.1 * double(i)) * double(j) + std::cos(double(i * j)) / double(j + 1);

    const auto centred = table - mean(table, dim<0>{});
    const auto covariance =
        (matmul(transpose(centred), centred) / double(samples - 1)).redistribute(Replicate{});
    auto rest = covariance;  // without the components found so far
    const double total = sum(covariance * eye<double>(features, mesh, Replicate{})).item();

    for (int component = 0; component < 3; ++component) {
      auto v = ones<double>({features, 1}, mesh, Replicate{});
      double value = 0;
      for (int step = 0; step < 1000; ++step) {
        const auto w = matmul(rest, v);
        const auto next = w / sqrt(sum(square(w)));
        const double change = max(abs(next - v)).item();
        v = next;
        value = sum(v * matmul(rest, v)).item();
        if (change < 1e-12) break;
      }
      rest = rest - value * matmul(v, transpose(v));
      const Tensor<double, 2> projected = matmul(centred, v).full_tensor();
      if (world.rank() == 0)
        std::printf("component %d: variance %.6f, share %.4f, first sample at %.4f\n", component,
                    value, value / total, std::abs(projected(0, 0)));
    }
  });
}
