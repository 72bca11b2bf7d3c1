// Many tensors redistributed together, against one after the other, between processes: 200 tensors
// of 1 to 64 KiB. What no packing can beat is one tensor with the bytes of all: `.bound` is how much
// faster that is than one after the other.
#include <cstdio>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

using Mesh = DeviceMesh<Host, dp>;

double seconds_of(const auto& f) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  f();
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

/// Rows of 16 numbers under a placement.
auto tensor_of(index_t rows, const Mesh& mesh, Partial<Sum>) {
  return from_local(Tensor<float, 2>({rows, 16}), mesh, Partial<Sum>{});
}
auto tensor_of(index_t rows, const Mesh& mesh, auto placement) {
  return full<float>({rows, 16}, 1.0f, mesh, placement);
}

/// @param rows_of  the i-th of 200
void compare(const std::string& name, const Mesh& mesh, auto from, auto to, const auto& rows_of) {
  std::vector<decltype(tensor_of(1, mesh, from))> tensors;
  index_t rows = 0;
  for (index_t i = 0; i < 200; ++i) {
    tensors.push_back(tensor_of(rows_of(i), mesh, from));
    rows += rows_of(i);
  }
  const auto whole = tensor_of(rows, mesh, from);
  std::vector<double> ratios, bounds, together;
  for (int i = 0; i < 21; ++i) {
    const double separate = seconds_of([&] {
      std::vector<decltype(tensors[0].redistribute(to))> results;
      for (const auto& x : tensors) results.push_back(x.redistribute(to));
    });
    together.push_back(seconds_of([&] { static_cast<void>(redistribute_all(tensors, to)); }));
    const double one = seconds_of([&] { static_cast<void>(whole.redistribute(to)); });
    ratios.push_back(separate / together.back());
    bounds.push_back(separate / one);
  }
  if (!mesh.is_member() || mesh.coordinate()[0] != 0) return;
  std::printf("redistribute_all%s.vs_separate %.1f ratio\n", name.c_str(), bench::median(ratios));
  std::printf("redistribute_all%s.bound %.1f ratio\n", name.c_str(), bench::median(bounds));
  std::printf("redistribute_all%s.together %.3f ms\n", name.c_str(),
              bench::median(together) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  const auto usual = [](index_t i) { return 16 + 1008 * (i * 37 % 200) / 199; };  // 1 to 64 KiB
  compare("", mesh, Shard<0>{}, Replicate{}, usual);
  compare(".all_to_all", mesh, Shard<0>{}, Shard<1>{}, usual);
  compare(".scatter", mesh, Partial<Sum>{}, Shard<0>{}, usual);
  compare(".sum", mesh, Partial<Sum>{}, Replicate{}, usual);
  compare(".small", mesh, Shard<0>{}, Replicate{}, [](index_t) { return index_t(16); });  // 1 KiB
}
