// Asynchronous redistribution, and reuse of storage without other owners.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/comm/trace.hpp>
#include <cleave/dtensor/distribute.hpp>
#include <cleave/dtensor/factories.hpp>
#include <cleave/dtensor/redistribute_all.hpp>

#include "ranks.hpp"
#include "table.hpp"

using namespace cleave;
using namespace cleave::axes;
using cleave::testing::is_table;
using cleave::testing::table;

TEST_CASE("asynchronous redistributions are waited for at first use, in any order") {
  on_ranks({1, 2, 3, 4, 7}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = from_local(table<double>(9, 5), mesh, Replicate{}).redistribute(Shard<0>{});
    const auto y = from_local(table(4, 8, 2.0), mesh, Replicate{}).redistribute(Shard<1>{});
    const auto gathered = x.redistribute_async(Replicate{});
    const auto moved = y.redistribute_async(Placements<Shard<0>>{});
    // meanwhile the rank itself communicates
    CHECK(is_table(y.full_tensor(), 4, 8, 2.0));
    CHECK(is_table(moved->full_tensor(), 4, 8, 2.0));
    CHECK(is_table(gathered.wait().to_local(), 9, 5));
    CHECK(gathered.ready());
  });
}

TEST_CASE("wait returns the value, that of a temporary by value") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto x = from_local(table<double>(4, 4), mesh, Replicate{}).redistribute(Shard<0>{});
    const auto whole = x.redistribute_async(Replicate{});
    CHECK(&whole.wait() == &*whole);
    const auto copy = x.redistribute_async(Replicate{}).wait();
    CHECK(is_table(copy.to_local(), 4, 4));
  });
}

TEST_CASE("a dropped or replaced asynchronous result leaves nothing pending") {
  on_ranks({2, 4}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = from_local(table<double>(6, 6), mesh, Replicate{}).redistribute(Shard<0>{});
    for (int i = 0; i < 50; ++i) (void)x.redistribute_async(Shard<1>{});
    auto last = x.redistribute_async(Replicate{});
    last = x.redistribute_async(Replicate{});
    const DTensor<double, 2, std::remove_cvref_t<decltype(mesh)>, Placements<Replicate>>& whole =
        last;
    CHECK(is_table(whole.to_local(), 6, 6));
  });
}

TEST_CASE("work of the rank goes on while a redistribution waits for a peer") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    if (!mesh.communicator().concurrent()) return skip("the backend allows one thread");
    const auto x = from_local(table<double>(4, 4), mesh, Replicate{}).redistribute(Shard<0>{});
    (void)x.redistribute_async(Replicate{}).wait();
    if (world.rank() == 0) {
      // rank 1 starts its part only after rank 0 has sent it something by other means
      const auto pending = x.redistribute_async(Replicate{});
      CHECK(!pending.ready());
      world.barrier();
      CHECK(is_table(pending->to_local(), 4, 4));
    } else {
      world.barrier();
      CHECK(is_table(x.redistribute_async(Replicate{})->to_local(), 4, 4));
    }
  });
}

TEST_CASE("an exception of an asynchronous redistribution is thrown by the wait for it") {
  on_ranks({1}, [](World& world) {
    const auto failing = start_async(TestDevice{}, world.communicator(),
                                     []() -> int { throw Error("test", "the work failed"); });
    CHECK_THROWS_WITH_AS((void)failing.wait(), "test: the work failed", Error);
    CHECK_THROWS_AS((void)failing.wait(), Error);
  });
}

TEST_CASE("a trace sees asynchronous collectives") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto x = from_local(table<double>(4, 4), mesh, Replicate{}).redistribute(Shard<0>{});
    CommTrace trace(world);
    (void)x.redistribute_async(Replicate{}).wait();
    CHECK(trace.count(CollectiveKind::all_gather) == 1);
    CHECK(trace.received_bytes() == 2 * 4 * 8);
  });
}

TEST_CASE("an rvalue gives its storage to the result of an all-reduce, an lvalue keeps it") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    auto x = from_local(table<double>(3, 3), mesh, Partial<Sum>{});
    const double* storage = x.to_local().data();
    const auto kept = x.redistribute(Replicate{});
    CHECK(kept.to_local().data() != storage);
    CHECK(is_table(x.to_local(), 3, 3));
    const auto given = std::move(x).redistribute(Replicate{});
    CHECK(given.to_local().data() == storage);
    CHECK(is_table(given.to_local(), 3, 3, double(world.size())));
    CHECK(is_table(kept.to_local(), 3, 3, double(world.size())));
  });
}

TEST_CASE("storage that has another owner is never reused") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto mine = table<double>(3, 3);
    CHECK(is_table(from_local(mine, mesh, Partial<Sum>{}).redistribute(Replicate{}).to_local(), 3,
                   3, 2.0));
    CHECK(is_table(mine, 3, 3));
    const auto buffer = table<double>(3, 3);
    const auto adopted = Tensor<double, 2, TestDevice>::adopt(buffer.data(), {3, 3});
    CHECK(is_table(from_local(adopted, mesh, Partial<Sum>{}).redistribute(Replicate{}).to_local(),
                   3, 3, 2.0));
    CHECK(is_table(buffer, 3, 3));
  });
}

TEST_CASE("an adopted buffer is never written to, whatever its owner") {
  on_ranks({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, TestDevice{});
    const auto buffer = table<double>(3, 3);
    auto x =
        from_local(Tensor<double, 2, TestDevice>::adopt(
                       buffer.data(), {3, 3}, std::shared_ptr<void>(buffer.data(), [](void*) {})),
                   mesh, Partial<Sum>{});
    CHECK(is_table(std::move(x).redistribute(Replicate{}).to_local(), 3, 3, 2.0));
    CHECK(is_table(buffer, 3, 3));
  });
}

TEST_CASE("rows that share memory are reduced once") {
  on_ranks({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    auto row = table<double>(1, 256);
    auto rows = Tensor<double, 2, TestDevice>::adopt(row.data(), {64, 256}, {0, 1}, row.storage());
    row = {};
    auto x = from_local(std::move(rows), mesh, Partial<Sum>{});
    const auto y = std::move(x).redistribute(Replicate{}).to_local().to(Host{});
    index_t wrong = 0;
    for (index_t i = 0; i < 64; ++i)
      for (index_t j = 0; j < 256; ++j) wrong += y(i, j) != double(world.size() * (j % 50));
    CHECK(wrong == 0);
  });
}

TEST_CASE("writing to a result leaves the source alone, on all ranks") {
  on_ranks({1, 2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, TestDevice{});
    const auto x = from_local(table<double>(1, 4), mesh, Replicate{});
    x.redistribute(Shard<0>{}).to_local().fill_(7);  // all elements are on the first rank
    CHECK(is_table(x.to_local(), 1, 4));
    std::get<0>(redistribute_all(to(x, Shard<0>{}))).to_local().fill_(7);
    CHECK(is_table(x.to_local(), 1, 4));
    x.redistribute_async(Shard<0>{})->to_local().fill_(7);
    CHECK(is_table(x.to_local(), 1, 4));
  });
}

TEST_CASE("ranks outside of a mesh have nothing to wait for") {
  on_ranks({3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, std::vector<int>{0, 1}, TestDevice{});
    const auto x = from_local(table<double>(3, 3), mesh, Partial<Sum>{});
    const auto y = x.redistribute_async(Replicate{});
    CHECK(y->to_local().size() == (mesh.is_member() ? 9 : 0));
  });
}
