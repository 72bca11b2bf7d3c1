// Explanations: text, bytes and memory compared with hand-computed numbers.
#include <array>
#include <chrono>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/redistribute/exchange.hpp>
#include <cleave/redistribute/explain.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "setting.hpp"

using namespace cleave;
using namespace cleave::axes;
using namespace cleave::testing;

TEST_CASE("an explanation names the steps, what they receive and what they need") {
  const World world(dry_communicator(0, 4));
  const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
  using From = Placements<Shard<0>, Replicate>;
  const auto gather = explain<From, Placements<Replicate, Replicate>>(mesh, {6, 4});
  REQUIRE(gather.steps.size() == 1);
  CHECK(gather.bytes == 3 * 4 * 4);            // the other half of 6 x 4 floats
  CHECK(gather.peak_memory == (12 + 24) * 4);  // the half and the whole array
  CHECK(gather.text() ==
        "(Shard(0), Replicate) -> (Replicate, Replicate) of [6, 4] on dp=2 x tp=2\n"
        "  1. all_gather over dp (2 ranks), 48 bytes per rank, 5.0 us -> (Replicate, Replicate)\n"
        "  receives 48 bytes per rank, peak memory 144 bytes, about 5.0 us\n");
  const auto slice = explain<Placements<Replicate, Replicate>, From>(mesh, {6, 4}, DType::float64);
  CHECK(slice.bytes == 0);
  CHECK(slice.steps.at(0).kind == StepKind::slice);
  CHECK(slice.peak_memory == (24 + 12) * 8);
  CHECK(explain<From, From>(mesh, {6, 4}).text().find("nothing to do") != std::string::npos);
}

TEST_CASE("sizes decide between an all-reduce of everything and one of slices that are gathered") {
  const World world(dry_communicator(0, 16));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 4});
  using From = Placements<Partial<Sum>, Replicate>;
  using To = Placements<Replicate, Replicate>;
  const auto small = explain<From, To>(mesh, {16, 16});
  REQUIRE(small.steps.size() == 1);
  CHECK(small.steps[0].kind == StepKind::all_reduce);
  const auto large = explain<From, To>(mesh, {4096, 4096});
  REQUIRE(large.steps.size() == 3);
  CHECK(large.steps[0].kind == StepKind::slice);
  CHECK(large.steps[1].kind == StepKind::all_reduce);
  CHECK(large.steps[2].kind == StepKind::all_gather);
  const index_t whole = 4096 * 4096 * 4;
  CHECK(large.bytes == whole / 4 * 2 * 3 / 4 + whole * 3 / 4);  // instead of whole * 2 * 3 / 4
}

TEST_CASE("one process explains a mesh of 16,384 ranks in milliseconds") {
  const World world(dry_communicator(12345, 16384));
  const auto mesh = init_device_mesh<pp, dp, tp>(world, {16, 128, 8});
  const auto start = std::chrono::steady_clock::now();
  const auto e = explain<Placements<Partial<Sum>, Shard<0>, Replicate>,
                         Placements<Shard<0>, Replicate, Shard<1>>>(mesh, {1 << 20, 8192});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(e.steps.size() >= 2);
  CHECK(e.bytes > 0);
  MESSAGE("explained in ", seconds.count() * 1e3, " ms: ", e.text());
}

TEST_CASE("sizes that no memory holds are estimated, and those that cannot be counted refused") {
  const World world(dry_communicator(5, 16384));
  const auto mesh = init_device_mesh<dp>(world, {16384});
  constexpr index_t large = index_t(1) << 49, most = std::numeric_limits<index_t>::max();
  using Summed = Placements<Partial<Sum>>;
  using Whole = Placements<Replicate>;
  const auto sum = explain<Summed, Whole>(mesh, {large}, DType::int8);
  CHECK(sum.bytes == 2 * (large - large / 16384));
  CHECK(sum.microseconds > 2 * double(large) / 1e4 * 0.99);
  const auto largest = explain<Summed, Whole>(mesh, {most}, DType::int8);
  CHECK(largest.bytes == most);
  CHECK(largest.peak_memory == most);
  CHECK(largest.microseconds > 0);
  const auto scattered = explain<Summed, Placements<Shard<0>>>(mesh, {1, most / 2}, DType::int8);
  CHECK(scattered.bytes > 0);
  CHECK(scattered.microseconds > 0);
  const auto refusal = [&](index_t extent) {
    return error_of([&] { (void)explain<Placements<Shard<0>>, Whole>(mesh, {extent}); });
  };
  const std::string uncounted = "Tensor: the product of the extents does not fit in index_t";
  CHECK(refusal(most / 4) == "");
  CHECK(refusal(most / 4 + 1) == uncounted);
  CHECK(refusal(most) == uncounted);
  CHECK(refusal(-1) == "Tensor: extent -1 of dimension 0 is negative");
}

TEST_CASE("ranks outside of a mesh explain the redistributions of those in it") {
  on_ranks({3}, [](World& world) {
    const auto pair = init_device_mesh<dp>(world, {2}, {2, 1});
    const auto gather = explain<Placements<Shard<0>>, Placements<Replicate>>(pair, {6});
    CHECK(gather.bytes == 3 * 4);
    CHECK(gather.microseconds == cost_model(world.communicator()).latency_us +
                                     12 / cost_model(world.communicator()).bytes_per_us);
  });
}

TEST_CASE("estimates are those of a stated machine, inside of nodes and between them") {
  const World world(dry_communicator(0, 16));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 4});
  CostModel machine{.latency_us = 2, .bytes_per_us = 1000};
  machine.ranks_per_node = 4;
  machine.network_latency_us = 30;
  machine.network_bytes_per_us = 100;
  using Rows = Placements<Shard<0>, Replicate>;
  using Columns = Placements<Replicate, Shard<0>>;
  using Whole = Placements<Replicate, Replicate>;
  const auto time = [&]<class From>(From) {
    return explain<From, Whole>(mesh, {16, 25}, DType::float32, machine).microseconds;
  };
  CHECK(time(Columns{}) == 2 + 4 * 3 * 4 * 25 / 1000.0);  // tp: the four ranks of one node
  CHECK(time(Rows{}) == 30 + 4 * 3 * 4 * 25 / 100.0);     // dp: one rank per node
  machine.ranks_per_node = 8;
  CHECK(time(Rows{}) == 30 + 4 * 3 * 4 * 25 / 100.0);
  machine.ranks_per_node = 16;
  CHECK(time(Rows{}) == 2 + 4 * 3 * 4 * 25 / 1000.0);
}

TEST_CASE("steps say who communicates with whom") {
  const World world(dry_communicator(0, 16));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 4});
  CostModel machine;
  machine.ranks_per_node = 8;
  using Rows = Placements<Shard<0>, Replicate>;
  using Columns = Placements<Replicate, Shard<0>>;
  using Whole = Placements<Replicate, Replicate>;
  const auto gather = [&]<class From>(From) {
    return explain<From, Whole>(mesh, {4096, 25}, DType::float32, machine);
  };
  CHECK(gather(Columns{}).steps[0].schedule == "direct all_gather");  // one node
  CHECK(gather(Rows{}).steps[0].schedule ==
        "library all_gather in the column, direct all_gather on the node");
  CHECK(gather(Rows{}).text().find("\n     library all_gather in the column, ") !=
        std::string::npos);
  const auto sums = [&](const std::string& schedule) {
    const auto explained =
        explain<Placements<Partial<Sum>, Replicate>, Whole>(mesh, {4, 4}, DType::float64, machine);
    return explained.text().find("\n     " + schedule + "\n") != std::string::npos;
  };
  CHECK(
      sums("direct reduce_scatter on the node, library all_reduce in the column, direct "
           "all_gather on the node"));
  world.communicator().state().reproducible = true;  // in rank order, which MPI does not promise
  CHECK(sums("library all_gather"));
  machine.ranks_per_node = 4;
  CHECK(gather(Rows{}).steps[0].schedule == "library all_gather");  // one rank per node
  machine.ranks_per_node = 0;
  CHECK(gather(Rows{}).steps[0].schedule == "");                      // unknown
  CHECK(explain<Whole, Rows>(mesh, {4, 4}).steps[0].schedule == "");  // local
  run_threads(2, [](World& two) {
    const auto line = init_device_mesh<dp>(two, {2});
    const auto explained = explain<Placements<Shard<0>>, Placements<Replicate>>(line, {4, 4});
    CHECK(explained.text().find("\n     direct all_gather\n") != std::string::npos);
  });
}

TEST_CASE("a slow network makes plans with less traffic on it the cheaper ones") {
  const World world(dry_communicator(0, 16));
  const auto mesh = init_device_mesh<dp, tp>(world, {4, 4});
  // one addend per node, replicated by its ranks, which can share the work of the sum
  using From = Placements<Partial<Sum>, Replicate>;
  using To = Placements<Replicate, Replicate>;
  CostModel machine;  // 64 KiB: one all-reduce takes 5 + 9.8 us, with slices 5 + 2.5 + 5 + 4.9
  CHECK(explain<From, To>(mesh, {128, 128}, DType::float32, machine).steps.size() == 1);
  machine.ranks_per_node = 4;
  machine.network_latency_us = 30;
  machine.network_bytes_per_us = 1000;
  CHECK(explain<From, To>(mesh, {128, 128}, DType::float32, machine).steps.size() == 3);
}

TEST_CASE("worlds know the machine that a file describes") {
  const CostModel machine = [] {
    const TuneFile file("inside 3 2000  # measured\n# comments\nbetween 40 500 2\n");
    return cost_model(*dry_communicator(0, 4));
  }();
  CHECK(machine.latency_us == 3);
  CHECK(machine.bytes_per_us == 2000);
  CHECK(machine.ranks_per_node == 2);
  CHECK(machine.network_latency_us == 40);
  CHECK(machine.network_bytes_per_us == 500);
  CHECK(cost_model(*dry_communicator(0, 4)).ranks_per_node == 0);
}

TEST_CASE("the transfers of an exchange are found once") {
  const World world(dry_communicator(12345, 16384));
  const auto mesh = init_device_mesh<dp, tp>(world, {128, 128});
  const Plan plan = make_plan(layout_of<Placements<Shard<0>, Shard<1>>, 2>,
                              layout_of<Placements<Shard<1>, Shard<0>>, 2>, 2);
  const Shape shape(std::array<index_t, 2>{1 << 14, 1 << 15});
  auto& cache = mesh.state().cache<redistribution::TransferCache>();
  const auto transfers = cache.transfers(plan[0], shape, mesh.state());
  CHECK(transfers->receives.size() == 1);
  CHECK(cache.transfers(plan[0], shape, mesh.state()) == transfers);
  CHECK(cache.transfers(plan[0], Shape(std::array<index_t, 2>{1 << 14, 1 << 14}), mesh.state()) !=
        transfers);
}
