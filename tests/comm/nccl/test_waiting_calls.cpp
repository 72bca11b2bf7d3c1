// NCCL calls that block: on peers that do not take part, on graphs, on a busy driver. The failure
// detector ends them, or proceeds without them.
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_memory.hpp"
#include "errors.hpp"
#include "over_nccl.hpp"

using namespace cleave;
using axes::dp;
using axes::tp;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::over_nccl;
using cleave::testing::Setting;

namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The errors of two ranks that run f(world) without collective checks.
template <class F>
std::array<std::string, 2> errors_of_two(const F& f) {
  std::array<std::string, 2> errors;
  over_nccl({2}, [&](World& world) {
    world.communicator().state().check = CheckLevel::local;
    errors[std::size_t(world.rank())] = error_of([&] { f(world); });
  });
  return errors;
}

Collective all_reduce(const Tensor<float, 1, Cuda>& x, const Tensor<float, 1, Cuda>& sum) {
  Collective c;
  c.kind = CollectiveKind::all_reduce;
  c.source = x.view();
  c.destination = sum.view();
  c.global_count = x.size();
  return c;
}

}  // namespace

TEST_CASE("a collective that waits on the host for its peers ends at the time-out") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  const Stopwatch watch;
  const auto errors = errors_of_two([](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = ones<float>({8}, mesh, Shard<0>{});
    nccl_stand_in::set_connect_on_use(true);
    world.barrier();
    if (world.rank() == 0) x.full_tensor();
    while (true) cuda::current_stream().synchronize();
  });
  CHECK(contains(errors[0], "rank 1 did not reach "));
  CHECK(contains(errors[1], "rank 0 failed"));
  CHECK(watch.seconds() < 10);
  CHECK(nccl_stand_in::live_communicators() == 0);
  CHECK(cuda_stand_in::take_faults() == "");  // no memory was freed under the blocked call
}

TEST_CASE("a collective that hangs with all ranks present reports a possible reason") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  const auto errors = errors_of_two([](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = ones<float>({8}, mesh, Shard<0>{});
    nccl_stand_in::hold_call("ncclAllGather");
    x.full_tensor().to(Host{});
  });
  CHECK(contains(errors[0] + errors[1],
                 "although all ranks have reached it; threads with one GPU each may"));
  CHECK(contains(errors[0] + errors[1], "start one process per GPU"));
}

TEST_CASE("a split that hangs is aborted with its parent") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  const Stopwatch watch;
  const auto errors = errors_of_two([](World& world) {
    init_device_mesh<tp>(world, {2}, Cuda{});
    world.barrier();
    nccl_stand_in::hold_call("ncclCommSplit");
    init_device_mesh<dp, tp>(world, {1, 2}, Cuda{});
  });
  for (const std::string& error : errors)
    CHECK((contains(error, "ncclCommSplit did not end within 1 s") || contains(error, "failed")));
  CHECK(contains(errors[0] + errors[1], "ncclCommSplit did not end within 1 s"));
  CHECK(watch.seconds() < 10);
  CHECK(nccl_stand_in::live_communicators() == 0);
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("the time-out works although the driver does not respond") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  const Stopwatch watch;
  const auto errors = errors_of_two([&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = ones<float>({8}, mesh, Shard<0>{});
    x.full_tensor().to(Host{});
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // its completion has been noticed
    world.barrier();
    cuda_stand_in::hold_call("cudaEventQuery");
    const std::string error = error_of([&] {
      if (world.rank() == 0) x.full_tensor();
      while (watch.seconds() < 20) cuda::current_stream().synchronize();
    });
    cuda_stand_in::hold_call("");
    throw std::runtime_error(error);
  });
  CHECK(contains(errors[0], "rank 1 did not reach "));
  CHECK(contains(errors[1], "rank 0 failed"));
  CHECK(watch.seconds() < 10);
}

TEST_CASE("a call that blocks in the user's communicator does not delay errors on other ranks") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  const Stopwatch watch;
  std::array<ncclComm_t, 2> comms{};
  const auto errors = errors_of_two([&](World& world) {
    ncclUniqueId id{};
    if (world.rank() == 0) CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    detail::Unobserved::run(world.communicator(),
                            detail::broadcast_call(detail::bytes_of(id), "test"));
    ncclComm_t& comm = comms[std::size_t(world.rank())];
    CHECK(ncclCommInitRank(&comm, 2, id, world.rank()) == ncclSuccess);
    const auto group = nccl_communicator(comm, world.shared_communicator());
    const auto mesh = init_device_mesh<tp>(group, {2}, Cuda{});
    const auto x = ones<float>({8}, mesh, Shard<0>{});
    nccl_stand_in::set_connect_on_use(true);
    world.barrier();
    if (world.rank() == 0) x.full_tensor();
    const std::string error = error_of([&] {
      while (watch.seconds() < 20) cuda::current_stream().synchronize();
    });
    if (world.rank() == 1)  // the communicator's owner aborts the blocked call
      for (const ncclComm_t one : comms) {
        ncclGroupStart();
        ncclCommAbort(one);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        ncclGroupEnd();
      }
    throw std::runtime_error(error);
  });
  CHECK(contains(errors[0], "rank 1 did not reach "));
  CHECK(contains(errors[1], "rank 0 failed"));
  CHECK(watch.seconds() < 10);
}

TEST_CASE("a non-blocking communicator is refused with an error that says so") {
  over_nccl({1}, [](World& world) {
    ncclUniqueId id{};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    CHECK(ncclGetUniqueId(&id) == ncclSuccess);
    CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, &config) == ncclInProgress);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
    const Tensor<float, 1, Cuda> x({8}), sum({8});
    x.fill_(3);
    const auto group = nccl_communicator(comm, world.shared_communicator());
    CHECK(contains(error_of([&] { group->run(all_reduce(x, sum)); }),
                   "the communicator must be blocking"));
    CHECK(ncclCommAbort(comm) == ncclSuccess);
  });
}

TEST_CASE("a communicator is destroyed at once while a graph with its collectives is kept") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    constexpr std::array<int, 2> ranks{0, 1};
    const Tensor<float, 1, Cuda> x({8}), sum({8});
    x.fill_(3);
    auto group = mesh.communicator().subgroup(ranks, "pair");
    std::optional<cuda::Graph> graph(std::in_place, [&] { group->run(all_reduce(x, sum)); });
    graph->launch();
    CHECK(sum.to(Host{})(7) == 6);
    const Stopwatch watch;
    group.reset();
    CHECK(watch.seconds() < 5);
    graph.reset();
  });
  CHECK(nccl_stand_in::live_communicators() == 0);
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("memory that a graph has used for communication is freed with the graph") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = distribute_tensor(cleave::testing::counting(64, 64), mesh, Shard<1>{});
    const Tensor<float, 2, Cuda> whole({64, 64});
    const auto step = [&] { whole.copy_(x.redistribute(Replicate{}).to_local()); };
    step();
    std::uint64_t before = 0;
    for (int i = 0; i < 8; ++i) {
      const cuda::Graph graph(step);
      graph.launch();
      if (i == 1) before = cleave::testing::in_use();
    }
    CHECK(cleave::testing::in_use() <= before);
  });
}
