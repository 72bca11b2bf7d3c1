// Stencils on hosts with a delay between them, one process each, where a step takes twice the delay
// to compute: what four steps with one exchange save. Argument: a name for the hosts.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/mpi/header.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/mesh/device_mesh.hpp>
#include <cleave/ops/stencil/apply.hpp>

using namespace cleave;
using namespace cleave::axes;

namespace {

struct Heat : Stencil {
  constexpr double operator()(const auto& u) const {
    return u(0, 0) + 0.1 * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0));
  }
};

constexpr double delay = 0.5e-3;
constexpr index_t columns = 1024;

/// Seconds from the last process's start of f to the last one's end: the clock of the machine.
template <class F>
double seconds_of_all(const F& f) {
  MPI_Barrier(MPI_COMM_WORLD);
  double times[2] = {MPI_Wtime(), 0};
  f();
  times[1] = MPI_Wtime();
  MPI_Allreduce(MPI_IN_PLACE, times, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return times[1] - times[0];
}

/// The least of many times: other programs may run on these cores, too. The actions in turn.
template <class... F>
std::vector<double> least_seconds(int turns, const F&... action) {
  std::vector<double> least(sizeof...(F), 1e9);
  for (int turn = 0; turn < turns; ++turn) {
    std::size_t k = 0;
    ((least[k] = std::min(least[k], seconds_of_all(action)), ++k), ...);
  }
  return least;
}

/// The rows of a process that take twice the delay to compute.
index_t rows_per_process() {
  constexpr index_t rows = 1024;
  const Tensor<double, 2> u({rows, columns}), v({rows, columns});
  u.fill_(1);
  const auto t = least_seconds(51, [&] { apply(out(v), Heat{}, u, edges(periodic)); });
  return index_t(2 * delay / t[0] * double(rows)) + 1;
}

void compare(World& world, const std::string& hosts) {
  const auto mesh = init_device_mesh<dp>(world, {world.size()});
  const index_t rows = rows_per_process() * world.size();
  const auto make = [&] { return full<double>({rows, columns}, 0.5, mesh, Shard<0>{}, margin(4)); };
  const auto u = make(), v = make();
  const auto part = u.to_local(), to = v.to_local();
  const auto of = edges(periodic);
  const auto once = [&] { apply(out(v), Heat{}, u, of); };
  const auto steps = [&] {
    for (int step = 0; step < 4; ++step) once();
  };
  const auto together = [&] { apply(out(v), repeat<4>(Heat{}), u, of); };
  const auto t =
      least_seconds(201, once, [&] { apply(out(to), Heat{}, part, of); }, steps, together);
  const CommTrace in_steps(world);
  steps();
  const index_t messages = in_steps.received_messages();
  const CommTrace in_one(world);
  together();
  if (world.rank() != 0) return;
  const auto print = [&](const char* name, double value, const char* unit = "ratio") {
    std::printf("stencil.%s.%s %.3f %s\n", name, hosts.c_str(), value, unit);
  };
  print("exchange", 1e3 * (t[0] - t[1]), "ms");
  print("interior", 1e3 * t[1], "ms");
  print("repeat4.messages", double(in_one.received_messages()) / double(messages));
  print("repeat4.vs_steps", t[2] / t[3]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string hosts = argc > 1 ? argv[1] : "hosts";
  return run(argc, argv, [&](World& world) { compare(world, hosts); });
}
