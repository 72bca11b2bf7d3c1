// Schedules of ranks that share no memory: the MPI library's collectives, messages, and reductions
// in rank order. Every process stands for a node, unless a case says otherwise.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/mpi_communicator.hpp>

#include "../changed.hpp"
#include "../collective_cases.hpp"
#include "../collective_properties.hpp"
#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"
#include "setting.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

detail::ScheduleLimits& process_limits() { return Processes::get().limits; }

bool needs_processes(int count) {
  if (Processes::get().size() >= count) return true;
  skip("needs more processes");
  return false;
}

/// Gathers long rows from all ranks.
void rows_case(Communicator& group, index_t length, Style style) {
  const int n = group.size();
  const auto value = [](index_t row, index_t j) { return double(1'000'000 * row + j); };
  const Field<double> piece(1, length, style,
                            [&](index_t, index_t j) { return value(group.rank(), j); });
  const Field<double> whole(n, length, style);
  std::vector<Box> rows;
  for (int r = 0; r < n; ++r) rows.push_back(box(r, r + 1, 0, length));
  Collective c = call(CollectiveKind::all_gather);
  c.source = piece.view();
  c.destination = whole.view();
  c.pieces = rows;
  group.run(c);
  CHECK(whole.difference(value) == "");
}

void cases_of_table(World& world) {
  all_gather_cases(world);
  reduce_scatter_cases(world);
  all_reduce_cases(world);
  exchange_cases(world);
  for (const index_t length : {1, 7, 1000})
    equal_parts_case<float>(world.communicator(), length, Style::dense);
}

}  // namespace

TEST_CASE("the MPI library's collectives, and messages, give the results of one node") {
  if (!needs_processes(2)) return;
  for (const index_t elements : {index_t(0), index_t(50), index_t(1) << 30}) {
    const Changed count(process_limits().library_count, elements);
    const Changed nodes(process_limits().ranks_per_node, 1);
    on_ranks({2, 3, 4, 8}, [](World& world) { cases_of_table(world); });
  }
}

TEST_CASE("sums in rank order do not use the MPI library's reductions") {
  if (!needs_processes(2)) return;
  const Changed nodes(process_limits().ranks_per_node, 1);
  on_ranks({2, 3, 4, 8}, [](World& world) {
    world.communicator().state().reproducible = true;
    rank_order_cases(world);
  });
}

TEST_CASE("an invalid line of the machine's costs is an error that names it") {
  const auto refusal = [](const char* text) {
    const TuneFile table(text);
    const std::string said = cleave::testing::error_of([] { MachineCosts::from_environment(); });
    const std::size_t at = said.find(table.name);
    return at == std::string::npos ? said : said.substr(at + table.name.size());
  };
  const std::string costs =
      " is not a valid line; use: inside US BYTES_PER_US, or "
      "between US BYTES_PER_US RANKS_PER_NODE";
  CHECK(refusal("# all\n\nall_reduce 2 0 library\n") == ":3: 'all_reduce 2 0 library'" + costs);
  CHECK(refusal("inside 2") == ":1: 'inside 2'" + costs);
  CHECK(refusal("inside 2 900 8") == ":1: 'inside 2 900 8'" + costs);
  CHECK(refusal("between 20 -1 8") == ":1: 'between 20 -1 8'" + costs);
  CHECK(refusal("between 20 900 0") == ":1: 'between 20 900 0'" + costs);
  CHECK(refusal("between 20 900 8 # fine\ninside 2 9000") == "");
  const Setting missing("CLEAVE_TUNE", "/nowhere/table");
  CHECK(cleave::testing::error_of([] { MachineCosts::from_environment(); }) ==
        "run: CLEAVE_TUNE: cannot read '/nowhere/table'");
}

TEST_CASE("a world on several nodes measures the cost of communication on request") {
  if (!needs_processes(4)) return;
  const Changed nodes(process_limits().ranks_per_node, 2);
  const Setting measured("CLEAVE_TUNE", "measure");
  on_ranks({4, 6}, [](World& world) {
    const MachineCosts& costs = world.communicator().state().machine;
    const bool flat =
        world.communicator().transport().find("no shared memory") != std::string::npos;
    CHECK(costs.ranks_per_node == (flat ? 1 : 2));
    CHECK(costs.inside.known() == !flat);
    CHECK(costs.between.known());
    CHECK(costs.between.latency_us > 0);
  });
}

TEST_CASE("a world on several nodes measures nothing unless asked") {
  if (!needs_processes(4)) return;
  const Changed nodes(process_limits().ranks_per_node, 2);
  const Setting unset("CLEAVE_TUNE", nullptr);
  on_ranks({4, 6}, [](World& world) {
    const MachineCosts& costs = world.communicator().state().machine;
    CHECK(!costs.inside.known());
    CHECK(!costs.between.known());
  });
}

TEST_CASE("late ranks change nothing") {
  if (!needs_processes(2)) return;
  const Changed nodes(process_limits().ranks_per_node, 1);
  on_ranks({2, 3}, [](World& world) {
    for (int late = 0; late < world.size(); ++late) {
      for (const Style style : all_styles) {
        world.barrier();
        if (world.rank() == late) usleep(5000);
        rows_case(world.communicator(), 25'001, style);
        if (world.rank() == late) usleep(5000);
        equal_parts_case<double>(world.communicator(), 9'001, style);
      }
    }
  });
}

TEST_CASE("short calls take their scratch from one permanent block, long ones from others") {
  detail::MpiScratch scratch;
  std::byte* const first = scratch.take(100);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % detail::storage_alignment == 0);
  CHECK(scratch.take(1) == first + 128);
  const std::size_t more = std::size_t(32) << 10;
  std::byte* const other = scratch.take(more);
  CHECK((other + more <= first || other >= first + more));
  std::memset(other, 1, more);
  scratch.clear();
  CHECK(scratch.take(more) == first);
  std::memset(first, 1, more);
}

TEST_CASE("reductions in rank order go through a little scratch round by round") {
  if (!needs_processes(2)) return;
  const Changed scratch(process_limits().scratch_bytes, index_t(1000));
  const Changed none_is_gathered(process_limits().gathered_bytes, index_t(0));
  const Changed nodes(process_limits().ranks_per_node, 1);
  on_ranks({2, 3, 4, 8}, [](World& world) {
    world.communicator().state().reproducible = true;
    reduce_scatter_cases(world);
    all_gather_cases(world);
    rank_order_cases(world);
    for (const Style style : all_styles)
      all_reduce_case<double>(world.communicator(), ReduceOp::avg, 83, 101, style, style, true);
  });
}

TEST_CASE("a long reduction takes no more scratch than its bound") {
  if (!needs_processes(2)) return;
  const Changed nodes(process_limits().ranks_per_node, 1);
  on_ranks({2, 4}, [](World& world) {
    const Tensor<float, 1> x({index_t(12) << 20});
    x.fill_(float(world.rank() + 1));
    Collective c = call(CollectiveKind::all_reduce);
    c.source = x.view();
    c.destination = x.view();
    world.communicator().state().reproducible = true;
    world.barrier();
    reset_memory_peak();
    const std::size_t before = memory_stats().allocated;
    world.communicator().run(c);
    const std::size_t taken = memory_stats().peak - before;
    CHECK(taken > 0);
    CHECK(taken <= std::size_t(process_limits().scratch_bytes) + (std::size_t(1) << 20));
    CHECK(x(0) == float(world.size() * (world.size() + 1) / 2));
    CHECK(x((index_t(12) << 20) - 1) == x(0));
  });
}
