// Ghosts of 256^3 doubles in slabs, one element deep, periodic, received by processes into margins:
// against messages packed by hand, and against PETSc's DMGlobalToLocal if it is installed. And a
// step of the seven-point stencil against the same one on the rank's own part.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>

#if CLEAVE_BENCH_PETSC
#include <petscdmda.h>
#endif

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/needed_box.hpp>
#include <cleave/ops/stencil/apply.hpp>

#include "../in_turn.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

constexpr index_t n = 256;
using Line = DeviceMesh<Host, dp>;

struct Seven : Stencil {
  constexpr double operator()(const auto& u) const {
    return u(0, 0, 0) + 0.1 * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) +
                               u(0, 0, 1) - 6 * u(0, 0, 0));
  }
};

auto make_field(const Line& mesh) {
  return full<double>({n, n, n}, 0.5, mesh, Shard<0>{}, margin(1));
}
using Field = decltype(make_field(std::declval<const Line&>()));

/// The exchange of cleave: the planes above and below the own ones, of all fields.
class Boxes {
 public:
  explicit Boxes(const std::vector<Field>& fields) : mesh_(fields[0].mesh()) {
    needs_ = needs_of(fields[0], Field::layout, Shape(fields[0].shape()));
    needs_.maps[0] = {1, 1, -1, 1, Beyond::wrap};
    needs_.own_in_place = true;
    for (const Field& field : fields) {
      const View own = field.to_local().view();
      View box = own;
      box.data = static_cast<double*>(own.data) - own.strides[0];
      box.extents[0] += 2;
      reads_.push_back({&needs_, own, box});
    }
  }
  void operator()() const { redistribution::read_boxes<Host>("exchange", reads_, mesh_.state()); }

 private:
  Line mesh_;
  redistribution::Needs needs_;
  std::vector<redistribution::BoxRead> reads_;
};

/// The same by hand: one packed message to either neighbour.
class Messages {
 public:
  explicit Messages(const std::vector<Field>& fields) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (const Field& field : fields) views_.push_back(field.to_local().view());
    for (auto* buffers : {&sent_, &received_})
      for (auto& buffer : *buffers) buffer.resize(std::size_t(n * n) * fields.size());
  }
  void operator()() {
    const int below = (rank_ + 1) % size_, above = (rank_ + size_ - 1) % size_;
    const int count = int(sent_[0].size());
    MPI_Request requests[4];
    MPI_Irecv(received_[0].data(), count, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(received_[1].data(), count, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[1]);
    each_plane(0, views_[0].extents[0] - 1, [&](double* row, std::size_t side, std::size_t at) {
      std::memcpy(&sent_[side][at], row, sizeof(double) * n);
    });
    MPI_Isend(sent_[1].data(), count, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(sent_[0].data(), count, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    each_plane(-1, views_[0].extents[0], [&](double* row, std::size_t side, std::size_t at) {
      std::memcpy(row, &received_[side][at], sizeof(double) * n);
    });
  }

 private:
  /// Calls f(row, side, place in the buffer) for the rows of two planes of all fields.
  template <class F>
  void each_plane(index_t first, index_t last, const F& f) const {
    std::size_t at = 0;
    for (const View& view : views_)
      for (index_t j = 0; j < n; ++j, at += std::size_t(n)) {
        double* const row = static_cast<double*>(view.data) + j * view.strides[1];
        f(row + first * view.strides[0], 0, at);
        f(row + last * view.strides[0], 1, at);
      }
  }

  int rank_ = 0, size_ = 1;
  std::vector<View> views_;
  std::vector<double> sent_[2], received_[2];
};

#if CLEAVE_BENCH_PETSC
/// The same by PETSc, whose local vectors are copies with ghosts.
class Petsc {
 public:
  explicit Petsc(const std::vector<Field>& fields) {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    DMDACreate3d(MPI_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_PERIODIC,
                 DMDA_STENCIL_STAR, n, n, n, 1, 1, size, int(fields.size()), 1, nullptr, nullptr,
                 nullptr, &grid_);
    DMSetUp(grid_);
    DMCreateGlobalVector(grid_, &global_);
    DMCreateLocalVector(grid_, &local_);
    VecSet(global_, 0.5);
  }
  Petsc(const Petsc&) = delete;  // owns handles
  ~Petsc() {
    VecDestroy(&local_);
    VecDestroy(&global_);
    DMDestroy(&grid_);
  }
  void operator()() const {
    DMGlobalToLocalBegin(grid_, global_, INSERT_VALUES, local_);
    DMGlobalToLocalEnd(grid_, global_, INSERT_VALUES, local_);
  }

 private:
  DM grid_ = nullptr;
  Vec global_ = nullptr, local_ = nullptr;
};
#endif

void print(const World& world, const std::string& name, double value) {
  if (world.rank() == 0)
    std::printf("stencil.%s.%dx1 %.3f ratio\n", name.c_str(), world.size(), value);
}

void exchange(const World& world, const Line& mesh, int count) {
  std::vector<Field> fields;
  for (int k = 0; k < count; ++k) fields.push_back(make_field(mesh));
  const Boxes boxes(fields);
  Messages messages(fields);
  const std::string name = count == 1 ? "exchange" : "exchange_" + std::to_string(count);
  auto t = bench::times_in_turn(31, boxes, [&] { messages(); });
  print(world, name + ".vs_handwritten", bench::median(t[1]) / bench::median(t[0]));
#if CLEAVE_BENCH_PETSC
  const Petsc petsc(fields);
  t = bench::times_in_turn(15, boxes, petsc);
  print(world, name + ".vs_petsc", bench::median(t[1]) / bench::median(t[0]));
#endif
}

/// The time of the same step on a rank's own part alone, over that of a step of all ranks.
void step(const World& world, const Line& mesh) {
  const Field u = make_field(mesh), v = make_field(mesh);
  const auto part = u.to_local(), to = v.to_local();
  const auto at_edges = edges(periodic, zero, zero);
  const auto t = bench::times_in_turn(
      15, [&] { apply(out(v), Seven{}, u, at_edges); },
      [&] { apply(out(to), Seven{}, part, at_edges); });
  print(world, "step.efficiency", bench::median(t[1]) / bench::median(t[0]));
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
#if CLEAVE_BENCH_PETSC
  PetscInitialize(&argc, &argv, nullptr, nullptr);
#else
  std::fprintf(stderr, "PETSc is not installed: vs_petsc is omitted\n");
#endif
  {
    World world(mpi_communicator(MPI_COMM_WORLD));
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    exchange(world, mesh, 1);
    exchange(world, mesh, 8);
    step(world, mesh);
  }
#if CLEAVE_BENCH_PETSC
  PetscFinalize();
#endif
}
