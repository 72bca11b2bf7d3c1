// How functional collectives run: asynchronously, several in flight, several tensors in a round.
#include <string>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include <cleave/comm/dry.hpp>
#include <cleave/comm/run.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/functional.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "tensors.hpp"

using namespace cleave;
using namespace cleave::testing;

namespace {

double sum_of_ranks(const World& world) { return world.size() * (world.size() - 1) / 2.0; }

}  // namespace

TEST_CASE("several functional collectives in flight are waited for in any order") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const auto x = cells<double>(rank, {n, 3, 2});
    for (int round = 0; round < 10; ++round) {
      auto sum = functional::all_reduce(x, Sum{}, world);
      auto all = functional::all_gather(x, 1, world);
      auto part = functional::reduce_scatter(x, Max{}, 0, world);
      auto swapped = functional::all_to_all(x, 0, world);
      auto moved = functional::permute(x, {{0, n - 1}}, world);
      auto copied = functional::broadcast(x, n - 1, world);
      world.barrier();  // the rank itself communicates meanwhile
      CHECK(unmodified(*copied, n - 1));
      CHECK(element(part, 0, 2, 1) ==
            reduced<double>(ReduceOp::max, n, [&](int r) { return cell<double>(r, rank, 2, 1); }));
      CHECK(element(swapped, n - 1, 2, 1) == cell<double>(n - 1, rank, 2, 1));
      CHECK(element(all, 0, 3 * (n - 1), 1) == cell<double>(n - 1, 0, 0, 1));
      CHECK(element(moved, 0, 0, 0) == (rank == n - 1 ? cell<double>(0, 0, 0, 0) : 0.0));
      CHECK(element(sum, 0, 2, 1) ==
            reduced<double>(ReduceOp::sum, n, [](int r) { return cell<double>(r, 0, 2, 1); }));
      CHECK(sum.ready());
    }
    CHECK(unmodified(x, rank));
  });
}

TEST_CASE("dropped results of functional collectives leave nothing pending") {
  on_ranks({2, 3, 4}, [](World& world) {
    const auto x = ranks_number(world, 5000);
    for (int i = 0; i < 50; ++i) {
      (void)functional::all_reduce(x, Sum{}, world);
      (void)functional::all_gather(x, 0, world);
    }
    auto last = functional::all_reduce(x, Sum{}, world);
    last = functional::all_reduce(x, Max{}, world);
    CHECK(element(last, 4999) == world.size() - 1);
    const long holders = x.storage().use_count();
    CHECK(holders == 1);
  });
}

TEST_CASE("an input may go out of scope while its collective is under way") {
  on_ranks({2, 4}, [](World& world) {
    auto sum = functional::all_reduce(ranks_number(world, 40000), Sum{}, world);
    CHECK(element(sum, 39999) == sum_of_ranks(world));
  });
}

TEST_CASE("a functional collective waits for its peers in the background") {
  on_ranks({2}, [](World& world) {
    if (!communicator_on(TestDevice{}, world.communicator()).concurrent())
      return skip("the backend allows one thread");
    const auto x = ranks_number(world, 8);
    (void)functional::all_reduce(x, Sum{}, world);
    if (world.rank() == 1) world.barrier();
    const auto sum = functional::all_reduce(x, Sum{}, world);
    if (world.rank() == 0) {
      CHECK(!sum.ready());
      world.barrier();
    }
    CHECK(element(sum, 7) == 1);
  });
}

TEST_CASE("a temporary result yields a value, which may be bound to a reference") {
  on_ranks({1, 3}, [](World& world) {
    const auto x = ranks_number(world, 2000);
    const auto sum_of_x = [&] { return functional::all_reduce(x, Sum{}, world); };
    const Line& waited = sum_of_x().wait();
    const Line& converted = sum_of_x();
    const Line& dereferenced = *sum_of_x();
    Line later({2000});  // reuses the memory of a destroyed result
    later.fill_(-1);
    for (const Line* y : {&waited, &converted, &dereferenced}) {
      CHECK(element(*y, 1999) == sum_of_ranks(world));
      CHECK(!y->shared());
    }
    auto pending = sum_of_x();
    static_assert(std::is_same_v<decltype(pending.wait()), const Line&>);
    const Line& handle = pending;
    CHECK(handle.data() == pending->data());
    const Line out = std::move(pending).wait();
    CHECK(element(out, 0) == sum_of_ranks(world));
    CHECK(out.data() == handle.data());
  });
}

TEST_CASE("wait accepts results, releases temporary ones, and returns tensors unchanged") {
  on_ranks({1, 3}, [](World& world) {
    const auto x = ranks_number(world, 4);
    const auto sum = functional::all_reduce(x, Sum{}, world);
    const Line& there = functional::wait(sum);
    CHECK(element(there, 0) == sum_of_ranks(world));
    const Line kept = functional::wait(functional::all_reduce(x, Max{}, world));
    CHECK(element(kept, 0) == world.size() - 1);
    CHECK(&functional::wait(x) == &x);
  });
}

TEST_CASE("coalesced collectives give the results of single ones, in the form of their input") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const int n = world.size(), rank = world.rank();
    const auto a = cells<float>(rank, {2 * n, 3, n});
    const auto b = cells<double>(rank, {n, 2, 5}, true);
    const Tensor<float, 2, TestDevice> c = a.select(1, 2);
    const Line empty({0});
    const auto large = cells<float>(rank, {n, 40, 500});
    const auto list = std::tuple{a, b, c, empty, large};
    const auto same = [](const auto& result, const auto& single) {
      const auto expected = functional::wait(single).to(Host{});
      CHECK(result.shape() == expected.shape());
      CHECK(result.contiguous());
      CHECK(!result.shared());
      const auto found = result.to(Host{});
      index_t wrong = 0;
      for (index_t i = 0; i < found.size(); ++i) wrong += found.data()[i] != expected.data()[i];
      CHECK(wrong == 0);
    };

    const auto sums = functional::wait(functional::all_reduce_coalesced(list, Sum{}, world));
    std::apply(
        [&](const auto&... s) {
          std::apply(
              [&](const auto&... x) { (same(s, functional::all_reduce(x, Sum{}, world)), ...); },
              list);
        },
        sums);

    const int dims[] = {0, 1, -1, 0, 2};
    const auto all =
        functional::wait(functional::all_gather_coalesced(list, {0, 1, -1, 0, 2}, world));
    std::apply(
        [&](const auto&... s) {
          std::apply(
              [&](const auto&... x) {
                int i = 0;
                (same(s, functional::all_gather(x, dims[i++], world)), ...);
              },
              list);
        },
        all);

    const int scattered[] = {2, 0, 1, 0, 0};
    const auto parts =
        functional::wait(functional::reduce_scatter_coalesced(list, "max", {2, 0, 1, 0, 0}, world));
    std::apply(
        [&](const auto&... s) {
          std::apply(
              [&](const auto&... x) {
                int i = 0;
                (same(s, functional::reduce_scatter(x, Max{}, scattered[i++], world)), ...);
              },
              list);
        },
        parts);

    const std::vector<Tensor<double, 3, TestDevice>> several{b, cells<double>(rank, {n, 1, 1}), b};
    const auto vector = functional::reduce_scatter_coalesced(several, Avg{}, 0, world);
    CHECK(vector->size() == 3);
    for (std::size_t i = 0; i < 3; ++i)
      same((*vector)[i], functional::reduce_scatter(several[i], Avg{}, 0, world));
    CHECK(functional::all_gather_coalesced(std::vector<Tensor<double, 3, TestDevice>>{}, 0, world)
              ->empty());
    CHECK(unmodified(a, rank));
    CHECK(unmodified(b, rank));
    CHECK(unmodified(large, rank));
  });
}

TEST_CASE("small tensors of a coalesced call share a collective per element type") {
  on_ranks({2, 4}, [](World& world) {
    const Line a({5}), large({20000});
    const Tensor<double, 2, TestDevice> b({3, 4});
    a.fill_(1), large.fill_(1), b.fill_(1);
    const auto traced = [&](const auto& list) {
      CommTrace trace(world);
      (void)functional::all_reduce_coalesced(list, Sum{}, world);
      (void)functional::all_gather_coalesced(list, 0, world);
      for (const CommEvent& event : trace.events()) CHECK(contains(event.operation, "_coalesced"));
      return std::pair{trace.count(CollectiveKind::all_reduce),
                       trace.count(CollectiveKind::all_gather)};
    };
    CHECK(traced(std::vector{a, a, a}) == std::pair<index_t, index_t>(1, 1));
    CHECK(traced(std::tie(a, b)) == std::pair<index_t, index_t>(2, 2));
    CHECK(traced(std::tuple{a, b, a, b}) == std::pair<index_t, index_t>(2, 2));
    CHECK(traced(std::tuple{a, large, b, a}) == std::pair<index_t, index_t>(3, 3));
  });
}

TEST_CASE("a trace shows what a functional collective moves") {
  on_ranks({4}, [](World& world) {
    const Tensor<float, 2, TestDevice> x({8, 3});
    x.fill_(1);
    CommTrace trace(world);
    (void)functional::all_gather(x, 1, world);
    (void)functional::reduce_scatter(x, Sum{}, 0, world);
    (void)functional::all_to_all(x, 0, world);
    (void)functional::permute(x, {{0, 1}, {2, 2}}, world);
    (void)functional::broadcast(x, 3, {world, {{0, 1, 2, 3}}});
    const auto& events = trace.events();
    REQUIRE(events.size() == 5);
    CHECK(events[0].kind == CollectiveKind::all_gather);
    CHECK(events[0].bytes == 3 * 24 * 4);
    CHECK(events[1].kind == CollectiveKind::reduce_scatter);
    CHECK(events[1].bytes == 3 * 6 * 4);
    CHECK(events[2].kind == CollectiveKind::all_to_all);
    CHECK(events[2].bytes == 3 * 6 * 4);
    CHECK(events[3].kind == CollectiveKind::exchange);
    CHECK(events[3].bytes == (world.rank() == 1 ? 24 * 4 : 0));
    CHECK(events[4].kind == CollectiveKind::broadcast);
    CHECK(events[4].bytes == (world.rank() == 3 ? 0 : 24 * 4));
    CHECK(events[0].operation == "functional::all_gather");
    CHECK(events[4].operation == "functional::broadcast");
    CHECK(events[4].group == "world");
  });
}

TEST_CASE("functional collectives of a large world can be dry-run in one process") {
  const World world(dry_communicator(77, 1024));
  const Tensor<float, 2, TestDevice> x({1024, 2});
  CommTrace trace(world);
  CHECK(functional::all_gather(x, 1, world)->shape()[1] == 2048);
  CHECK(functional::reduce_scatter(x, Sum{}, 0, world)->shape()[0] == 1);
  CHECK(functional::all_to_all(x, 0, 1, world)->shape()[1] == 2048);
  const std::vector<index_t> ones(1024, 1), twos(1024, 2);
  CHECK(functional::all_to_all(x, ones, twos, 0, world)->shape()[0] == 2048);
  CHECK(trace.count() == 6);  // two precede the last: sizes, and agreement of the ranks
  CHECK(trace.events()[0].bytes == 1023 * 1024 * 2 * 4);
}
