// Redistributions of a 4096 x 4096 matrix of doubles between blocks of 64 dealt to a grid of
// processes and slabs of rows, against copies of the same bytes, ScaLAPACK's pdgemr2d if it is
// installed, and COSTA if that is.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>

#include "../in_turn.hpp"

#if CLEAVE_BENCH_COSTA
#include <costa/grid2grid/transform.hpp>
#include <costa/layout.hpp>
#endif
#if CLEAVE_BENCH_SCALAPACK
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
void pdgemr2d_(const int* m, const int* n, const double* a, const int* ia, const int* ja,
               const int* desca, double* b, const int* ib, const int* jb, const int* descb,
               const int* context);
}
#endif

using namespace cleave;
using namespace cleave::axes;

namespace {

constexpr int size = 4096;  // rows and columns
constexpr int block = 64;
constexpr int turns = 15;

using Grid = DeviceMesh<Host, dp, tp>;

/// Two copies of this rank's elements: they are packed and unpacked once.
class Copies {
 public:
  explicit Copies(std::size_t elements) : from_(elements, 1.0), packed_(elements), to_(elements) {}
  void to_slabs() {
    std::memcpy(packed_.data(), from_.data(), from_.size() * sizeof(double));
    std::memcpy(to_.data(), packed_.data(), from_.size() * sizeof(double));
  }
  void to_grid() { to_slabs(); }

 private:
  std::vector<double> from_, packed_, to_;
};

#if CLEAVE_BENCH_SCALAPACK
/// The same matrix, by columns: the transposed one, on the transposed grid.
class Scalapack {
 public:
  explicit Scalapack(const Grid& mesh) {
    const int rows = int(mesh.extents()[1]), columns = int(mesh.extents()[0]);
    Cblacs_get(-1, 0, &grid_);
    slabs_ = grid_;
    Cblacs_gridinit(&grid_, "Col", rows, columns);
    Cblacs_gridinit(&slabs_, "Col", 1, rows * columns);
    const int slab = size / (rows * columns);
    of_grid_ = {1, grid_, size, size, block, block, 0, 0, size / rows};
    of_slabs_ = {1, slabs_, size, size, size, slab, 0, 0, size};
    grid_part_.resize(std::size_t(size) * std::size_t(slab), 1.0);
    slab_.resize(grid_part_.size(), 1.0);
  }
  Scalapack(const Scalapack&) = delete;
  ~Scalapack() {
    Cblacs_gridexit(grid_);
    Cblacs_gridexit(slabs_);
  }
  void to_slabs() { move(grid_part_, of_grid_, slab_, of_slabs_); }
  void to_grid() { move(slab_, of_slabs_, grid_part_, of_grid_); }

 private:
  using Descriptor = std::array<int, 9>;
  void move(const std::vector<double>& from, const Descriptor& of_from, std::vector<double>& to,
            const Descriptor& of_to) {
    const int one = 1, all = size;
    pdgemr2d_(&all, &all, from.data(), &one, &one, of_from.data(), to.data(), &one, &one,
              of_to.data(), &grid_);
  }

  int grid_ = 0, slabs_ = 0;
  Descriptor of_grid_{}, of_slabs_{};
  std::vector<double> grid_part_, slab_;
};
#endif

#if CLEAVE_BENCH_COSTA
/// COSTA with layouts that are made once. Its pdgemr2d takes both matrices to be on one grid.
class Costa {
 public:
  Costa(const World& world, const Grid& mesh)
      : part_(std::size_t(size) * std::size_t(size) / std::size_t(world.size()), 1.0),
        slab_(part_.size(), 1.0),
        of_grid_(layout(world, mesh.extents()[0], mesh.extents()[1], block, block, part_)),
        of_slabs_(layout(world, world.size(), 1, size / world.size(), size, slab_)) {}

  void to_slabs() { costa::transform(of_grid_, of_slabs_, MPI_COMM_WORLD); }
  void to_grid() { costa::transform(of_slabs_, of_grid_, MPI_COMM_WORLD); }

 private:
  static costa::grid_layout<double> layout(const World& world, index_t rows, index_t columns,
                                           int block_rows, int block_columns,
                                           std::vector<double>& part) {
    return costa::block_cyclic_layout(size, size, block_rows, block_columns, 1, 1, size, size,
                                      int(rows), int(columns), 'R', 0, 0, part.data(),
                                      int(size / columns), 'R', world.rank());
  }

  std::vector<double> part_, slab_;
  costa::grid_layout<double> of_grid_, of_slabs_;
};
#endif

/// Compares both ways with those of a peer, which is run in turn.
class Comparison {
 public:
  Comparison(const World& world, const Grid& mesh)
      : world_(world),
        grid_(std::to_string(mesh.extents()[0]) + "x" + std::to_string(mesh.extents()[1])),
        cyclic_(ones<double>({size, size}, mesh, BlockCyclic<0, block>{}, BlockCyclic<1, block>{})),
        slab_(ones<double>({size, size}, mesh, Shard<0>{}, Shard<0>{})) {}

  void with(const char* name, auto&& peer) const {
    const auto to_slabs = [&] { (void)cyclic_.redistribute(Shard<0>{}, Shard<0>{}); };
    const auto to_grid = [&] {
      (void)slab_.redistribute(BlockCyclic<0, block>{}, BlockCyclic<1, block>{});
    };
    print(grid_ + "_slab", name, bench::times_in_turn(turns, to_slabs, [&] { peer.to_slabs(); }));
    print("slab_" + grid_, name, bench::times_in_turn(turns, to_grid, [&] { peer.to_grid(); }));
  }

 private:
  void print(const std::string& way, const char* peer,
             const std::vector<std::vector<double>>& times) const {
    if (world_.rank() != 0) return;
    std::printf("layouts.%s.beside_%s %.3f ms\n", way.c_str(), peer, bench::median(times[0]) * 1e3);
    std::printf("layouts.%s.vs_%s %.3f ratio\n", way.c_str(), peer, 1 / bench::ratio_of(times, 1));
  }

  const World& world_;
  std::string grid_;
  DTensor<double, 2, Grid, Placements<BlockCyclic<0, block>, BlockCyclic<1, block>>> cyclic_;
  DTensor<double, 2, Grid, Placements<Shard<0>, Shard<0>>> slab_;
};

void measure(const World& world, index_t rows, index_t columns) {
  const auto mesh = init_device_mesh<dp, tp>(world, {rows, columns});
  const Comparison compare(world, mesh);
  compare.with("memcpy", Copies(std::size_t(size) * std::size_t(size / world.size())));
  [[maybe_unused]] const auto omit = [&](const char* peer, const char* missing) {
    if (world.rank() == 0)
      std::fprintf(stderr, "layouts.*.vs_%s omitted: %s is missing\n", peer, missing);
  };
#if CLEAVE_BENCH_SCALAPACK
  compare.with("pdgemr2d", Scalapack(mesh));
#else
  omit("pdgemr2d", "libscalapack-openmpi-dev");
#endif
#if CLEAVE_BENCH_COSTA
  compare.with("costa", Costa(world, mesh));
#else
  omit("costa", "costa.pc, from github.com/eth-cscs/COSTA,");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  if (world.size() % 2 == 0 && world.size() > 2) measure(world, world.size() / 2, 2);
  else measure(world, 1, world.size());
}
