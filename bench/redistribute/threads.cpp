// Collectives between threads against memcpy by the same threads, and the host overhead of a
// redistribution. Each ratio is of medians of interleaved measurements in one run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>

#include "../timing.hpp"

using namespace cleave;
using namespace cleave::axes;
using bench::median;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Times two actions of all ranks, interleaved; the medians in seconds, on rank 0.
template <class A, class B>
std::pair<double, double> in_turn(World& world, int repetitions, A a, B b) {
  std::vector<double> first, second;
  for (int i = 0; i < repetitions; ++i) {
    world.barrier();
    Clock::time_point start = Clock::now();
    a();
    world.barrier();
    first.push_back(seconds_since(start));
    start = Clock::now();
    b();
    world.barrier();
    second.push_back(seconds_since(start));
  }
  return {median(first), median(second)};
}

/// 16 MiB per rank: its data before a reduce-scatter, or after an all-gather.
void against_memcpy(World& world) {
  constexpr index_t count = index_t(4) << 20;  // floats
  const int n = world.size();
  const auto mesh = init_device_mesh<tp>(world, {n});
  const Tensor<float, 2> from({2048, 2048}), to({2048, 2048});
  from.fill_(1);
  to.fill_(0);
  const auto copy = [&] { std::memcpy(to.data(), from.data(), std::size_t(count) * 4); };
  const auto report = [&](const char* name, std::pair<double, double> times) {
    if (world.rank() != 0) return;
    std::printf("thread.%s.16MiB.vs_memcpy %.3f ratio\n", name, times.second / times.first);
    std::printf("thread.%s.16MiB %.2f GB/s\n", name, double(count) * 4e-9 / times.first);
  };
  Communicator& group = mesh.group(tp{});
  std::vector<Box> rows(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    const IndexRange range = shard_range(2048, n, r);
    rows[std::size_t(r)] = {Shape(std::array<index_t, 2>{range.begin, 0}),
                            Shape(std::array<index_t, 2>{range.end, 2048})};
  }
  const Box mine = rows[std::size_t(world.rank())];
  const auto run = [&](CollectiveKind kind, const ConstView& source, const View& destination) {
    Collective call;
    call.kind = kind;
    call.source = source;
    call.destination = destination;
    call.pieces = rows;
    group.run(call);
  };
  const Tensor<float, 2> part({mine.extent(0), 2048});
  part.fill_(2);
  report(
      "all_gather",
      in_turn(world, 41, [&] { run(CollectiveKind::all_gather, part.view(), to.view()); }, copy));
  report(
      "reduce_scatter",
      in_turn(
          world, 41, [&] { run(CollectiveKind::reduce_scatter, from.view(), part.view()); }, copy));
  report(
      "all_reduce",
      in_turn(world, 41, [&] { run(CollectiveKind::all_reduce, from.view(), to.view()); }, copy));
  // every rank cuts its data into one piece per rank, row by row
  std::vector<Transfer> sends, receives;
  for (int r = 0; r < n; ++r) {
    sends.push_back({r, rows[std::size_t(r)], mine});
    receives.push_back({r, mine, rows[std::size_t(r)]});
  }
  report("all_to_all", in_turn(
                           world, 41,
                           [&] {
                             Collective call;
                             call.kind = CollectiveKind::all_to_all;
                             call.source = from.view();
                             call.destination = to.view();
                             call.sends = sends;
                             call.receives = receives;
                             group.run(call);
                           },
                           copy));
}

/// Nanoseconds per call, the median of several batches.
template <class F>
double nanoseconds(F f) {
  std::vector<double> batches;
  for (int b = 0; b < 31; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < 2000; ++i) f();
    batches.push_back(seconds_since(start) / 2000 * 1e9);
  }
  return median(batches);
}

/// With a communicator that does nothing, the remaining time is cleave's.
void host_overhead() {
  const World world(dry_communicator(1, 4));
  const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
  const auto x = zeros<float>({64, 64}, mesh, Shard<0>{}, Replicate{});
  const auto use = [](const auto& y) { asm volatile("" : : "r"(y.to_local().data()) : "memory"); };
  std::printf("host.redistribute_noop_ns %.1f ns\n",
              nanoseconds([&] { use(x.redistribute(Shard<0>{}, Replicate{})); }));
  std::printf("host.copy_handle_ns %.1f ns\n", nanoseconds([&] {
                const auto y = x;
                use(y);
              }));
  const Tensor<float, 2> whole({64, 64});
  const std::vector<Box> pieces(2, Box::of(Shape(std::array<index_t, 2>{32, 64})));
  Communicator& group = mesh.group(dp{});
  const double bare = nanoseconds([&] {
    Collective call;
    call.kind = CollectiveKind::all_gather;
    call.source = x.to_local().view();
    call.destination = whole.view();
    call.pieces = pieces;
    group.run(call);
  });
  const auto over_bare = [&](const char* name, auto redistribute) {
    std::printf("host.redistribute_overhead_ns%s %.1f ns\n", name,
                nanoseconds(redistribute) - bare);
  };
  over_bare("", [&] { (void)x.redistribute(Replicate{}, Replicate{}); });
  over_bare(".all_to_all", [&] { (void)x.redistribute(Shard<1>{}, Replicate{}); });
  const auto p = from_local(whole, mesh, Placements<Partial<Sum>, Replicate>{});
  over_bare(".chosen_by_size", [&] { (void)p.redistribute(Shard<0>{}, Replicate{}); });
}

}  // namespace

int main() {
  run_threads(2, against_memcpy);
  host_overhead();
}
