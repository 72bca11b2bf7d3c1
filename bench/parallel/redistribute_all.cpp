// Many tensors redistributed together, against one after the other, between processes.
#include <cstdio>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  using Sharded = decltype(full<float>({1}, 1.0f, mesh, Shard<0>{}));
  std::vector<Sharded> tensors;
  for (index_t i = 0; i < 200; ++i)  // 1 to 64 KiB
    tensors.push_back(full<float>({256 + 16128 * (i * 37 % 200) / 199}, 1.0f, mesh, Shard<0>{}));

  std::vector<double> ratios, together;
  const auto timed = [](const auto& f) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    f();
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
  };
  for (int i = 0; i < 21; ++i) {
    const double separate = timed([&] {
      std::vector<decltype(tensors[0].redistribute(Replicate{}))> results;
      for (const Sharded& x : tensors) results.push_back(x.redistribute(Replicate{}));
    });
    together.push_back(timed([&] { static_cast<void>(redistribute_all(tensors, Replicate{})); }));
    ratios.push_back(separate / together.back());
  }
  if (world.rank() == 0) {
    std::printf("redistribute_all.vs_separate %.1f ratio\n", bench::median(ratios));
    std::printf("redistribute_all.together %.3f ms\n", bench::median(together) * 1e3);
  }
}
