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

/// The elements of the three matrices that each of p ranks owns.
double owned(const Sizes& sizes, double p) {
  const double m = double(sizes.m), n = double(sizes.n), k = double(sizes.k);
  return (m * n + m * k + n * k) / p;
}

/// The fewest elements that some rank receives for a product on p ranks, if each begins and ends
/// with its share of the three matrices and has memory enough: H. Al Daas, G. Ballard,
/// L. Grigori, S. Kumar and K. Rouse, "Tight Memory-Independent Parallel Matrix Multiplication
/// Communication Lower Bounds", SPAA 2022.
double bound(const Sizes& sizes, double p) {
  std::array extents{double(sizes.m), double(sizes.n), double(sizes.k)};
  std::ranges::sort(extents, std::greater<>());
  const auto [m, n, k] = extents;
  if (p <= m / n) return (m * n + m * k) / p + n * k - owned(sizes, p);
  if (p <= m * n / (k * k)) return 2 * std::sqrt(m * n * k * k / p) + m * n / p - owned(sizes, p);
  return 3 * std::pow(m * n * k / p, 2.0 / 3) - owned(sizes, p);
}

/// The same if a rank holds at most `memory` elements: G. Kwasniewski et al., "Red-Blue Pebbling
/// Revisited: Near Optimal Parallel Matrix-Matrix Multiplication", SC 2019, theorem 2. The m n k /
/// p multiplications of a rank load at least 2 m n k / (p sqrt(s)) factors and store s sums, with
/// s <= memory; what it owns is neither received nor sent. On average over all ranks, elements that
/// are received or sent as sums are received by some rank.
double bound(const Sizes& sizes, double p, double memory) {
  const double volume = double(sizes.m) * double(sizes.n) * double(sizes.k) / p;
  const double sums = std::min(memory, std::pow(volume, 2.0 / 3));
  return std::max(bound(sizes, p), 2 * volume / std::sqrt(sums) + sums - owned(sizes, p));
}

using Result = Placements<Shard<0>, Shard<0>, Shard<1>>;

/// What f(x, w) costs a rank that is at different places on the axes, for m, k and n.
template <class F>
Budget cost_on(const Sizes& sizes, const std::array<index_t, 3>& extents, const F& f) {
  const auto rank = int(extents[1] * extents[2] / 2 + extents[2] / 4);
  return budget(rank, int(extents[0] * extents[1] * extents[2]), [&](World& world) {
    const auto mesh = init_device_mesh<dp, pp, tp>(world, extents);
    const auto x = zeros<double>({sizes.m, sizes.k}, mesh, Shard<0>{}, Shard<1>{}, Shard<1>{});
    const auto w = zeros<double>({sizes.k, sizes.n}, mesh, Shard<0>{}, Shard<0>{}, Shard<1>{});
    f(x, w);
  });
}

double received_bytes(const Sizes& sizes, const std::array<index_t, 3>& extents) {
  return double(cost_on(sizes, extents, [](const auto& x, const auto& w) {
                  (void)matmul<Result>(x, w);
                }).received_bytes());
}

void print_ratio(const Sizes& sizes, index_t ranks, const std::array<index_t, 3>& extents,
                 const char* what, double ratio) {
  std::printf("linalg.%s.%s.on_%d.%dx%dx%d.bytes_vs_bound %.3f ratio\n", what, sizes.name,
              int(ranks), int(extents[0]), int(extents[1]), int(extents[2]), ratio);
}

void print_bytes(const Sizes& sizes, index_t ranks, const std::array<index_t, 3>& extents) {
  print_ratio(sizes, ranks, extents, "matmul",
              received_bytes(sizes, extents) / (sizeof(double) * bound(sizes, double(ranks))));
}

template <class F>
void each_mesh(index_t ranks, const F& f) {
  for (index_t rows = 1; rows <= ranks; rows *= 2)
    for (index_t inner = 1; rows * inner <= ranks; inner *= 2)
      f(std::array{rows, inner, ranks / rows / inner});
}

/// Planned by bytes, where one product may hold so many times what a rank owns of the matrices: on
/// the mesh where it receives least.
void count_limited_bytes(const Sizes& sizes, index_t ranks, int times) {
  const double own = owned(sizes, double(ranks));
  const fewest_bytes limits{.memory_limit = index_t(own * times) * index_t(sizeof(double))};
  std::array<index_t, 3> best{};
  index_t least = -1;
  each_mesh(ranks, [&](const std::array<index_t, 3>& extents) {
    cost_on(sizes, extents, [&](const auto& x, const auto& w) {
      try {
        const index_t bytes = explain<Result>("ik,kj->ij"_ein, limits, x, w).bytes;
        if (least < 0 || bytes < least) least = bytes, best = extents;
      } catch (const Error&) {  // no plan keeps to the limit on this mesh
      }
    });
  });
  const std::string name = "einsum.memory_" + std::to_string(times) + "x";
  if (least < 0) {
    std::fprintf(stderr, "linalg.%s.%s.on_%d omitted: no plan keeps to the limit\n", name.c_str(),
                 sizes.name, int(ranks));
    return;
  }
  const Budget cost = cost_on(sizes, best, [&](const auto& x, const auto& w) {
    (void)einsum<Result>("ik,kj->ij"_ein, limits, x, w);
  });
  const double operands = own - double(sizes.m) * double(sizes.n) / double(ranks);
  print_ratio(sizes, ranks, best, name.c_str(),
              double(cost.received_bytes()) /
                  (sizeof(double) * bound(sizes, double(ranks), own * times + operands)));
}

/// On square grids, and on the mesh of three axes, for m, k and n, that receives least.
void count_bytes(const Sizes& sizes) {
  for (index_t ranks = 4; ranks <= 4096; ranks *= 4) {
    const auto q = index_t(std::lround(std::sqrt(double(ranks))));
    print_bytes(sizes, ranks, {q, 1, q});
    std::array<index_t, 3> best{ranks, 1, 1};
    each_mesh(ranks, [&](const std::array<index_t, 3>& other) {
      if (received_bytes(sizes, other) < received_bytes(sizes, best)) best = other;
    });
    print_bytes(sizes, ranks, best);
    for (const int times : {1, 4}) count_limited_bytes(sizes, ranks, times);
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
