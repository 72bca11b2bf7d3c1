// Asynchronous redistributions, and the reuse of storage that nobody else needs.
#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ranks.hpp"

using namespace cleave;

namespace {

struct dp : axis {};
struct tp : axis {};

Tensor<double, 2> table(index_t rows, index_t columns, double scale) {
  Tensor<double, 2> result({rows, columns});
  for (index_t i = 0; i < rows * columns; ++i) result.data()[i] = scale * double(i);
  return result;
}

bool is_table(const Tensor<double, 2>& tensor, double scale) {
  for (index_t i = 0; i < tensor.extent(0); ++i)
    for (index_t j = 0; j < tensor.extent(1); ++j)
      if (tensor(i, j) != scale * double(i * tensor.extent(1) + j)) return false;
  return true;
}

}  // namespace

TEST_CASE("asynchronous redistributions are waited for at first use, in any order") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = from_local(table(9, 5, 1), mesh, Replicate{}).redistribute(Shard<0>{});
    const auto y = from_local(table(4, 8, 2), mesh, Replicate{}).redistribute(Shard<1>{});
    const auto gathered = x.redistribute_async(Replicate{});
    const auto moved = y.redistribute_async(Shard<0>{});
    // meanwhile the rank communicates on its own
    CHECK(is_table(y.full_tensor(), 2));
    CHECK(is_table(moved->full_tensor(), 2));
    CHECK(is_table(gathered.wait().local(), 1));
    CHECK(gathered.ready());
  });
}

TEST_CASE("a dropped or replaced asynchronous result leaves nothing pending") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    const auto x = from_local(table(6, 6, 1), mesh, Replicate{}).redistribute(Shard<0>{});
    for (int i = 0; i < 50; ++i) (void)x.redistribute_async(Shard<1>{});
    auto last = x.redistribute_async(Replicate{});
    last = x.redistribute_async(Replicate{});
    const DTensor<double, 2, std::remove_cvref_t<decltype(mesh)>, Placements<Replicate>>& whole =
        last;
    CHECK(is_table(whole.local(), 1));
  });
}

TEST_CASE("work of the rank goes on while a redistribution waits for a peer") {
  on_ranks({2}, [](World& world) {
    if (!world.communicator().concurrent()) return skip("the backend allows one thread");
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto x = from_local(table(4, 4, 1), mesh, Replicate{}).redistribute(Shard<0>{});
    (void)x.redistribute_async(Replicate{}).wait();
    if (world.rank() == 0) {
      // rank 1 does not start its part before rank 0 has sent it something by other means
      const auto pending = x.redistribute_async(Replicate{});
      CHECK(!pending.ready());
      world.barrier();
      CHECK(is_table(pending->local(), 1));
    } else {
      world.barrier();
      CHECK(is_table(x.redistribute_async(Replicate{})->local(), 1));
    }
  });
}

TEST_CASE("what an asynchronous redistribution throws is thrown where it is waited for") {
  on_ranks({1}, [](World& world) {
    const auto failing = start_async(Host{}, world.communicator(), []() -> int {
      throw Error("test", "the work failed");
    });
    CHECK_THROWS_WITH_AS((void)failing.wait(), "test: the work failed", Error);
    CHECK_THROWS_AS((void)failing.wait(), Error);
  });
}

TEST_CASE("a trace sees asynchronous collectives") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const auto x = from_local(table(4, 4, 1), mesh, Replicate{}).redistribute(Shard<0>{});
    CommTrace trace(world);
    (void)x.redistribute_async(Replicate{}).wait();
    CHECK(trace.count(CollectiveKind::all_gather) == 1);
    CHECK(trace.received_bytes() == 2 * 4 * 8);
  });
}

TEST_CASE("an rvalue gives its storage to the result of an all-reduce, an lvalue keeps it") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()});
    auto x = from_local(table(3, 3, 1), mesh, Partial<Sum>{});
    const double* storage = x.local().data();
    const auto kept = x.redistribute(Replicate{});
    CHECK(kept.local().data() != storage);
    CHECK(is_table(x.local(), 1));
    const auto given = std::move(x).redistribute(Replicate{});
    CHECK(given.local().data() == storage);
    CHECK(is_table(given.local(), world.size()));
    CHECK(is_table(kept.local(), world.size()));
  });
}

TEST_CASE("storage that somebody else holds is never reused") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2});
    const Tensor<double, 2> mine = table(3, 3, 1);
    CHECK(is_table(from_local(mine, mesh, Partial<Sum>{}).redistribute(Replicate{}).local(), 2));
    CHECK(is_table(mine, 1));
    std::vector<double> buffer(9, 1.0);
    const auto adopted = Tensor<double, 2>::adopt(buffer.data(), {3, 3});
    CHECK(from_local(adopted, mesh, Partial<Sum>{}).redistribute(Replicate{}).local()(2, 2) == 2);
    CHECK(buffer[8] == 1);
  });
}
