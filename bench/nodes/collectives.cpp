// The four collectives of a group on one or several hosts, each against the MPI library's
// collective of the same size in the same run: blocking calls, interleaved. A ratio is the median
// over all turns; with 95 % confidence the true median is `within` this distance of it.
//
// usage: collectives NAME [BYTES..]     name of the launch in the output; bytes of a rank before a
//                                       reduction, or after a gather or an all-to-all
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/tensor/tensor.hpp>

#include "../timing.hpp"

using namespace cleave;
using bench::median;

namespace {

constexpr double seconds_of_turn = 0.01, seconds_of_point = 1.5;
constexpr double shortest_turn = 0.001;  // ranks leave the barrier before it a microsecond apart

/// One turn of an action on all ranks: the mean time of a call on the slowest rank.
template <class F>
double time_of(int calls, const F& action) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) action();
  double mine = (MPI_Wtime() - start) / calls, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

struct Comparison {
  double seconds;  ///< of one of cleave's calls
  double ratio;    ///< MPI's time divided by cleave's
  double within;
};

template <class F, class G>
Comparison in_turn(const F& ours, const G& theirs) {
  ours(), theirs();
  double once = time_of(2, theirs);  // the same on all ranks
  once = time_of(std::max(2, int(shortest_turn / once)), theirs);
  const int calls =
      int(std::max(std::clamp(seconds_of_turn / once, 1.0, 20.0), shortest_turn / once));
  const int turns = int(std::clamp(seconds_of_point / (2 * calls * once), 31.0, 151.0));
  std::vector<double> seconds, ratios;
  for (int i = 0; i < turns; ++i) {
    double mine = 0, other = 0;
    if (i % 2 == 0) mine = time_of(calls, ours);
    other = time_of(calls, theirs);
    if (i % 2 != 0) mine = time_of(calls, ours);
    seconds.push_back(mine);
    ratios.push_back(other / mine);
  }
  // the values sqrt(n) places around the middle of n sorted ones enclose the true median at 95 %
  std::sort(ratios.begin(), ratios.end());
  const auto place = std::size_t(std::sqrt(double(turns)));
  const std::size_t middle = ratios.size() / 2;
  return {median(std::move(seconds)), ratios[middle],
          (ratios[middle + place] - ratios[middle - place]) / 2};
}

struct Bench {
  Communicator& group;
  std::string launch;

  void report(const char* name, std::size_t bytes, const Comparison& result) const {
    if (group.rank() != 0) return;
    std::string size = std::to_string(bytes) + "B";
    if (bytes >= 1024) size = std::to_string(bytes >> 10) + "KiB";
    if (bytes >= (1u << 20)) size = std::to_string(bytes >> 20) + "MiB";
    const std::string line = "nodes." + launch + "." + name + "." + size;
    std::printf("%s.vs_mpi %.3f ratio\n", line.c_str(), result.ratio);
    std::printf("%s.vs_mpi.within %.3f ratio\n", line.c_str(), result.within);
    std::printf("%s %.1f us\n", line.c_str(), result.seconds * 1e6);
    std::fflush(stdout);
  }

  void run(std::size_t bytes) const {
    const int n = group.size();
    const index_t count = std::max<index_t>(1, index_t(bytes) / 4 / n) * n;  // floats
    const index_t share = count / n;
    const Tensor<float, 1> whole({count}), result({count}), piece({share});
    whole.fill_(1);
    piece.fill_(1);
    std::vector<Box> pieces;
    std::vector<Transfer> sends, receives;
    const auto range = [&](int r) {
      return Box{Shape::filled(1, r * share), Shape::filled(1, (r + 1) * share)};
    };
    for (int r = 0; r < n; ++r) {
      pieces.push_back(range(r));
      sends.push_back({r, range(r), range(group.rank())});
      receives.push_back({r, range(group.rank()), range(r)});
    }
    Collective c;
    c.pieces = pieces;
    c.even = true;
    c.global_count = count;
    c.source = whole.view();
    c.destination = result.view();
    const auto ours = [&] { group.run(c); };
    float* const from = whole.data();
    float* const to = result.data();

    c.kind = CollectiveKind::all_reduce;
    report("all_reduce", bytes, in_turn(ours, [&] {
             MPI_Allreduce(from, to, int(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
           }));
    c.kind = CollectiveKind::reduce_scatter;
    c.destination = piece.view();
    report("reduce_scatter", bytes, in_turn(ours, [&] {
             MPI_Reduce_scatter_block(from, piece.data(), int(share), MPI_FLOAT, MPI_SUM,
                                      MPI_COMM_WORLD);
           }));
    c.kind = CollectiveKind::all_gather;
    c.source = piece.view();
    c.destination = result.view();
    report("all_gather", bytes, in_turn(ours, [&] {
             MPI_Allgather(piece.data(), int(share), MPI_FLOAT, to, int(share), MPI_FLOAT,
                           MPI_COMM_WORLD);
           }));
    c.kind = CollectiveKind::all_to_all;
    c.source = whole.view();
    c.global_count = count * n;
    c.sends = sends;
    c.receives = receives;
    report("all_to_all", bytes, in_turn(ours, [&] {
             MPI_Alltoall(from, int(share), MPI_FLOAT, to, int(share), MPI_FLOAT, MPI_COMM_WORLD);
           }));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const boost::mpi::environment environment(argc, argv, boost::mpi::threading::multiple);
  const World world(mpi_communicator(MPI_COMM_WORLD));
  const Bench bench{world.communicator(), argc > 1 ? argv[1] : "here"};
  std::vector<std::size_t> sizes{64, 256, 4096, 1 << 16, 1 << 18, 1 << 20, 2 << 20, 8 << 20};
  if (argc > 2) sizes.clear();
  for (int i = 2; i < argc; ++i) sizes.push_back(std::size_t(std::atoll(argv[i])));
  for (int i = 0; i < 500; ++i) MPI_Barrier(MPI_COMM_WORLD);  // the first messages are slower
  for (const std::size_t bytes : sizes) bench.run(bytes);
}
