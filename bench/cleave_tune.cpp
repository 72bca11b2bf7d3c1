// cleave-tune: measures the collectives of a launch and writes the file that CLEAVE_TUNE names.
//
// usage: mpirun .. cleave-tune [FILE]       without FILE prints it
//
// Times every algorithm that a group supports for several sizes, interleaved: among all ranks, and,
// if nodes have several ranks each, within columns (one rank per node), which are a step of the
// two-level algorithm.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/mpi/environment.hpp>

#include <cleave/comm/measure_link.hpp>
#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/communicator.hpp>
#include <cleave/tensor/tensor.hpp>

using namespace cleave;
using detail::MpiAlgorithm, detail::MpiCommunicator, detail::MpiTuning, detail::NodeGrid;

namespace {

constexpr CollectiveKind kinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_reduce, CollectiveKind::all_to_all};
/// Sizes of what a rank contributes or receives, in floats.
constexpr index_t sizes[] = {16, 256, 4096, 32768, 262144};
constexpr int repetitions = 7;
constexpr double seconds_of_each = 0.004;  ///< duration of a repetition

/// A collective of a group, with its own memory.
class Call {
 public:
  Call(CollectiveKind kind, index_t floats, const Communicator& group)
      : share_(std::max<index_t>(1, floats / group.size())),
        whole_({share_ * group.size()}),
        other_({share_ * group.size()}),
        piece_({share_}) {
    const int n = group.size(), self = group.rank();
    whole_.fill_(1);
    piece_.fill_(1);
    const auto range = [&](index_t r) {
      return Box{Shape::filled(1, r * share_), Shape::filled(1, (r + 1) * share_)};
    };
    for (int r = 0; r < n; ++r) {
      pieces_.push_back(range(r));
      sends_.push_back({r, range(r), range(self)});
      receives_.push_back({r, range(self), range(r)});
    }
    call_.kind = kind;
    call_.even = true;
    call_.global_count = share_ * n * (kind == CollectiveKind::all_to_all ? n : 1);
    call_.source = kind == CollectiveKind::all_gather ? piece_.view() : whole_.view();
    call_.destination = kind == CollectiveKind::reduce_scatter ? piece_.view() : other_.view();
    call_.pieces = pieces_;
    call_.sends = sends_;
    call_.receives = receives_;
  }
  Call(const Call&) = delete;  // the collective refers to members
  Call& operator=(const Call&) = delete;

  const Collective& collective() const { return call_; }
  /// Bytes as the tables count them.
  index_t bytes() const { return call_.global_count * index_t(sizeof(float)); }

 private:
  index_t share_;
  Tensor<float, 1> whole_, other_, piece_;
  std::vector<Box> pieces_;
  std::vector<Transfer> sends_, receives_;
  Collective call_;
};

/// Seconds per call on the slowest rank.
double seconds_of(Communicator& group, const Collective& collective, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) group.run(collective);
  double mine = (MPI_Wtime() - start) / calls, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/// The median time of every group in seconds, interleaved.
std::vector<double> compare(const std::vector<std::shared_ptr<Communicator>>& groups,
                            const Collective& collective) {
  std::vector<std::vector<double>> times(groups.size());
  std::vector<int> calls;
  for (const auto& group : groups) {
    group->run(collective);
    const double once = seconds_of(*group, collective, 2);
    calls.push_back(int(std::clamp(seconds_of_each / once, 1.0, 200.0)));
  }
  for (int i = 0; i < repetitions; ++i)
    for (std::size_t g = 0; g < groups.size(); ++g)
      times[g].push_back(seconds_of(*groups[g], collective, calls[g]));
  std::vector<double> medians;
  for (std::vector<double>& of_group : times) {
    std::sort(of_group.begin(), of_group.end());
    medians.push_back(of_group[of_group.size() / 2]);
  }
  return medians;
}

/// The results of the measurement; the same on all ranks.
struct Result {
  MpiTuning table{};
  std::string text{};
};

const char* name_of_algorithm(MpiAlgorithm algorithm) {
  return algorithm == MpiAlgorithm::messages  ? "messages"
         : algorithm == MpiAlgorithm::library ? "library"
                                              : "two_level";
}

/// Adds rows for groups of `ranks` ranks: the fastest algorithm by kind and size.
/// @param make  algorithm -> the group that uses it
template <class Make>
void tune(Result& result, int ranks, const std::vector<MpiAlgorithm>& algorithms,
          const Make& make) {
  std::vector<std::shared_ptr<Communicator>> groups;
  for (const MpiAlgorithm algorithm : algorithms) groups.push_back(make(algorithm));
  for (const CollectiveKind kind : kinds) {
    MpiAlgorithm last{};
    for (const index_t floats : sizes) {
      const Call call(kind, floats, *groups[0]);
      const std::vector<double> seconds = compare(groups, call.collective());
      const auto best = std::size_t(std::ranges::min_element(seconds) - seconds.begin());
      std::ostringstream line;
      const bool first = floats == sizes[0];
      // change the algorithm between sizes only if it gains at least 5 %
      std::size_t chosen = best;
      for (std::size_t a = 0; !first && a < algorithms.size(); ++a)
        if (algorithms[a] == last && seconds[a] < 1.05 * seconds[best]) chosen = a;
      line << (first || algorithms[chosen] != last ? "" : "# ") << name_of(kind) << "  " << ranks
           << "  " << (first ? 0 : call.bytes()) << "  " << name_of_algorithm(algorithms[chosen])
           << "  # us:";
      for (std::size_t a = 0; a < algorithms.size(); ++a)
        line << " " << name_of_algorithm(algorithms[a]) << " " << seconds[a] * 1e6;
      result.text += line.str() + "\n";
      if (first || algorithms[chosen] != last)
        result.table.add({kind, ranks, first ? 0 : call.bytes(), algorithms[chosen]});
      last = algorithms[chosen];
    }
  }
}

/// "LATENCY  BANDWIDTH" of the most expensive of the groups that measure at the same time.
std::string costs_of(Communicator& group, Communicator& all) {
  const LinkCosts costs = detail::measure_link(group, all);
  std::ostringstream text;
  text << costs.latency_us << "  " << costs.bytes_per_us;
  return text.str();
}

std::shared_ptr<MpiCommunicator> world_with(const MpiTuning& table) {
  return MpiCommunicator::world(MPI_COMM_WORLD, std::make_shared<const MpiTuning>(table));
}

MpiTuning only(MpiTuning table, MpiAlgorithm algorithm) {
  for (const CollectiveKind kind : kinds) table.add({kind, 0, 0, algorithm});
  return table;
}

Result measure() {
  Result result;
  const auto world = world_with({});
  const std::vector<int> nodes = world->nodes();
  const NodeGrid grid = NodeGrid::of(nodes, world->rank());
  const int ranks = world->size();
  const auto on_node = [&] {
    std::vector<int> here;
    for (int r = 0; r < ranks; ++r)
      if (nodes[std::size_t(r)] == nodes[std::size_t(world->rank())]) here.push_back(r);
    return here;
  };
  const bool one_node = !nodes.empty() && on_node().size() == std::size_t(ranks);
  const bool flat = nodes.empty() || (!one_node && grid.nodes == 0);
  if (ranks > 1 && !flat)
    result.text += "inside  " + costs_of(*world->subgroup(on_node(), "node"), *world) + "\n";
  if (one_node) return result;

  const std::vector<MpiAlgorithm> of_messages{MpiAlgorithm::messages, MpiAlgorithm::library};
  std::vector<MpiAlgorithm> all = of_messages;
  if (grid.nodes > 0) {
    tune(result, grid.nodes, of_messages, [&](MpiAlgorithm algorithm) {
      return world_with(only({}, algorithm))->subgroup(grid.column(), "column");
    });
    all.push_back(MpiAlgorithm::two_level);
  }
  const MpiTuning of_columns = result.table;
  tune(result, ranks, all, [&](MpiAlgorithm algorithm) -> std::shared_ptr<Communicator> {
    if (algorithm != MpiAlgorithm::two_level) return world_with(only({}, algorithm));
    MpiTuning table = of_columns;
    for (const CollectiveKind kind : kinds) table.add({kind, ranks, 0, algorithm});
    return world_with(table);
  });
  const auto tuned = world_with(result.table);
  result.text += "between  " + costs_of(*tuned, *tuned) + "  " +
                 std::to_string(std::max(1, grid.places)) + "\n";
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  boost::mpi::environment environment(argc, argv, boost::mpi::threading::multiple);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try {
    const Result result = measure();
    if (rank != 0) return 0;
    std::ofstream file;
    if (argc > 1) file.open(argv[1]);
    std::ostream& out = argc > 1 ? file : std::cout;
    out << "# cleave-tune, " << ranks << " ranks\n" << result.text << std::flush;
    if (out) return 0;
    std::fprintf(stderr, "cleave-tune: cannot write '%s'\n", argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
    environment.abort(1);
  }
  return 1;
}
