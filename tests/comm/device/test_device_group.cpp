// How device memory is communicated between ranks, and the state that each path leaves behind. On
// the stand-in, whose devices can be made unable to access each other.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include <cleave/comm/device/device_group.hpp>
#include <cleave/comm/device/device_group_body.hpp>
#include <cleave/comm/trace.hpp>
#include <cleave/tensor/cuda/cuda_graph.hpp>
#include <cleave/tensor/cuda/transfer.hpp>
#include <cleave/tensor/tensor.hpp>

#include "cuda_calls.hpp"
#include "cuda_memory.hpp"
#include "cuda_stand_in/stand_in.hpp"
#include "errors.hpp"
#include "ranks.hpp"
#include "setting.hpp"

using namespace cleave;
using cleave::testing::calls_of;
using cleave::testing::contains;
using cleave::testing::error_of;
using cleave::testing::in_use;

namespace {

using Line = Tensor<float, 1, Cuda>;

#if defined(CLEAVE_HAS_NCCL)
const std::string between_gpus = "nccl";
#else
const std::string between_gpus = "staged";
#endif

/// Devices, whether they can access each other, and a value of CLEAVE_CUDA_COMM, for the duration
/// of a scope.
class Machine {
 public:
  Machine(int devices, bool peers, const char* path) : path_("CLEAVE_CUDA_COMM", path) {
    cuda_stand_in::set_devices(devices);
    cuda_stand_in::set_peer_access(peers);
  }
  Machine(const Machine&) = delete;  // there is one machine
  Machine& operator=(const Machine&) = delete;
  ~Machine() {
    cuda_stand_in::set_devices(1);
    cuda_stand_in::set_peer_access(true);
  }

 private:
  cleave::testing::Setting path_;
};

Collective sum_of(const Line& x, const Line& result) {
  Collective c;
  c.kind = CollectiveKind::all_reduce;
  c.op = ReduceOp::sum;
  c.source = x.view();
  c.destination = result.view();
  c.operation = "test";
  return c;
}

/// CHECKs that the ranks of the group sum numbers correctly.
void adds_up(Communicator& group) {
  const Line x({8}), result({8});
  x.fill_(float(group.rank() + 1));
  group.run(sum_of(x, result));
  CHECK(result.to(Host{})(7) == float(group.size() * (group.size() + 1)) / 2);
}

/// The name of the backend for the world's device memory.
std::string backend_of(World& world) {
  return communicator_on(Cuda{}, world.communicator()).backend();
}

}  // namespace

TEST_CASE("threads whose devices have peer access read each other's memory") {
  const Machine machine(2, true, "auto");
  on_ranks({2}, [](World& world) {
    CHECK(backend_of(world) == "device_thread");
    // peer access also covers memory that is in no pool
    const int other = 1 - cuda::current_device();
    CHECK(cudaDeviceEnablePeerAccess(other, 0) == cudaErrorPeerAccessAlreadyEnabled);
    static_cast<void>(cudaGetLastError());
    adds_up(communicator_on(Cuda{}, world.communicator()));
    CHECK(cudaGetLastError() == cudaSuccess);
  });
}

TEST_CASE("a trace does not show the internal path of a collective") {
  const Machine machine(2, true, "auto");
  on_ranks({2}, [](World& world) {
    const CommTrace trace(world);
    adds_up(communicator_on(Cuda{}, world.communicator()));
    CHECK(trace.events().size() == 1);
  });
}

TEST_CASE("threads whose devices lack peer access use another path") {
  const Machine machine(2, false, "auto");
  on_ranks({2}, [](World& world) {
    CHECK(backend_of(world) == between_gpus);
    adds_up(communicator_on(Cuda{}, world.communicator()));
  });
  on_ranks({3}, [](World& world) {  // two ranks share a device
    CHECK(backend_of(world) == "staged");
    adds_up(communicator_on(Cuda{}, world.communicator()));
  });
  on_ranks({2}, [](World& world) {
    cuda::set_device(0);
    CHECK(backend_of(world) == "device_thread");
    adds_up(communicator_on(Cuda{}, world.communicator()));
  });
}

TEST_CASE("direct access without peer access is an error that gives the reason") {
  const Machine machine(2, false, "direct");
  on_ranks({2}, [](World& world) {
    CHECK(contains(error_of([&] { static_cast<void>(backend_of(world)); }),
                   "CLEAVE_CUDA_COMM is 'direct', but GPU 0 cannot read the memory of GPU 1"));
  });
}

TEST_CASE("if one device lacks peer access, all ranks get an error") {
  const Machine machine(3, true, "direct");
  cuda_stand_in::fail_call("cudaDeviceEnablePeerAccess", 3, cudaErrorUnknown);
  on_ranks({3}, [](World& world) {
    CHECK(contains(error_of([&] { static_cast<void>(backend_of(world)); }), " cannot read the "));
    CHECK(cudaGetLastError() == cudaSuccess);
  });
}

TEST_CASE("ranks have a GPU each if the GPUs are distinct, whatever their numbers") {
  const Machine machine(2, true, "auto");
  on_ranks({2}, [](World& world) {
    Communicator& host = world.communicator();
    host.state().local_rank += 4;  // as if the launcher showed each process one GPU
    CHECK(detail::each_has_a_gpu(host));
    cuda::set_device(0);
    host.state().local_rank -= 4;
    CHECK(!detail::each_has_a_gpu(host));
  });
}

TEST_CASE("the driver loads the kernels of threads before they wait for each other") {
  on_ranks({2}, [](World&) {
    const char* const loading = std::getenv("CUDA_MODULE_LOADING");
    CHECK(std::string(loading == nullptr ? "" : loading) == "EAGER");
  });
}

TEST_CASE("threads keep no device memory beyond a collective, also in a capture") {
  const Machine machine(1, true, "direct");
  on_ranks({1}, [](World& world) {
    Communicator& group = communicator_on(Cuda{}, world.communicator());
    const Line x({8}), result({8});
    x.fill_(3);
    const std::uint64_t before = in_use();
    group.run(sum_of(x, result));
    CHECK(in_use() == before);
    {
      const cuda::Graph step([&] { group.run(sum_of(x, result)); });
      result.fill_(0);
      step.launch();
      CHECK(result.to(Host{})(7) == 3);
    }
    group.run(sum_of(x, result));
    CHECK(in_use() == before);
    CHECK(cudaGetLastError() == cudaSuccess);
  });
}

TEST_CASE("tensors are staged in blocks: pinned memory does not grow with their size") {
  const Machine machine(1, true, "staged");
  on_ranks({2}, [](World& world) {
    Communicator& group = communicator_on(Cuda{}, world.communicator());
    constexpr index_t count = 3 << 20;  // three blocks
    const Line x({count}), result({count});
    x.fill_(float(group.rank() + 1));
    const cuda_stand_in::Recording recording;
    group.run(sum_of(x, result));
    CHECK(calls_of(recording, "cudaHostAlloc") <= 2);  // two blocks, used in turn
    for (const cuda_stand_in::Call& call : recording.calls())
      if (call.function == "cudaHostAlloc") CHECK(call.bytes <= cuda::PinnedPool::block_bytes);
    const auto all = result.to(Host{});
    CHECK(all(0) == 3);
    CHECK(all(count / 2) == 3);
    CHECK(all(count - 1) == 3);
  });
}

TEST_CASE("staging memory is not reused before the copies pending at an error have ended") {
  const Machine machine(1, true, "staged");
  on_ranks({1}, [](World& world) {
    Communicator& group = communicator_on(Cuda{}, world.communicator());
    const Line x({8}), result({8});
    for (const int nth : {2, 3}) {
      cuda_stand_in::fail_call("cudaMemcpyAsync", nth, cudaErrorUnknown);
      CHECK(contains(error_of([&] { group.run(sum_of(x, result)); }), "cudaErrorUnknown"));
      CHECK(cuda::current_stream().idle());
    }
    adds_up(group);
  });
}

TEST_CASE("memory is not reused before peers have read it, even if one of them fails") {
  for (const int nth : {1, 2}) {
    const Machine machine(3, true, "direct");
    on_ranks({3}, [&](World& world) {
      Communicator& group = communicator_on(Cuda{}, world.communicator());
      world.barrier();
      {
        const Line x({1024});
        x.fill_(1);
        if (group.rank() == 0) cuda_stand_in::fail_call("cudaMemcpyAsync", nth, cudaErrorUnknown);
        world.barrier();
        Collective c;  // of the two ranks that copy from the root, one fails
        c.kind = CollectiveKind::broadcast;
        c.global_count = 1024;
        c.operation = "test";
        if (group.rank() == 0) c.source = x.view();
        else c.destination = x.view();
        CHECK(contains(error_of([&] { group.run(c); }), "cudaErrorUnknown"));
      }
      cuda::current_stream().synchronize();
    });
    CHECK(cuda_stand_in::take_faults() == "");
  }
}
