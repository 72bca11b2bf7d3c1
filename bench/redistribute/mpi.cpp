// Collectives and redistributions between processes, each against its bare counterpart in the same
// run: Open MPI's collectives, hand packing with MPI_Alltoall, and ScaLAPACK's psgemr2d if it is
// installed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>

#include "../in_turn.hpp"

#if CLEAVE_BENCH_SCALAPACK
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
void psgemr2d_(const int* m, const int* n, const float* a, const int* ia, const int* ja,
               const int* desca, float* b, const int* ib, const int* jb, const int* descb,
               const int* context);
}
#endif

using namespace cleave;
using namespace cleave::axes;
using bench::in_turn;

namespace {

void print(const World& world, const char* name, double value, const char* unit) {
  if (world.rank() == 0) std::printf("%s %.3f %s\n", name, value, unit);
}

using Line = DeviceMesh<Host, tp>;

/// 16 MiB per rank: its data before a reduction, or after a gather.
void collectives(World& world, const Line& mesh) {
  constexpr index_t count = index_t(4) << 20;  // floats
  const int n = world.size(), share = int(count / n);
  const auto x = full<float>({count}, 1.0f, mesh, Replicate{});
  const auto part = full<float>({count}, 1.0f, mesh, Shard<0>{});
  const auto addend = from_local(x.to_local(), mesh, Partial<Sum>{}, {count});
  std::vector<float> from(std::size_t(count), 1.0f), to(std::size_t(count), 0.0f);

  auto t = in_turn(
      31, [&] { (void)addend.redistribute(Shard<0>{}); },
      [&] {
        MPI_Reduce_scatter_block(from.data(), to.data(), share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
  print(world, "mpi.reduce_scatter.16MiB.vs_openmpi", t[1] / t[0], "ratio");
  t = in_turn(
      31, [&] { (void)addend.redistribute(Replicate{}); },
      [&] {
        MPI_Allreduce(from.data(), to.data(), int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
  print(world, "mpi.all_reduce.16MiB.vs_openmpi", t[1] / t[0], "ratio");
  t = in_turn(
      31, [&] { (void)part.redistribute(Replicate{}); },
      [&] {
        MPI_Allgather(from.data(), share, MPI_FLOAT, to.data(), share, MPI_FLOAT, MPI_COMM_WORLD);
      });
  print(world, "mpi.all_gather.16MiB.vs_openmpi", t[1] / t[0], "ratio");
}

constexpr int size = 2048;  // rows and columns of the redistributed matrix

/// From Shard(0) to Shard(1), against packing by hand.
void rows_to_columns(World& world, const Line& mesh) {
  const int n = world.size();
  const int share = size / n;
  const auto x = full<float>({size, size}, 1.0f, mesh, Shard<0>{});
  const std::size_t local = std::size_t(share) * size;
  std::vector<float> rows(local, 1.0f), packed(local), columns(local);
  const auto by_hand = [&] {  // pack per destination, exchange
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < share; ++i)
        std::memcpy(&packed[std::size_t((r * share + i) * share)],
                    &rows[std::size_t(i * size + r * share)], std::size_t(share) * 4);
    MPI_Alltoall(packed.data(), share * share, MPI_FLOAT, columns.data(), share * share, MPI_FLOAT,
                 MPI_COMM_WORLD);  // the blocks of rows are received in place
  };
  const auto t = in_turn(51, [&] { (void)x.redistribute(Shard<1>{}); }, by_hand);
  print(world, "mpi.S0_S1.2048.vs_alltoall", t[1] / t[0], "ratio");
  print(world, "mpi.S0_S1.2048", t[0] * 1e3, "ms");
}

#if CLEAVE_BENCH_SCALAPACK
/// The same against ScaLAPACK, whose matrices are column-major: n x 1 process grid to 1 x n.
void against_scalapack(World& world, const Line& mesh) {
  const int n = world.size();
  const int share = size / n;
  const auto x = full<float>({size, size}, 1.0f, mesh, Shard<0>{});
  std::vector<float> rows(std::size_t(share) * size, 1.0f), columns(rows.size());
  int system = 0, by_rows = 0, by_columns = 0;
  Cblacs_get(-1, 0, &system);
  by_rows = by_columns = system;
  Cblacs_gridinit(&by_rows, "R", n, 1);
  Cblacs_gridinit(&by_columns, "R", 1, n);
  const int from[9] = {1, by_rows, size, size, share, size, 0, 0, share};
  const int to[9] = {1, by_columns, size, size, size, share, 0, 0, size};
  const int one = 1, whole = size;
  const auto t = in_turn(
      31, [&] { (void)x.redistribute(Shard<1>{}); },
      [&] {
        psgemr2d_(&whole, &whole, rows.data(), &one, &one, from, columns.data(), &one, &one, to,
                  &by_rows);
      });
  print(world, "mpi.S0_S1.2048.vs_scalapack", t[1] / t[0], "ratio");
  print(world, "mpi.S0_S1.2048.scalapack", t[1] * 1e3, "ms");
  Cblacs_gridexit(by_rows);
  Cblacs_gridexit(by_columns);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  const auto mesh = init_device_mesh<tp>(world, {world.size()});
#if CLEAVE_BENCH_SCALAPACK
  // First, while malloc is in its initial state: psgemr2d allocates its buffers in every call, and
  // malloc retains such buffers once large blocks have been freed.
  against_scalapack(world, mesh);
#endif
  collectives(world, mesh);
  rows_to_columns(world, mesh);
}
