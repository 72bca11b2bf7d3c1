// Products of matrices of doubles on a grid of processes, against ScaLAPACK's pdgemm if it is
// installed; and, in dry runs, the bytes that a rank receives against a lower bound.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/ops/products/matmul.hpp>

#include "../in_turn.hpp"

#if CLEAVE_BENCH_SCALAPACK
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* coordinate, const int* source,
            const int* count);
void pdgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
             const double* alpha, const double* a, const int* ia, const int* ja, const int* desca,
             const double* b, const int* ib, const int* jb, const int* descb, const double* beta,
             double* c, const int* ic, const int* jc, const int* descc);
}
#endif

using namespace cleave;
using namespace cleave::axes;

namespace {

constexpr int turns = 11;

/// Multiplies an m x k by a k x n matrix.
struct Sizes {
  const char* name;
  index_t m, n, k;
};
constexpr std::array shapes{Sizes{"square", 2048, 2048, 2048}, Sizes{"tall", 16384, 512, 512},
                            Sizes{"flat", 512, 512, 16384}};

#if CLEAVE_BENCH_SCALAPACK
/// The same product in ScaLAPACK's usual layout, blocks of 64, with its arrays by columns.
class Pdgemm {
 public:
  Pdgemm(int rows, int columns, const Sizes& sizes)
      : m_(int(sizes.m)), n_(int(sizes.n)), k_(int(sizes.k)) {
    Cblacs_get(-1, 0, &grid_);
    Cblacs_gridinit(&grid_, "Row", rows, columns);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const auto array = [&](int height, int width, Matrix& to) {
      const int block = 64, zero = 0, row = rank / columns, column = rank % columns;
      const int local_height = numroc_(&height, &block, &row, &zero, &rows);
      const int local_width = numroc_(&width, &block, &column, &zero, &columns);
      to.descriptor = {1, grid_, height, width, block, block, 0, 0, std::max(local_height, 1)};
      to.elements.assign(std::size_t(local_height) * std::size_t(local_width), 1.0);
    };
    array(m_, k_, a_);
    array(k_, n_, b_);
    array(m_, n_, c_);
  }
  Pdgemm(const Pdgemm&) = delete;
  ~Pdgemm() { Cblacs_gridexit(grid_); }

  void operator()() {
    const double one = 1, zero = 0;
    const int first = 1;
    pdgemm_("N", "N", &m_, &n_, &k_, &one, a_.elements.data(), &first, &first, a_.descriptor.data(),
            b_.elements.data(), &first, &first, b_.descriptor.data(), &zero, c_.elements.data(),
            &first, &first, c_.descriptor.data());
  }

 private:
  struct Matrix {
    std::array<int, 9> descriptor{};
    std::vector<double> elements{};
  };
  int m_, n_, k_, grid_ = 0;
  Matrix a_, b_, c_;
};
#endif

void measure(World& world, index_t rows, index_t columns) {
  const auto mesh = init_device_mesh<dp, tp>(world, {rows, columns});
  for (const Sizes& sizes : shapes) {
    const auto x = ones<double>({sizes.m, sizes.k}, mesh, Shard<0>{}, Shard<1>{});
    const auto w = ones<double>({sizes.k, sizes.n}, mesh, Shard<0>{}, Shard<1>{});
    const auto product = [&] { (void)matmul<Placements<Shard<0>, Shard<1>>>(x, w); };
    const std::string name =
        std::to_string(rows) + "x" + std::to_string(columns) + "." + sizes.name;
#if CLEAVE_BENCH_SCALAPACK
    Pdgemm pdgemm(int(rows), int(columns), sizes);
    const auto times = bench::times_in_turn(turns, product, std::ref(pdgemm));
    if (world.rank() == 0)
      std::printf("linalg.matmul.%s.vs_pdgemm %.3f ratio\n", name.c_str(),
                  1 / bench::ratio_of(times, 1));
#else
    const auto times = bench::times_in_turn(turns, product);
#endif
    if (world.rank() == 0)
      std::printf("linalg.matmul.%s %.3f ms\n", name.c_str(), bench::median(times[0]) * 1e3);
  }
}

/// The fewest elements that some rank receives for a product on p ranks, if each begins and ends
/// with its share of the three matrices and has memory enough: H. Al Daas, G. Ballard,
/// L. Grigori, S. Kumar and K. Rouse, "Tight Memory-Independent Parallel Matrix Multiplication
/// Communication Lower Bounds", SPAA 2022.
double bound(const Sizes& sizes, double p) {
  std::array extents{double(sizes.m), double(sizes.n), double(sizes.k)};
  std::ranges::sort(extents, std::greater<>());
  const auto [m, n, k] = extents;
  const double owned = (m * n + m * k + n * k) / p;
  if (p <= m / n) return (m * n + m * k) / p + n * k - owned;
  if (p <= m * n / (k * k)) return 2 * std::sqrt(m * n * k * k / p) + m * n / p - owned;
  return 3 * std::pow(m * n * k / p, 2.0 / 3) - owned;
}

/// Received by a rank that is at different places on the axes.
double received_bytes(const Sizes& sizes, const std::array<index_t, 3>& extents) {
  const auto rank = int(extents[1] * extents[2] / 2 + extents[2] / 4);
  return double(budget(rank, int(extents[0] * extents[1] * extents[2]), [&](World& world) {
                  const auto mesh = init_device_mesh<dp, pp, tp>(world, extents);
                  const auto x =
                      zeros<double>({sizes.m, sizes.k}, mesh, Shard<0>{}, Shard<1>{}, Shard<1>{});
                  const auto w =
                      zeros<double>({sizes.k, sizes.n}, mesh, Shard<0>{}, Shard<0>{}, Shard<1>{});
                  (void)matmul<Placements<Shard<0>, Shard<0>, Shard<1>>>(x, w);
                }).received_bytes());
}

void print_bytes(const Sizes& sizes, int ranks, const std::array<index_t, 3>& extents) {
  std::printf("linalg.matmul.%s.on_%d.%dx%dx%d.bytes_vs_bound %.3f ratio\n", sizes.name, ranks,
              int(extents[0]), int(extents[1]), int(extents[2]),
              received_bytes(sizes, extents) / (sizeof(double) * bound(sizes, ranks)));
}

/// On square grids, and on the mesh of three axes, for m, k and n, that receives least.
void count_bytes(const Sizes& sizes) {
  for (index_t ranks = 4; ranks <= 4096; ranks *= 4) {
    const auto q = index_t(std::lround(std::sqrt(double(ranks))));
    print_bytes(sizes, int(ranks), {q, 1, q});
    std::array<index_t, 3> best{ranks, 1, 1};
    for (index_t rows = 1; rows <= ranks; rows *= 2)
      for (index_t inner = 1; rows * inner <= ranks; inner *= 2)
        if (const std::array other{rows, inner, ranks / rows / inner};
            received_bytes(sizes, other) < received_bytes(sizes, best))
          best = other;
    print_bytes(sizes, int(ranks), best);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
#if !CLEAVE_BENCH_SCALAPACK
  if (world.rank() == 0)
    std::fprintf(stderr, "linalg.*.vs_pdgemm omitted: libscalapack-openmpi-dev is missing\n");
#endif
  if (world.size() % 2 == 0 && world.size() > 2) measure(world, world.size() / 2, 2);
  else measure(world, 1, world.size());
  if (world.rank() == 0 && world.size() == 2)
    for (const Sizes& sizes : shapes) count_bytes(sizes);
}
