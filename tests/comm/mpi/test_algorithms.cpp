// Algorithms for collectives between nodes other than messages among the whole group: the MPI
// library's own collectives, chosen by a table, and reductions whose scratch does not grow with the
// number of ranks. Every process stands for a node, unless a case says otherwise.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/mpi/communicator.hpp>

#include "../changed.hpp"
#include "../collective_cases.hpp"
#include "../collective_properties.hpp"
#include "errors.hpp"
#include "processes.hpp"
#include "ranks.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

// Sets CLEAVE_TUNE for the duration of a scope.
struct TuneFile {
  explicit TuneFile(const std::string& text)
      : name("/tmp/cleave-tune-" + std::to_string(getpid())) {
    std::ofstream(name) << text;
    setenv("CLEAVE_TUNE", name.c_str(), 1);
  }
  ~TuneFile() {
    unsetenv("CLEAVE_TUNE");
    std::remove(name.c_str());
  }
  TuneFile(const TuneFile&) = delete;  // owns the file
  TuneFile& operator=(const TuneFile&) = delete;
  std::string name;
};

const char* const library_table =
    "all_gather 0 0 library\nreduce_scatter 0 0 library\n"
    "all_reduce 0 0 library\nall_to_all 0 0 library\n";

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

TEST_CASE("the MPI library's collectives give the results of cleave's") {
  if (!needs_processes(2)) return;
  const TuneFile table(library_table);
  for (const std::size_t bytes : {std::size_t(100), std::size_t(4) << 20}) {
    const Changed part(detail::max_library_bytes, bytes);
    const Changed nodes(detail::mpi_ranks_per_node, 1);
    on_ranks({2, 3, 4, 8}, [](World& world) { cases_of_table(world); });
  }
}

TEST_CASE("columns use the MPI library's collectives on request") {
  if (!needs_processes(4)) return;
  std::string text = library_table;
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"})
    text += std::string(kind) + " 4 0 two_level  # and the library for columns\n";
  const TuneFile table(text);
  const Changed nodes(detail::mpi_ranks_per_node, 2);
  on_ranks({4, 6}, [](World& world) { cases_of_table(world); });
}

TEST_CASE("sums in rank order do not use the MPI library's collectives") {
  if (!needs_processes(2)) return;
  const TuneFile table(library_table);
  const Changed nodes(detail::mpi_ranks_per_node, 1);
  on_ranks({2, 3, 4, 8}, [](World& world) { rank_order_cases(world); });
}

TEST_CASE("a rank missing from a collective of the MPI library is named within the time-out") {
  if (!needs_processes(2)) return;
  const TuneFile table(library_table);
  const Changed nodes(detail::mpi_ranks_per_node, 1);
  const auto world = mpi_communicator(MPI_COMM_WORLD);
  const int last = world->size() - 1;
  if (world->rank() < last) {
    world->state().timeout_seconds = 0.4;
    const Tensor<float, 1> x({1000});
    Collective c = call(CollectiveKind::all_reduce);
    c.source = x.view();
    c.destination = x.view();
    const std::string text = cleave::testing::error_of([&] { world->run(c); });
    CHECK(text.find("rank " + std::to_string(last) +
                    " did not reach all_reduce of group 'world' within 0.4 s") !=
          std::string::npos);
  }
  Processes::get().meet(30);
}

TEST_CASE("an invalid line of the table is an error that names it") {
  const auto refusal = [](const char* text) {
    const TuneFile table(text);
    const std::string said =
        cleave::testing::error_of([] { detail::MpiTuning::from_environment(); });
    const std::size_t at = said.find(table.name);
    return at == std::string::npos ? said : said.substr(at + table.name.size());
  };
  const std::string rest =
      " is not a valid row; use: COLLECTIVE RANKS BYTES messages|library|two_level";
  CHECK(refusal("# all\n\nall_reduce 2 0 fast\n") == ":3: 'all_reduce 2 0 fast'" + rest);
  CHECK(refusal("all_reduce 2 library") == ":1: 'all_reduce 2 library'" + rest);
  CHECK(refusal("barrier 2 0 library") == ":1: 'barrier 2 0 library'" + rest);
  CHECK(refusal("all_reduce -2 0 library") == ":1: 'all_reduce -2 0 library'" + rest);
  CHECK(refusal("all_reduce 2 0 library 7") == ":1: 'all_reduce 2 0 library 7'" + rest);
  const std::string costs =
      " is not a valid line; use: inside US BYTES_PER_US, or "
      "between US BYTES_PER_US RANKS_PER_NODE";
  CHECK(refusal("inside 2") == ":1: 'inside 2'" + costs);
  CHECK(refusal("inside 2 900 8") == ":1: 'inside 2 900 8'" + costs);
  CHECK(refusal("between 20 -1 8") == ":1: 'between 20 -1 8'" + costs);
  CHECK(refusal("between 20 900 0") == ":1: 'between 20 900 0'" + costs);
  CHECK(refusal("between 20 900 8 # fine\ninside 2 9000") == "");
  setenv("CLEAVE_TUNE", "/nowhere/table", 1);
  CHECK(cleave::testing::error_of([] { detail::MpiTuning::from_environment(); }) ==
        "run: CLEAVE_TUNE: cannot read '/nowhere/table'");
  unsetenv("CLEAVE_TUNE");
}

TEST_CASE("the last row of the table that fits a call applies") {
  using detail::MpiAlgorithm;
  const TuneFile file("all_reduce 8 0 library  # many ranks\nall_reduce 8 4096 messages\n");
  const detail::MpiTuning table = detail::MpiTuning::from_environment();
  const auto any = [](MpiAlgorithm) { return true; };
  const auto flat = [](MpiAlgorithm a) { return a != MpiAlgorithm::two_level; };
  const CollectiveKind kind = CollectiveKind::all_reduce;
  CHECK(table.choose(kind, 4, 100, any) == MpiAlgorithm::two_level);
  CHECK(table.choose(kind, 4, 100, flat) == MpiAlgorithm::messages);
  CHECK(table.choose(kind, 8, 100, flat) == MpiAlgorithm::library);
  CHECK(table.choose(kind, 8, 4096, any) == MpiAlgorithm::messages);
  CHECK(table.choose(CollectiveKind::all_gather, 8, 4096, any) == MpiAlgorithm::two_level);
  CHECK(table.checksum() != detail::MpiTuning().checksum());
}

TEST_CASE("a world on several nodes measures the cost of communication on request") {
  if (!needs_processes(4)) return;
  const Changed nodes(detail::mpi_ranks_per_node, 2);
  setenv("CLEAVE_TUNE", "measure", 1);
  on_ranks({4, 6}, [](World& world) {
    const MachineCosts& costs = world.communicator().state().machine;
    const bool flat =
        world.communicator().transport().find("no shared memory") != std::string::npos;
    CHECK(costs.ranks_per_node == (flat ? 1 : 2));
    CHECK(costs.inside.known() == !flat);
    CHECK(costs.between.known());
    CHECK(costs.between.latency_us > 0);
  });
  unsetenv("CLEAVE_TUNE");
}

TEST_CASE("blocks of a reduction over 16,384 ranks fit in the scratch of a reduction over two") {
  for (const int ranks : {2, 3, 64, 1000, 16384})
    for (const std::size_t size : {1u, 2u, 4u, 8u, 16u})
      for (const bool in_parts : {false, true}) {
        const index_t block = detail::reduction_block(in_parts, size, ranks);
        CHECK(block >= 1);
        CHECK(4 * std::size_t(ranks - 1) * std::size_t(block) * size <= std::size_t(16) << 20);
      }
}

TEST_CASE("self-sends are copied while waiting for peers, the rest at the end") {
  if (!needs_processes(2)) return;
  const Changed nodes(detail::mpi_ranks_per_node, 1);
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

TEST_CASE("reductions as messages go through a little scratch block by block") {
  if (!needs_processes(2)) return;
  const Changed scratch(detail::max_reduction_scratch, std::size_t(1000));
  const Changed none_is_forwarded(detail::max_forwarded_bytes, std::size_t(0));
  const Changed nodes(detail::mpi_ranks_per_node, 1);
  on_ranks({2, 3, 4, 8}, [](World& world) {
    reduce_scatter_cases(world);
    all_gather_cases(world);
    rank_order_cases(world);
    for (const Style style : all_styles)
      all_reduce_case<double>(world.communicator(), ReduceOp::avg, 83, 101, style, style, true);
  });
}

TEST_CASE("a long reduction takes no more scratch than its bound") {
  if (!needs_processes(2)) return;
  const Changed nodes(detail::mpi_ranks_per_node, 1);
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
    CHECK(taken <= detail::max_reduction_scratch + (std::size_t(1) << 20));
    CHECK(x(0) == float(world.size() * (world.size() + 1) / 2));
    CHECK(x((index_t(12) << 20) - 1) == x(0));
  });
}
