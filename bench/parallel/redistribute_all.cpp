// Many tensors redistributed together, against one after the other, between processes: 200 tensors
// of 1 to 64 KiB.
//
// usage: redistribute_all [LAUNCH]     prints lines nodes.LAUNCH.redistribute_all..
//
// `.bound`: the lower bound of any implementation, a memcpy of the bytes that a rank ends up with
// and one barrier, against one after the other. `.one_tensor`: likewise, one tensor of all
// elements. `.host`: microseconds of processor time per tensor, together, on one rank.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/from_local.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "../in_turn.hpp"

using namespace cleave;
using namespace cleave::axes;

namespace {

using Mesh = DeviceMesh<Host, dp>;

/// Rows of 16 numbers under a placement.
auto tensor_of(index_t rows, const Mesh& mesh, Partial<Sum>) {
  return from_local(Tensor<float, 2>({rows, 16}), mesh, Partial<Sum>{});
}
auto tensor_of(index_t rows, const Mesh& mesh, auto placement) {
  return full<float>({rows, 16}, 1.0f, mesh, placement);
}

/// @param rows_of  the rows of the i-th of 200 tensors
void compare(const std::string& line, const Mesh& mesh, auto from, auto to, const auto& rows_of) {
  std::vector<decltype(tensor_of(1, mesh, from))> tensors;
  index_t rows = 0;
  for (index_t i = 0; i < 200; ++i) {
    tensors.push_back(tensor_of(rows_of(i), mesh, from));
    rows += rows_of(i);
  }
  const auto whole = tensor_of(rows, mesh, from);
  const auto result = whole.redistribute(to);
  const std::size_t bytes = std::size_t(result.to_local().size()) * sizeof(float);
  const Tensor<float, 2> original = result.to_local().clone(), copy = original.clone();
  const auto times = bench::times_in_turn(
      31,
      [&] {
        std::vector<decltype(tensors[0].redistribute(to))> results;
        for (const auto& x : tensors) results.push_back(x.redistribute(to));
      },
      [&] { static_cast<void>(redistribute_all(tensors, to)); },
      [&] { std::memcpy(copy.data(), original.data(), bytes); },  // the barrier follows
      [&] { static_cast<void>(whole.redistribute(to)); });
  std::vector<double> host;
  for (int i = 0; i < 101; ++i) {
    const std::clock_t start = std::clock();
    static_cast<void>(redistribute_all(tensors, to));
    host.push_back(double(std::clock() - start) / CLOCKS_PER_SEC);
  }
  if (!mesh.is_member() || mesh.coordinate()[0] != 0) return;
  std::printf("%s.vs_separate %.1f ratio\n", line.c_str(), bench::ratio_of(times, 1));
  std::printf("%s.bound %.1f ratio\n", line.c_str(), bench::ratio_of(times, 2));
  std::printf("%s.one_tensor %.1f ratio\n", line.c_str(), bench::ratio_of(times, 3));
  std::printf("%s.together %.3f ms\n", line.c_str(), bench::median(times[1]) * 1e3);
  std::printf("%s.host %.2f us\n", line.c_str(),
              1e6 * bench::median(host) / double(tensors.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv);
  World world(mpi_communicator(MPI_COMM_WORLD));
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  const std::string line =
      (argc > 1 ? "nodes." + std::string(argv[1]) + "." : "") + "redistribute_all";
  const auto usual = [](index_t i) { return 16 + 1008 * (i * 37 % 200) / 199; };  // 1 to 64 KiB
  compare(line, mesh, Shard<0>{}, Replicate{}, usual);
  compare(line + ".all_to_all", mesh, Shard<0>{}, Shard<1>{}, usual);
  compare(line + ".scatter", mesh, Partial<Sum>{}, Shard<0>{}, usual);
  compare(line + ".sum", mesh, Partial<Sum>{}, Replicate{}, usual);
  compare(line + ".small", mesh, Shard<0>{}, Replicate{},
          [](index_t) { return index_t(16); });  // 1 KiB
}
