// Communicators taken from the user or given to the user; settings of NCCL.
#include <array>
#include <complex>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_calls.hpp"
#include "cuda_stand_in/machine.hpp"
#include "over_nccl.hpp"

using namespace cleave;
using axes::dp;
using axes::tp;
using cleave::testing::calls_of;
using cleave::testing::over_nccl;

TEST_CASE("a mesh is made of the user's communicator, and gives its own back") {
  over_nccl({2}, [](World& world) {
    const auto first = init_device_mesh<tp>(world, {2}, Cuda{});
    const ncclComm_t theirs = nccl_handle(first.communicator());
    {
      const auto group = nccl_communicator(theirs, world.shared_communicator());
      const auto mesh = init_device_mesh<tp>(group, {2}, Cuda{});
      CHECK(nccl_handle(mesh.communicator()) == theirs);
      const auto x = ones<float>({6}, mesh, Shard<0>{});
      CHECK(sum(x).redistribute(Replicate{}).to_local().item() == 6);
    }
    // the communicator still belongs to its owner
    const auto x = ones<float>({6}, first, Shard<0>{});
    CHECK(x.full_tensor().to(Host{})(5) == 1);
  });
}

TEST_CASE("the group of an axis is made with the mesh, once") {
  over_nccl({4}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2}, Cuda{});
    const std::string name = nccl_stand_in::name_of(nccl_handle(mesh.group(tp{})));
    CHECK(name.starts_with("world/split"));
    CHECK(nccl_stand_in::name_of(nccl_handle(mesh.group(dp{}))) != name);
    CHECK(nccl_handle(mesh[tp{}].communicator()) == nccl_handle(mesh.group(tp{})));
  });
}

TEST_CASE("a communicator is split when its own work has ended") {
  over_nccl({8}, [](World& world) {
    const auto mesh = init_device_mesh<dp, tp, axes::pp>(world, {2, 2, 2}, Cuda{});
    const auto x = ones<float>({8, 3}, mesh, Shard<0>{}, Shard<0>{}, Shard<0>{});
    const auto y = ones<float>({4, 3}, mesh, Shard<0>{}, Shard<0>{}, Replicate{});
    const auto all = x.full_tensor();   // over all ranks
    const auto some = y.full_tensor();  // over those of dp and tp: made now
    CHECK(all.to(Host{})(7, 2) == 1);
    CHECK(some.to(Host{})(3, 2) == 1);
  });
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("staging memory is pinned before ranks wait for each other") {
  over_nccl({1}, [](World& world) {
    std::vector<std::shared_ptr<void>> held;  // all memory pinned so far
    while (held.size() < cuda::PinnedPool::max_free) held.push_back(cuda::PinnedPool::get().take());
    const cuda_stand_in::Recording making;
    const auto mesh = init_device_mesh<tp>(world, {1}, Cuda{});
    CHECK(calls_of(making, "cudaHostAlloc") == 2);
    const cuda_stand_in::Recording copying;
    const Tensor<float, 1, Cuda> x({3 << 20});
    x.fill_(4);
    CHECK(x.to(Host{})(1) == 4);
    CHECK(calls_of(copying, "cudaHostAlloc") == 0);
  });
}

TEST_CASE("NCCL finds the memory that no tensor uses free") {
  over_nccl({2}, [](World& world) {
    const auto free = [] {
      std::size_t bytes = 0, total = 0;
      CHECK(cudaMemGetInfo(&bytes, &total) == cudaSuccess);
      return bytes;
    };
    cuda::release_idle();
    const std::size_t before = free();
    Tensor<float, 1, Cuda>({1 << 20}).fill_(1);
    cuda::current_stream().synchronize();
    CHECK(free() < before);
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    CHECK(free() == before);
  });
}

TEST_CASE("communicators of one device are ordered, and close when their work has ended") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const Tensor<float, 1, Cuda> t({6});
    t.fill_(1);
    static_cast<void>(functional::all_reduce(t, Sum{}, functional::Group(mesh)).wait());
    const char* const order = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    CHECK(std::string(order == nullptr ? "" : order) == "1");
  });
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("ranks that communicate by NCCL have no access to each other's tensors") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    ones<float>({6}, mesh, Shard<0>{}).full_tensor().to(Host{});
    auto& machine = cuda_stand_in::Machine::get();
    const auto lock = machine.lock();
    const auto other = std::size_t(1 - world.rank());
    for (const auto& pool : machine.device(world.rank()).pools) CHECK(!pool.readers[other]);
  });
}

TEST_CASE("groups that do not use NCCL have no NCCL handle") {
  on_ranks({1}, [](World& world) {
    CHECK_THROWS_WITH_AS(
        nccl_handle(world.communicator()),
        "nccl_handle: group 'world' communicates by 'thread', not by NCCL [rank 0]", Error);
  });
}

TEST_CASE("NCCL registers no buffer unless the environment asks for it") {
  over_nccl({2, 3}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, Cuda{});
    // messages are packed on one side only, on both, or on none; extents leave short shards
    const auto x = ones<float>({7, 5}, mesh, Shard<0>{});
    const auto turned = x.redistribute(Shard<1>{}).redistribute(Shard<0>{});
    const auto y = ones<float>({6, 6}, mesh, Shard<1>{});
    CHECK(turned.full_tensor().to(Host{})(6, 4) == 1);
    CHECK(y.redistribute(Shard<0>{}).full_tensor().to(Host{})(5, 5) == 1);
    for (const char* const name : {"NCCL_LOCAL_REGISTER", "NCCL_GRAPH_REGISTER"}) {
      const char* const value = std::getenv(name);
      CHECK(std::string(value == nullptr ? "" : value) == "0");
    }
  });
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("reductions that NCCL lacks are computed by cleave") {
  over_nccl({3}, [](World& world) {
    using Number = std::complex<double>;
    const auto mesh = init_device_mesh<tp>(world, {3}, Cuda{});
    const auto group = functional::Group(mesh);
    Tensor<Number, 1> mine({6});
    for (index_t i = 0; i < 6; ++i) mine(i) = Number(double(i), world.rank() + 1);
    const auto all = functional::all_reduce(mine.to(Cuda{}), Product{}, group).wait().to(Host{});
    const auto part =
        functional::reduce_scatter(mine.to(Cuda{}), Product{}, 0, group).wait().to(Host{});
    for (index_t i = 0; i < 6; ++i) {
      Number wanted(1);
      for (int r = 0; r < 3; ++r) wanted *= Number(double(i), r + 1);
      CHECK(std::abs(all(i) - wanted) <= 1e-12 * std::abs(wanted));
      if (i / 2 == world.rank()) CHECK(std::abs(part(i % 2) - wanted) <= 1e-12 * std::abs(wanted));
    }
    Tensor<bool, 1> flags({3});
    for (index_t i = 0; i < 3; ++i) flags(i) = i <= world.rank();
    const auto any = functional::all_reduce(flags.to(Cuda{}), Sum{}, group).wait().to(Host{});
    const auto every = functional::all_reduce(flags.to(Cuda{}), Product{}, group).wait().to(Host{});
    for (index_t i = 0; i < 3; ++i) {
      CHECK(any(i));
      CHECK(every(i) == (i == 0));
    }
  });
}
