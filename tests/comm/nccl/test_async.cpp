// Events between streams: an asynchronous redistribution orders what it must, and nothing else.
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <cleave/cuda.hpp>

#include "cuda_stand_in/recorder.hpp"
#include "over_nccl.hpp"

using namespace cleave;
using axes::tp;
using cleave::testing::counting;
using cleave::testing::over_nccl;

namespace {

/// The recorded calls of these functions, one per line.
std::string lines_of(const cuda_stand_in::Recording& recording,
                     const std::vector<std::string>& functions) {
  std::string text;
  for (const cuda_stand_in::Call& call : recording.calls())
    for (const std::string& function : functions)
      if (call.function.starts_with(function)) text += call.text() + "\n";
  return text;
}

}  // namespace

TEST_CASE("an asynchronous redistribution joins two streams by two events") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = distribute_tensor(counting(4, 3), mesh, Shard<0>{});
    static_cast<void>(x.redistribute_async(Replicate{}).wait());  // creates groups and streams

    cuda_stand_in::Recording recording;
    const cudaStream_t compute = cuda::current_stream().get();
    CHECK(recording.number_of(compute) == 1);
    auto result = x.redistribute_async(Replicate{});
    const std::string begun =
        lines_of(recording, {"cudaEventRecord", "cudaStreamWaitEvent", "nccl"});
    recording.clear();
    const auto all = result.wait();
    const std::string ended = lines_of(
        recording, {"cudaStreamWaitEvent", "cudaEventSynchronize", "cudaStreamSynchronize"});

    // the side stream waits for the compute stream, communicates, and then records an event
    CAPTURE(begun);
    CHECK(
        begun.starts_with("cudaEventRecord(event 1, stream 1)\n"
                          "cudaStreamWaitEvent(event 1, stream 2)\n"
                          "ncclAllGather(stream 2): 6 float32 on world/split"));
    const std::size_t mark = begun.rfind("cudaEventRecord(");
    REQUIRE(begun.find("ncclAllGather") < mark);
    const std::string event = begun.substr(mark + 16, begun.find(',', mark) - mark - 16);
    CHECK(begun.substr(mark) == "cudaEventRecord(" + event + ", stream 2)\n");
    // the compute stream waits for that event; the host waits for nothing
    CHECK(ended == "cudaStreamWaitEvent(" + event + ", stream 1)\n");

    const auto values = all.full_tensor().to(Host{});
    for (index_t i = 0; i < 12; ++i) CHECK(values.data()[i] == float(i));
  });
}

TEST_CASE("a stream that does not wait reads stale data") {
  over_nccl({2}, [](World& world) {
    const auto mesh = init_device_mesh<tp>(world, {2}, Cuda{});
    const auto x = distribute_tensor(counting(4, 3), mesh, Shard<0>{});
    cuda::current_stream().synchronize();
    Tensor<float, 2, Cuda> late({2, 3});
    late.fill_(-1);
    cuda::current_stream().synchronize();
    // the planted error: a copy on another stream, without an event between it and the gather
    const cuda::Stream other(cuda::Stream::Kind::communication);
    {
      const cuda::StreamGuard guard(other);
      late.copy_(x.to_local());
    }
    const auto y = from_local(late, mesh, Shard<0>{}, {4, 3});
    const auto stale = y.full_tensor().to(Host{});
    CHECK(stale(0, 0) == -1);
    other.synchronize();
    CHECK(y.full_tensor().to(Host{})(3, 2) == 11);
  });
}
