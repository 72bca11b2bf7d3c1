// Schedules as values: what the ranks of a group do, without communication. That no rank waits for
// steps that others do not take, and what is chosen where. The tests of MPI check the results.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/schedule/flat_call.hpp>

#include "collective_cases.hpp"

using namespace cleave;
using namespace cleave::testing;
using detail::RankLevel;
using detail::Schedule;
using detail::StepAction;
using detail::Topology;

namespace {

// A topology of `nodes` nodes with `places` ranks each, in blocks.
Topology topology_of(int nodes, int places, int rank) {
  std::vector<int> node_of;
  for (int r = 0; r < nodes * places; ++r) node_of.push_back(r / places);
  return Topology::of(node_of, rank, nodes * places);
}

// The communication of a rank: one line per step.
std::string communication(const Schedule& schedule, RankLevel level) {
  std::string text;
  for (const detail::ScheduleStep& step : schedule.steps()) {
    if (step.calls.empty() || step.level != level) continue;
    text += std::to_string(int(step.action));
    for (const Collective& c : step.calls) text += std::string(" ") + name_of(c.kind);
    text += "\n";
  }
  return text;
}

constexpr CollectiveKind kinds[] = {
    CollectiveKind::barrier,    CollectiveKind::broadcast,  CollectiveKind::scatter,
    CollectiveKind::gather,     CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
    CollectiveKind::all_reduce, CollectiveKind::all_to_all, CollectiveKind::exchange};

Schedule schedule_of(CollectiveKind kind, DType type, ReduceOp op, index_t each,
                     const Topology& topology) {
  return detail::FlatCall(kind, type, op, each, topology.rank, topology.size).schedule(topology);
}

}  // namespace

TEST_CASE("the ranks of each level take the same steps of communication in the same order") {
  for (const auto& [nodes, places] : {std::pair(1, 4), {3, 1}, {2, 2}, {2, 3}, {4, 2}})
    for (const CollectiveKind kind : kinds)
      for (const auto& [type, op] : {std::pair(DType::float32, ReduceOp::sum),
                                     {DType::float64, ReduceOp::max},
                                     {DType::bfloat16, ReduceOp::sum},
                                     {DType::int64, ReduceOp::bxor}})
        for (const index_t each : {index_t(0), index_t(1), index_t(500), index_t(1) << 20})
          for (const index_t scratch : {index_t(4096), index_t(8) << 20}) {
            std::vector<Schedule> schedules;
            for (int r = 0; r < nodes * places; ++r) {
              Topology topology = topology_of(nodes, places, r);
              topology.limits.scratch_bytes = scratch;
              if (kind == CollectiveKind::barrier && each > 0) continue;
              schedules.push_back(schedule_of(kind, type, op, each, topology));
            }
            CAPTURE(name_of(kind));
            const std::string grid = std::to_string(nodes) + " nodes of " + std::to_string(places);
            CAPTURE(grid);
            for (std::size_t r = 0; r < schedules.size(); ++r) {
              const std::size_t node = r / std::size_t(places), place = r % std::size_t(places);
              const auto like = [&](RankLevel level, std::size_t other) {
                return communication(schedules[r], level) == communication(schedules[other], level);
              };
              CHECK(like(RankLevel::group, 0));
              CHECK(like(RankLevel::node, node * std::size_t(places)));
              CHECK(like(RankLevel::column, place));
            }
          }
}

TEST_CASE("what ranks of one node, of several, and of nodes with one rank each do") {
  const auto text = [](CollectiveKind kind, DType type, ReduceOp op, index_t each, int nodes,
                       int places, int rank) {
    return to_string(schedule_of(kind, type, op, each, topology_of(nodes, places, rank)));
  };
  const auto reduce = [&](DType type, ReduceOp op, index_t each, int nodes, int places, int rank) {
    return text(CollectiveKind::all_reduce, type, op, each, nodes, places, rank);
  };
  const index_t many = 1 << 16;
  CHECK(reduce(DType::float32, ReduceOp::sum, many, 1, 4, 0) == "direct all_reduce");
  CHECK(reduce(DType::float32, ReduceOp::sum, many, 3, 1, 0) == "library all_reduce");
  CHECK(reduce(DType::float32, ReduceOp::max, many, 3, 1, 0) ==
        "library all_to_all, library all_gather");
  CHECK(reduce(DType::float32, ReduceOp::max, 8, 3, 1, 0) == "library all_gather");
  CHECK(reduce(DType::float32, ReduceOp::sum, many, 2, 2, 1) ==
        "direct reduce_scatter on the node, library all_reduce in the column, direct all_gather on "
        "the node");
  CHECK(reduce(DType::float32, ReduceOp::sum, 100 * many, 2, 2, 1) ==
        "direct reduce_scatter on the node (7 times), library all_reduce in the column (7 times), "
        "direct all_gather on the node (7 times)");
  CHECK(reduce(DType::float32, ReduceOp::sum, 8, 2, 2, 1) ==
        "direct reduce_scatter on the node, direct all_gather on the node");  // rank 0 leads
  CHECK(reduce(DType::bfloat16, ReduceOp::sum, many, 2, 2, 0) ==
        "library all_to_all, library all_gather");
  CHECK(reduce(DType::int16, ReduceOp::sum, many, 3, 1, 0) ==
        "library all_to_all, library all_gather");
  CHECK(reduce(DType::int16, ReduceOp::max, many, 3, 1, 0) == "library all_reduce");
  const auto move = [&](CollectiveKind kind, index_t each, int nodes, int places) {
    return text(kind, DType::float32, ReduceOp::sum, each, nodes, places, 0);
  };
  CHECK(move(CollectiveKind::all_gather, many, 2, 2) ==
        "library all_gather in the column, direct all_gather on the node");
  CHECK(move(CollectiveKind::all_gather, many, 4, 1) == "library all_gather");
  CHECK(move(CollectiveKind::exchange, many, 4, 1) == "messages exchange");
  CHECK(move(CollectiveKind::all_to_all, many, 4, 1) == "library all_to_all");
  CHECK(move(CollectiveKind::all_to_all, many, 2, 2) ==
        "library all_to_all, direct exchange on the node");
  CHECK(move(CollectiveKind::exchange, many, 2, 2) ==
        "messages exchange, direct exchange on the node");
  CHECK(move(CollectiveKind::all_to_all, 1, 2, 2) ==
        "direct exchange on the node, library all_to_all in the column");
}

TEST_CASE("calls that run together are one step where ranks share memory, and refer to the calls") {
  const Topology together = topology_of(1, 4, 2);
  const Collective calls[] = {Collective{}, {.kind = CollectiveKind::all_reduce}, Collective{}};
  const Schedule schedule = detail::schedule_for(calls, together);
  REQUIRE(schedule.steps().size() == 1);
  const detail::ScheduleStep& step = schedule.steps()[0];
  CHECK(step.action == StepAction::direct);
  CHECK(step.level == RankLevel::group);
  CHECK(step.calls.data() == calls);  // nothing is copied
  CHECK(step.calls.size() == 3);
  CHECK(schedule.scratch_bytes() == 0);
}

TEST_CASE("scratch does not grow with the number of ranks or the length of the array") {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter})
    for (const auto& [nodes, places] : {std::pair(2, 1), {64, 1}, {1000, 1}, {2, 8}, {128, 8}})
      for (const DType type : {DType::float32, DType::bfloat16}) {
        const index_t each = (index_t(256) << 20) / (nodes * places);
        const Topology topology = topology_of(nodes, places, 0);
        const Schedule schedule = schedule_of(kind, type, ReduceOp::sum, each, topology);
        CHECK(schedule.scratch_bytes() <= topology.limits.scratch_bytes + (index_t(1) << 20));
      }
}

TEST_CASE("counts beyond an int go as messages, and reductions in rank order") {
  const index_t each = index_t(1) << 30;
  const auto actions = [&](CollectiveKind kind) {
    const Schedule schedule =
        schedule_of(kind, DType::uint8, ReduceOp::max, each, topology_of(4, 1, 0));
    std::string text;
    for (const detail::ScheduleStep& step : schedule.steps())
      if (step.action == StepAction::library) text += name_of(step.calls[0].kind);
      else if (step.action == StepAction::messages) text += "messages";
    return text.substr(0, 10);
  };
  CHECK(actions(CollectiveKind::all_gather) == "messages");
  CHECK(actions(CollectiveKind::all_to_all) == "messages");
  CHECK(actions(CollectiveKind::reduce_scatter) == "all_to_all");
}
