// Failures over NCCL: errors of calls, asynchronous errors, ranks that do not take part or make
// other calls. Every rank gets an error that says what happened, and nothing blocks.
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "errors.hpp"
#include "over_nccl.hpp"

using namespace cleave;
using axes::tp;
using cleave::testing::contains;
using cleave::testing::counting;
using cleave::testing::error_of;
using cleave::testing::over_nccl;
using cleave::testing::Setting;

namespace {

/// The error of each rank; empty for a rank without an error.
class Told {
 public:
  explicit Told(int ranks) : texts_(std::size_t(ranks)) {}

  template <class F>
  void run(World& world, F f) {
    try {
      f();
    } catch (const Error& e) {
      const std::lock_guard lock(mutex_);
      texts_[std::size_t(world.rank())] = e.what();
    }
  }
  const std::string& operator[](int rank) const { return texts_[std::size_t(rank)]; }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

/// `ranks` ranks over NCCL call f(world, x), where x[S0] has the same number of elements on each.
template <class F>
void ranks_with_tensor(int ranks, const F& f) {
  over_nccl({ranks}, [&](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {ranks}, Cuda{});
    f(world, ones<float>({4 * ranks}, mesh, Shard<0>{}));
  });
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("an error of a call is an Error on every rank") {
  const Setting timeout("CLEAVE_TIMEOUT", "20");
  Told told(2);
  ranks_with_tensor(2, [&](World& world, const auto& x) {
    told.run(world, [&] {
      if (world.rank() == 1)
        nccl_stand_in::fail_call("ncclAllGather", 1, ncclSystemError, cuda::current_device());
      x.full_tensor().to(Host{});
    });
  });
  CHECK(contains(told[1], "NCCL: ncclAllGather: "));
  CHECK(contains(told[0], "rank 1 failed"));
  CHECK(contains(told[0], "ncclAllGather"));
}

TEST_CASE("an asynchronous error ends the collective on every rank") {
  const Setting timeout("CLEAVE_TIMEOUT", "20");
  Told told(3);
  const auto begin = std::chrono::steady_clock::now();
  ranks_with_tensor(3, [&](World& world, const auto& x) {
    if (world.rank() == 0) nccl_stand_in::fail_operation(2, 1, ncclRemoteError);
    world.barrier();
    told.run(world, [&] { x.full_tensor().to(Host{}); });
  });
  for (int r = 0; r < 3; ++r) {
    CAPTURE(told[r]);
    CHECK(contains(told[r], r == 2 ? "NCCL: " : "rank 2 failed"));
    CHECK(contains(told[r], "full_tensor"));
  }
  CHECK(seconds_since(begin) < 15);
}

TEST_CASE("a missing rank is named at the time-out") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  Told told(3);
  const auto begin = std::chrono::steady_clock::now();
  ranks_with_tensor(3, [&](World& world, const auto& x) {
    world.communicator().state().check = CheckLevel::local;
    if (world.rank() == 1) {  // stalls, then goes on
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    }
    told.run(world, [&] {
      x.full_tensor().to(Host{});
      // a late rank may still receive what the others had sent, but only once
      if (world.rank() == 1) x.full_tensor().to(Host{});
    });
  });
  CAPTURE(told[0]);
  CAPTURE(told[1]);
  CAPTURE(told[2]);
  for (int r = 0; r < 3; ++r) {
    CHECK(contains(told[r], "full_tensor"));
    CHECK(contains(told[r], "rank 1 did not reach "));
  }
  CHECK(seconds_since(begin) < 15);
}

/// Two ranks that have communicated on both of their streams call f(rank, x), with x[S0], keep its
/// result, and wait until they get an error.
template <class F>
void wait_for_failure(Told& told, const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  ranks_with_tensor(2, [&](World& world, const auto& x) {
    world.communicator().state().check = CheckLevel::local;
    static_cast<void>(x.redistribute_async(Replicate{}).wait());  // creates groups and streams
    x.full_tensor().to(Host{});
    told.run(world, [&] {
      [[maybe_unused]] const auto kept = f(world.rank(), x);
      while (seconds_since(begin) < 10) cuda::current_stream().synchronize();
    });
  });
  CHECK(seconds_since(begin) < 10);
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("a rank that skips a collective of the side stream is named despite others on the main") {
  const Setting timeout("CLEAVE_TIMEOUT", "2");
  Told told(2);
  wait_for_failure(told, [](int rank, const auto& x) {
    x.full_tensor();
    std::optional<decltype(x.redistribute_async(Replicate{}))> beside;
    if (rank == 0) beside = x.redistribute_async(Replicate{});
    x.full_tensor().to(Host{});  // completes
    return beside;
  });
  CAPTURE(told[0]);
  CHECK(contains(told[0], "rank 1 did not reach "));
  CHECK(contains(told[1], "rank 0 failed"));
}

TEST_CASE("collectives that hang on several communicators are aborted together") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  Told told(2);
  wait_for_failure(told, [](int rank, const auto& x) {
    if (rank == 1) return 0;
    const auto beside = x.redistribute_async(Replicate{});
    x.full_tensor().to(Host{});
    return 1;
  });
  CAPTURE(told[0]);
  CHECK(contains(told[0], "rank 1 did not reach "));
  CHECK(contains(told[1], "rank 0 failed"));
}

TEST_CASE("a communicator whose initialisation times out is aborted, whatever else hangs") {
  const Setting timeout("CLEAVE_TIMEOUT", "2");
  Told told(3);
  const auto begin = std::chrono::steady_clock::now();
  ranks_with_tensor(3, [&](World& world, const auto& x) {
    world.communicator().state().check = CheckLevel::local;
    x.full_tensor().to(Host{});
    if (world.rank() == 0) x.full_tensor();  // hangs: aborting the other communicator waits for it
    world.barrier();
    nccl_stand_in::hold_call("ncclCommInitRank");
    told.run(world, [&] {
      if (world.rank() < 2) {
        constexpr std::array<int, 2> ranks{0, 1};
        x.mesh().communicator().subgroup(ranks, "two");
      }
      while (seconds_since(begin) < 10) cuda::current_stream().synchronize();
    });
  });
  for (int r = 0; r < 3; ++r) CHECK(!told[r].empty());
  CHECK(seconds_since(begin) < 15);
  CHECK(nccl_stand_in::live_communicators() == 0);
  CHECK(cuda_stand_in::take_faults() == "");
}

TEST_CASE("a call that runs out of memory fails alone") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = distribute_tensor(counting(1024, 1024), mesh, Shard<1>{});
    const auto gather = [&] { return x.redistribute(Replicate{}).to_local().to(Host{}); };
    const auto set_memory = [&](std::size_t bytes) {
      cuda::release_idle();
      world.barrier();
      if (world.rank() == 0) cuda_stand_in::set_memory(bytes);
      world.barrier();
    };
    set_memory(1 << 20);  // less than a rank already holds
    CHECK(contains(error_of(gather), "out of device memory"));
    set_memory(0);
    const auto values = gather();
    for (const index_t i : {0, 1023}) CHECK(values(i, 1023) == float(1024 * i + 1023));
  });
}

TEST_CASE("a graph that is not launched by all ranks ends at the time-out") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  Told told(2);
  const auto begin = std::chrono::steady_clock::now();
  ranks_with_tensor(2, [&](World& world, const auto& x) {
    const Tensor<float, 1, Cuda> all({8});
    const cuda::Graph graph([&] { all.copy_(x.full_tensor()); });
    told.run(world, [&] {
      if (world.rank() == 0) graph.launch();
      while (seconds_since(begin) < 10) cuda::current_stream().synchronize();
    });
    CHECK_THROWS_AS(graph.launch(), Error);
  });
  const std::string text =
      "cuda::Graph::launch: a collective of the graph did not end within 1 s [rank 0]";
  CHECK(told[0] == text);
  CHECK(contains(told[1],
                 "rank 0 failed: cuda::Graph::launch: a collective of the graph did not end"));
  CHECK(seconds_since(begin) < 15);
  CHECK(cuda_stand_in::take_faults() == "");  // such as an abort that the graph's owner waits for
}

TEST_CASE("ranks that make different calls get an error instead of hanging") {
  const Setting timeout("CLEAVE_TIMEOUT", "20");
  const Setting check("CLEAVE_CHECK", "collective");
  Told told(2);
  ranks_with_tensor(2, [&](World& world, const auto& x) {
    told.run(world, [&] {
      if (world.rank() == 0) x.full_tensor().to(Host{});
      else sum(x).redistribute(Replicate{}).to_local().to(Host{});
    });
  });
  for (int r = 0; r < 2; ++r) {
    CAPTURE(told[r]);
    CHECK(contains(told[r], "disagree"));
    CHECK(contains(told[r], "all_gather"));
    CHECK(contains(told[r], "all_reduce"));
  }
}

TEST_CASE("without that check, two collectives that one rank swaps end in errors, not silently") {
  const Setting timeout("CLEAVE_TIMEOUT", "3");
  Told told(2);
  ranks_with_tensor(2, [&](World& world, const auto& x) {
    world.communicator().state().check = CheckLevel::local;
    const auto group = functional::Group(x.mesh());
    const Tensor<float, 1, Cuda> y({6});
    y.fill_(1);
    told.run(world, [&] {
      for (int i = 0; i < 2; ++i) {
        if (i == world.rank()) x.full_tensor();
        else static_cast<void>(functional::all_reduce(y, Sum{}, group).wait());
      }
      cuda::current_stream().synchronize();
      x.full_tensor().to(Host{});
    });
  });
  CHECK(!told[0].empty());
  CHECK(!told[1].empty());
  static_cast<void>(cuda_stand_in::take_faults());
}

TEST_CASE("closing a communicator whose peer has left does not block") {
  const Setting timeout("CLEAVE_TIMEOUT", "1");
  const auto begin = std::chrono::steady_clock::now();
  Told told(2);
  over_nccl({2}, [&](World& world) {
    world.communicator().state().check = CheckLevel::local;
    told.run(world, [&] {
      const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
      const auto x = ones<float>({8}, mesh, Shard<0>{});
      if (world.rank() == 0) x.full_tensor();  // enqueued; no host thread waits for it
    });
  });
  CHECK(seconds_since(begin) < 20);
  CHECK(nccl_stand_in::live_communicators() == 0);
  static_cast<void>(cuda_stand_in::take_faults());
}

TEST_CASE("a library that is older than the header is refused") {
  Told told(1);
  over_nccl({1}, [&](World& world) {
    nccl_stand_in::set_version(NCCL_VERSION_CODE - 1);
    told.run(world, [&] { init_device_mesh<tp>(world, {1}, Cuda{}); });
  });
  CHECK(contains(told[0], "was compiled for NCCL " + std::to_string(NCCL_VERSION_CODE)));
}

TEST_CASE("two ranks on one GPU are refused with NCCL's message") {
  const Setting timeout("CLEAVE_TIMEOUT", "5");
  const Setting path("CLEAVE_CUDA_COMM", "nccl");
  nccl_stand_in::reset();
  cuda_stand_in::set_devices(1);
  Told told(2);
  on_ranks({2}, [&](World& world) {
    told.run(world, [&] { init_device_mesh<tp>(world, {2}, Cuda{}); });
  });
  for (int r = 0; r < 2; ++r) CHECK(contains(told[r], "NCCL: ncclCommInitRank: "));
  CHECK(nccl_stand_in::live_communicators() == 0);
}
