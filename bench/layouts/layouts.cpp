// Redistributions of a 4096 x 4096 matrix of doubles between blocks of 64 dealt to a grid of
// processes and slabs of rows, against copies of the same bytes, and ScaLAPACK's pdgemr2d if it is
// installed.
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
  void operator()() const {
    std::memcpy(packed_.data(), from_.data(), from_.size() * sizeof(double));
    std::memcpy(to_.data(), packed_.data(), from_.size() * sizeof(double));
  }

 private:
  std::vector<double> from_;
  mutable std::vector<double> packed_, to_;
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

/// Prints the times of the first action, and those of the others divided by them.
void print(const World& world, const std::string& name,
           const std::vector<std::vector<double>>& times) {
  if (world.rank() != 0) return;
  const char* const other[] = {"vs_memcpy", "vs_pdgemr2d"};
  std::printf("layouts.%s %.3f ms\n", name.c_str(), bench::median(times[0]) * 1e3);
  for (std::size_t i = 1; i < times.size(); ++i)
    std::printf("layouts.%s.%s %.3f ratio\n", name.c_str(), other[i - 1],
                1 / bench::ratio_of(times, i));
}

void measure(World& world, index_t rows, index_t columns) {
  const auto mesh = init_device_mesh<dp, tp>(world, {rows, columns});
  const auto cyclic =
      ones<double>({size, size}, mesh, BlockCyclic<0, block>{}, BlockCyclic<1, block>{});
  const auto slab = ones<double>({size, size}, mesh, Shard<0>{}, Shard<0>{});
  Copies copies(std::size_t(slab.to_local().size()));
  const auto to_slabs = [&] { (void)cyclic.redistribute(Shard<0>{}, Shard<0>{}); };
  const auto to_grid = [&] {
    (void)slab.redistribute(BlockCyclic<0, block>{}, BlockCyclic<1, block>{});
  };
  const std::string grid = std::to_string(rows) + "x" + std::to_string(columns);
#if CLEAVE_BENCH_SCALAPACK
  Scalapack scalapack(mesh);
  print(world, grid + "_slab",
        bench::times_in_turn(turns, to_slabs, copies, [&] { scalapack.to_slabs(); }));
  print(world, "slab_" + grid,
        bench::times_in_turn(turns, to_grid, copies, [&] { scalapack.to_grid(); }));
#else
  print(world, grid + "_slab", bench::times_in_turn(turns, to_slabs, copies));
  print(world, "slab_" + grid, bench::times_in_turn(turns, to_grid, copies));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
#if !CLEAVE_BENCH_SCALAPACK
  if (world.rank() == 0)
    std::fprintf(stderr, "layouts.*.vs_pdgemr2d omitted: libscalapack-openmpi-dev is missing\n");
#endif
  if (world.size() % 2 == 0 && world.size() > 2) measure(world, world.size() / 2, 2);
  else measure(world, 1, world.size());
}
