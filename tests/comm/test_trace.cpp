#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/async/async.hpp>
#include <cleave/comm/comm_scope.hpp>
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

TEST_CASE("an exchange counts data from other ranks as received, not a rank's own") {
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

TEST_CASE("a trace adds up the time of this rank in collectives") {
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

TEST_CASE("collectives are listed under the part of the program that calls them") {
  const auto world = dry_communicator(1, 4);
  const CommTrace trace(*world);
  all_reduce(*world, 1000);
  {
    const CommScope step("step");
    all_reduce(*world, 8);
    {
      const CommScope inner("norm.first");
      all_reduce(*world, 16);
      all_reduce(*world, 16);
    }
    const auto later = start_async(Host{}, *world, [&] { return all_reduce(*world, 24), 0; });
    CHECK(later.wait() == 0);
  }
  all_reduce(*world, 32, "say \"sum\"");
  CHECK(trace.paths() == std::vector<std::string>{"", "step", "step.norm.first"});
  CHECK(trace.at("step").count() == 2);
  CHECK(trace.at("step.norm").count() == 0);
  CHECK(trace.at("step.norm.first").received_bytes() == 2 * 2 * 16 * 4 * 3 / 4);
  CHECK(trace.inside("step").count() == 4);
  CHECK(trace.inside("step.norm").count() == 2);
  CHECK(trace.inside("ste").count() == 0);
  CHECK(trace.inside("").received_bytes() == trace.received_bytes());
  CHECK(trace.backward().events().empty());
  CHECK(trace.by_module() ==
        "module           pass     calls  collective  group  ranks  dtype    messages  received "
        "bytes  in\n"
        "(root)           forward      1  all_reduce  world      4  float32         6            "
        "6000  all_reduce\n"
        "(root)           forward      1  all_reduce  world      4  float32         6             "
        "192  say \"sum\"\n"
        "step             forward      2  all_reduce  world      4  float32        12             "
        "192  all_reduce\n"
        "step.norm.first  forward      2  all_reduce  world      4  float32        12             "
        "192  all_reduce\n");
  const std::string json = trace.at("step.norm.first").to_json();
  CHECK(json ==
        "[\n {\"module\": \"step.norm.first\", \"pass\": \"forward\", \"calls\": 2, "
        "\"collective\": \"all_reduce\", \"group\": \"world\", \"ranks\": 4, \"dtype\": "
        "\"float32\", \"messages\": 12, \"received_bytes\": 192, \"operation\": "
        "\"all_reduce\"}\n]\n");
  CHECK(trace.to_json().find("\"operation\": \"say \\\"sum\\\"\"") != std::string::npos);
}

TEST_CASE("modules are listed by their names, numbered ones by their numbers") {
  std::vector<CommEvent> events;
  for (const char* path : {"head", "blocks.12", "blocks.10.mlp", "blocks.2.mlp", "blocks.2", ""}) {
    CommEvent event;
    event.kind = CollectiveKind::all_reduce;
    event.path = path;
    events.push_back(event);
  }
  const std::string table = CommEvents(events).by_module();
  std::size_t at = 0;
  for (const char* path :
       {"(root) ", "blocks.2 ", "blocks.2.mlp ", "blocks.10.mlp ", "blocks.12 ", "head "}) {
    const std::size_t line = table.find("\n" + std::string(path));
    REQUIRE(line != table.npos);
    CHECK(line >= at);
    at = line;
  }
}

TEST_CASE("two places share the innermost part that contains both") {
  const auto common = [](const char* a, const char* b) {
    const std::string* path = detail::common_path(detail::kept_path(a), detail::kept_path(b));
    return path == nullptr ? std::string() : *path;
  };
  CHECK(common("a.b.c", "a.b.d") == "a.b");
  CHECK(common("a.b", "a.b") == "a.b");
  CHECK(common("a.b", "a") == "a");
  CHECK(common("a.b1", "a.b2") == "a");
  CHECK(common("a1", "a2") == "");
  CHECK(common("a.b", "") == "");
  CHECK(common("ab", "a.b") == "");
}

TEST_CASE("messages: one per sender, also of collectives that run in one round") {
  const auto world = dry_communicator(1, 4);
  CommTrace trace(*world);
  const Tensor<float, 1> own({3}), all({9});
  const auto range = [](index_t begin, index_t end) {
    return Box{Shape::filled(1, begin), Shape::filled(1, end)};
  };
  const std::array<Box, 4> pieces{range(0, 3), range(3, 6), range(6, 9), range(9, 9)};
  Collective gather = call(CollectiveKind::all_gather);
  gather.source = own.view();
  gather.destination = all.view();
  gather.pieces = pieces;
  const std::array<Transfer, 2> receives{Transfer{3, pieces[0], pieces[0]},
                                         Transfer{3, pieces[0], pieces[1]}};
  Collective exchange = call(CollectiveKind::exchange);
  exchange.source = own.view();
  exchange.destination = all.view();
  exchange.receives = receives;
  world->run(gather);
  CHECK(trace.received_messages() == 2);  // from ranks 0 and 2; rank 3 has nothing
  world->run(exchange);
  CHECK(trace.received_messages() == 3);
  trace.clear();
  const std::array<Collective, 4> round{gather, gather, exchange, gather};
  world->run_all(round);
  CHECK(trace.received_messages() == 3);
  CHECK(trace.count() == 4);
  trace.clear();
  all_reduce(*world, 5);
  CHECK(trace.received_messages() == 6);
  world->run(exchange);
  CHECK(trace.received_messages() == 7);
}

TEST_CASE("a trace can be neither copied nor moved") {
  CHECK(!std::is_copy_constructible_v<CommTrace>);
  CHECK(!std::is_move_constructible_v<CommTrace>);
  CHECK(!std::is_constructible_v<CommTrace, int>);
}
