// Factorisations of a matrix of doubles, dealt to a grid of processes in blocks of 64, against
// ScaLAPACK and ELPA called by hand on copies of the same local arrays.
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/arange.hpp>
#include <cleave/dtensor/random.hpp>
#include <cleave/interop/scalapack_factors.hpp>
#include <cleave/interop/scalapack_solvers.hpp>
#include <cleave/ops/elementwise/arithmetic.hpp>
#include <cleave/ops/shapes/transpose.hpp>

#include "../in_turn.hpp"

extern "C" {
void pdpotrf_(const char* uplo, const int* n, double* a, const int* ia, const int* ja,
              const int* desca, int* info);
void pdgeqrf_(const int* m, const int* n, double* a, const int* ia, const int* ja, const int* desca,
              double* tau, double* work, const int* lwork, int* info);
void pdorgqr_(const int* m, const int* n, const int* k, double* a, const int* ia, const int* ja,
              const int* desca, const double* tau, double* work, const int* lwork, int* info);
void pdsyevd_(const char* jobz, const char* uplo, const int* n, double* a, const int* ia,
              const int* ja, const int* desca, double* w, double* z, const int* iz, const int* jz,
              const int* descz, double* work, const int* lwork, int* iwork, const int* liwork,
              int* info);
#if CLEAVE_HAS_ELPA
int elpa_init(int version);
void* elpa_allocate(int* error);
void elpa_deallocate(void* handle, int* error);
void elpa_set_integer(void* handle, const char* name, int value, int* error);
int elpa_setup(void* handle);
void elpa_eigenvectors_a_h_a_d(void* handle, double* a, double* values, double* vectors,
                               int* error);
#endif
}

using namespace cleave;
using namespace cleave::axes;

namespace {

constexpr int n = 2048, block = 64, first = 1;
constexpr char upper[] = "U", vectors[] = "V";

/// The local array of a matrix, its descriptor, and what ScaLAPACK writes.
class ByHand {
 public:
  template <class X>
  explicit ByHand(const X& x)
      : from_(x.to_local().data()),
        size_(std::size_t(x.to_local().size())),
        height_(int(x.to_local().extent(1))),
        width_(int(x.to_local().extent(0))),
        row_(int(x.mesh().coordinate()[1])),
        column_(int(x.mesh().coordinate()[0])),
        descriptor_(scalapack::descriptor(x)) {}

  void potrf() {
    copy();
    pdpotrf_(upper, &n, a_.data(), &first, &first, descriptor_.data(), &info_);
  }
  void geqrf_orgqr() {
    copy();
    std::vector<double> scales(n), work(1);
    int length = -1;
    const auto factorise = [&] {
      pdgeqrf_(&n, &n, a_.data(), &first, &first, descriptor_.data(), scales.data(), work.data(),
               &length, &info_);
    };
    const auto form = [&] {
      pdorgqr_(&n, &n, &n, q_.data(), &first, &first, descriptor_.data(), scales.data(),
               work.data(), &length, &info_);
    };
    factorise();
    work.resize(std::size_t(length = int(work[0])));
    factorise();
    q_ = a_;  // r is above the diagonal of a
    length = -1;
    form();
    work.resize(std::size_t(length = int(work[0])));
    form();
  }
  void syevd() {
    copy();
    std::vector<double> values(n), work(1);
    std::vector<int> integers(1);
    int length = -1, integer_length = -1;
    q_.resize(size_);
    const auto call = [&] {
      pdsyevd_(vectors, upper, &n, a_.data(), &first, &first, descriptor_.data(), values.data(),
               q_.data(), &first, &first, descriptor_.data(), work.data(), &length, integers.data(),
               &integer_length, &info_);
    };
    call();
    // as much as cleave gives: the query returns less than the functions below it check for
    work.resize(std::size_t(length = int(work[0]) + 8 * n + int(size_) * 4));
    integers.resize(std::size_t(integer_length = integers[0]));
    call();
  }
#if CLEAVE_HAS_ELPA
  /// Of a matrix both triangles of which are there.
  void elpa() {
    copy();
    q_.resize(size_);
    std::vector<double> values(n);
    int error = elpa_init(20170403);
    void* const handle = elpa_allocate(&error);
    const auto set = [&](const char* name, int value) {
      elpa_set_integer(handle, name, value, &error);
    };
    set("na", n);
    set("nev", n);
    set("local_nrows", height_);
    set("local_ncols", width_);
    set("nblk", block);
    set("mpi_comm_parent", MPI_Comm_c2f(MPI_COMM_WORLD));
    set("process_row", row_);
    set("process_col", column_);
    info_ = elpa_setup(handle);
    if (info_ == 0) elpa_eigenvectors_a_h_a_d(handle, a_.data(), values.data(), q_.data(), &info_);
    elpa_deallocate(handle, &error);
  }
#endif
  int info() const { return info_; }

 private:
  void copy() { a_.assign(from_, from_ + size_); }

  const double* from_;
  std::size_t size_;
  int height_, width_, row_, column_;  ///< the local array as ScaLAPACK sees it, and its process
  scalapack::Descriptor descriptor_;
  std::vector<double> a_{}, q_{};
  int info_ = 0;
};

void print(const World& world, const std::string& name,
           const std::vector<std::vector<double>>& times) {
  if (world.rank() != 0) return;
  std::printf("linalg.%s %.3f ms\n", name.c_str(), bench::median(times[0]) * 1e3);
  std::printf("linalg.%s.vs_bare %.3f ratio\n", name.c_str(), 1 / bench::ratio_of(times, 1));
}

void measure(World& world, index_t rows, index_t columns) {
  const auto mesh = init_device_mesh<dp, tp>(world, {rows, columns});
  const BlockCyclic<0, block> by_rows;
  const BlockCyclic<1, block> by_columns;
  const auto any = rand<double>({n, n}, mesh, by_rows, by_columns);
  const auto symmetric = add(any, transpose(any));
  const auto definite = symmetric + eye<double>(n, mesh, by_rows, by_columns) * double(2 * n);
  ByHand of_any(any), of_symmetric(symmetric), of_definite(definite);

  const std::string grid = "." + std::to_string(rows) + "x" + std::to_string(columns);
  print(world, "potrf" + grid,
        bench::times_in_turn(
            15, [&] { (void)scalapack::cholesky(definite); }, [&] { of_definite.potrf(); }));
  print(world, "geqrf" + grid,
        bench::times_in_turn(7, [&] { (void)scalapack::qr(any); }, [&] { of_any.geqrf_orgqr(); }));
#if CLEAVE_HAS_ELPA
  const auto times = bench::times_in_turn(
      5, [&] { (void)scalapack::eigh(symmetric); }, [&] { of_symmetric.elpa(); },
      [&] { of_symmetric.syevd(); });
  print(world, "eigh" + grid, times);
  if (world.rank() == 0)
    std::printf("linalg.eigh%s.elpa_vs_scalapack %.3f ratio\n", grid.c_str(),
                1 / bench::ratio_of(times, 2));
#else
  print(world, "eigh" + grid,
        bench::times_in_turn(
            5, [&] { (void)scalapack::eigh(symmetric); }, [&] { of_symmetric.syevd(); }));
#endif
  for (const ByHand* each : {&of_any, &of_symmetric, &of_definite})
    if (each->info() != 0)
      throw Error("linalg", "ScaLAPACK returns " + std::to_string(each->info()));
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  if (world.size() % 2 == 0 && world.size() > 2) measure(world, world.size() / 2, 2);
  else measure(world, 1, world.size());
}
