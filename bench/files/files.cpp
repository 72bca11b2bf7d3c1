// Files of one matrix of doubles, 128 MiB, which all processes write and read, each its own bytes:
// .npy, safetensors and HDF5, against pwrite and pread of the same bytes.
//
//     files.npy.write.2x1.vs_pwrite 1.03 ratio   two processes with half of the rows each: the
//                                                time of save_npy divided by that of pwrite
//
// Both sides write a new file, flush it to disk and let it replace the old one. Files are read from
// the page cache.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <boost/mpi/environment.hpp>
#include <fcntl.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/core/open_file.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/interop/hdf5.hpp>
#include <cleave/interop/parallel_npy.hpp>
#include <cleave/nn/checkpoint.hpp>
#include <cleave/nn/save_safetensors.hpp>

#include "../in_turn.hpp"

using namespace cleave;
using namespace cleave::axes;
using detail::OpenFile;

namespace {

constexpr index_t rows = 1024, columns = 16384;
constexpr int turns = 9;

/// What a program without cleave does: the slab of rows of this process, by hand.
class ByHand {
 public:
  ByHand(std::string path, int rank, int size)
      : path_(std::move(path)),
        is_first_(rank == 0),
        first_(std::uint64_t(rows / size * rank * columns) * sizeof(double)),
        elements_(std::size_t(rows / size * columns), 1.5) {}

  void write() const {
    const std::string partial = path_ + ".partial";
    if (is_first_) {
      const OpenFile file("bench", partial, O_CREAT | O_TRUNC | O_WRONLY);
      file.resize(std::uint64_t(rows * columns) * sizeof(double));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const OpenFile file("bench", partial, O_WRONLY);
    file.write_at(first_, elements_.data(), elements_.size() * sizeof(double));
    file.sync();
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_first_) detail::publish("bench", partial, path_);
  }
  void read() {
    const OpenFile file("bench", path_, O_RDONLY);
    file.read_at(first_, elements_.data(), elements_.size() * sizeof(double));
  }

 private:
  std::string path_;
  bool is_first_;
  std::uint64_t first_;
  std::vector<double> elements_;
};

struct Result {
  const char* name;
  std::size_t action;
};

template <class... P>
void measure(const World& world, const std::string& folder, index_t across,
             Placements<P...> placements) {
  const auto mesh = init_device_mesh<row, col>(world, {world.size() / across, across});
  const auto x = full<double>({rows, columns}, 1.5, mesh, P{}...);
  const std::string npy = folder + "/x.npy", safetensors = folder + "/x.safetensors";
  nn::StateDict state;
  state.tensors.push_back(nn::detail::entry_of("x", x));
  ByHand bare(folder + "/bare", world.rank(), world.size());
  std::vector<Result> formats{{"npy", 0}, {"safetensors", 1}};
#if CLEAVE_HAS_HDF5
  const std::string h5 = folder + "/x.h5";
  formats.push_back({"hdf5", 2});
#endif
  const auto print = [&](const char* what, const char* by_hand, const auto& times) {
    if (world.rank() != 0) return;
    const std::size_t last = times.size() - 1;
    for (const auto& [name, action] : formats) {
      auto ratios = times[action];
      for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= times[last][i];
      std::printf("files.%s.%s.%dx%d.vs_%s %.2f ratio\n", name, what, int(world.size() / across),
                  int(across), by_hand, bench::median(std::move(ratios)));
    }
    std::printf("files.%s.%s.%dx%d %.2f GB/s\n", by_hand, what, int(world.size() / across),
                int(across), double(rows * columns) * 8e-9 / bench::median(times[last]));
  };
  const auto write_bare = [&] { bare.write(); };
  const auto read_bare = [&] { bare.read(); };
  const auto write_npy = [&] { save_npy(npy, x); };
  const auto write_safetensors = [&] { nn::save_safetensors(safetensors, "x", x); };
  const auto read_npy = [&] { load_npy<double, 2>(npy, mesh, placements); };
  const auto read_safetensors = [&] { nn::load_checkpoint(safetensors, state); };
#if CLEAVE_HAS_HDF5
  const auto write_hdf5 = [&] {
    auto f = hdf5::create(h5, mesh);
    f.write("x", x);
    f.close();
  };
  const auto read_hdf5 = [&] {
    hdf5::open(h5, mesh).template read<double, 2>("x", mesh, placements);
  };
  print("write", "pwrite",
        bench::times_in_turn(turns, write_npy, write_safetensors, write_hdf5, write_bare));
  print("read", "pread",
        bench::times_in_turn(turns, read_npy, read_safetensors, read_hdf5, read_bare));
#else
  print("write", "pwrite", bench::times_in_turn(turns, write_npy, write_safetensors, write_bare));
  print("read", "pread", bench::times_in_turn(turns, read_npy, read_safetensors, read_bare));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  boost::mpi::environment environment(argc, argv, boost::mpi::threading::multiple);
  const World world(mpi_communicator(MPI_COMM_WORLD));
  const std::string folder = argc > 1 ? argv[1] : ".";
  measure(world, folder, 1, Placements<Shard<0>, Replicate>{});
  if (world.size() == 4) measure(world, folder, 2, Placements<Shard<0>, Shard<1>>{});
}
