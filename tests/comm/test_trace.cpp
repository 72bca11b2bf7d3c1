#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/comm/world.hpp>

#include "collective_cases.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

void all_reduce(Communicator& group, index_t count, const char* operation = "") {
  Tensor<float, 1> values({count});
  values.fill_(1);
  Collective c = call(CollectiveKind::all_reduce);
  c.source = values.view();
  c.destination = values.view();
  c.operation = operation;
  group.run(c);
}

}  // namespace

TEST_CASE("a trace records kind, group, type and what each collective receives") {
  on_ranks({1, 2, 4}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    std::vector<int> everyone;
    for (int r = 0; r < n; ++r) everyone.push_back(r);
    const auto tp = world.communicator().subgroup(everyone, "tp");

    const CommTrace trace(world);
    all_reduce(*tp, 64, "loss");
    gather_case<double>(world.communicator(), CollectiveKind::all_gather, 0, 0, Style::dense);
    broadcast_case<std::int8_t>(*tp, n - 1, Style::dense);
    world.barrier();

    REQUIRE(trace.events().size() == 4);
    const CommEvent& reduce = trace.events()[0];
    CHECK(reduce.kind == CollectiveKind::all_reduce);
    CHECK(reduce.group == "tp");
    CHECK(reduce.group_size == n);
    CHECK(reduce.dtype == DType::float32);
    CHECK(reduce.elements == 2 * 64 * (n - 1) / n);
    CHECK(reduce.bytes == 4 * reduce.elements);
    CHECK(reduce.operation == "loss");
    const CommEvent& gather = trace.events()[1];
    CHECK(gather.group == "world");
    CHECK(gather.dtype == DType::float64);
    CHECK(gather.elements == 4 * (uneven_begin(n) - uneven(rank)));
    CHECK(gather.operation == "all_gather");
    CHECK(trace.events()[2].bytes == (rank == n - 1 ? 0 : 35));
    CHECK(trace.events()[3].kind == CollectiveKind::barrier);

    CHECK(trace.count() == 3);
    CHECK(trace.count(CollectiveKind::barrier) == 1);
    CHECK(trace.count(CollectiveKind::all_reduce) == 1);
    CHECK(trace.count(CollectiveKind::exchange) == 0);
    CHECK(trace.received_bytes() == reduce.bytes + gather.bytes + trace.events()[2].bytes);
  });
}

TEST_CASE("an exchange receives what comes from others, not what stays") {
  on_ranks({1, 2, 3}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const CommTrace trace(world);
    all_to_all_case<float>(world.communicator(), Style::dense);
    CHECK(trace.received_bytes() == 4 * uneven(rank) * (uneven_begin(n) - uneven(rank)));
  });
}

TEST_CASE("traces may overlap, end in any order, and be cleared") {
  on_ranks({2}, [](World& world) {
    std::optional<CommTrace> outer(std::in_place, world);
    all_reduce(world.communicator(), 1);
    std::optional<CommTrace> inner(std::in_place, world.communicator());
    all_reduce(world.communicator(), 1);
    CHECK(outer->count() == 2);
    CHECK(inner->count() == 1);
    outer.reset();
    all_reduce(world.communicator(), 1);
    CHECK(inner->count() == 2);
    inner->clear();
    CHECK(inner->events().empty());
    all_reduce(world.communicator(), 1);
    CHECK(inner->count() == 1);
  });
}

TEST_CASE("a trace adds up how long this rank was in collectives") {
  using Clock = std::chrono::steady_clock;
  on_ranks({1, 2, 4}, [](World& world) {
    CommTrace trace(world);
    CHECK(trace.seconds() == 0);
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < 20; ++i) all_reduce(world.communicator(), 1000);
    const double one_by_one = trace.seconds();
    const std::array<Collective, 2> barriers{call(CollectiveKind::barrier),
                                             call(CollectiveKind::barrier)};
    world.communicator().run_all(barriers);
    const std::chrono::duration<double> took = Clock::now() - start;
    CHECK(one_by_one > 0);
    CHECK(trace.seconds() > one_by_one);
    CHECK(trace.seconds() <= took.count());
    trace.clear();
    CHECK(trace.seconds() == 0);
  });
}

TEST_CASE("a trace may outlive its world") {
  std::optional<CommTrace> trace;
  {
    const World world(dry_communicator(0, 2));
    trace.emplace(world);
    all_reduce(world.communicator(), 8);
  }
  CHECK(trace->count() == 1);
  trace.reset();
}

TEST_CASE("a trace prints as a table with equal calls in one line") {
  const auto world = dry_communicator(1, 4);
  const int pair[] = {1, 3};
  const auto tp = world->subgroup(pair, "tp");
  const CommTrace trace(*world);
  all_reduce(*world, 1000, "sum");
  all_reduce(*tp, 16, "sum");
  all_reduce(*world, 1000, "sum");
  World(world).barrier();
  CHECK(trace.to_string() ==
        "calls  collective  group  ranks  dtype    received bytes  in\n"
        "    2  all_reduce  world      4  float32           12000  sum\n"
        "    1  all_reduce  tp         2  float32              64  sum\n"
        "    1  barrier     world      4  uint8                 0  barrier\n");
}

TEST_CASE("a trace is bound to its place") {
  CHECK(!std::is_copy_constructible_v<CommTrace>);
  CHECK(!std::is_move_constructible_v<CommTrace>);
  CHECK(!std::is_constructible_v<CommTrace, int>);
}
