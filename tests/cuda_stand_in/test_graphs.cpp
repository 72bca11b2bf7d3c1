// Capture of streams into graphs, and their launches.
#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE("captured work runs with every launch, and not before") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(std::vector<int>{0, 0});
  const Graph graph(stream, [&] {
    CHECK_CUDA(launch_on(stream, 1, 2, increment, array.data, 2));
    CHECK_CUDA(launch_on(stream, 1, 2, increment, array.data, 1));
  });
  CHECK(array.read(stream) == std::vector{0, 0});
  for (int i = 0; i < 3; ++i) graph.launch(stream);
  CHECK(array.read(stream) == std::vector{6, 3});
}

TEST_CASE("events carry a capture to other streams; without one, results are stale") {
  const Fresh fresh;
  for (const bool with_event : {true, false}) {
    const Stream stream, side;
    const Event forked, computed, joined;
    const Array<int> source(std::vector<int>{1}), result(std::vector<int>{0});
    const Graph graph(stream, [&] {
      CHECK_CUDA(cudaEventRecord(forked, stream));
      CHECK_CUDA(cudaStreamWaitEvent(side, forked, 0));
      CHECK_CUDA(launch_on(side, 1, 1, increment, source.data, 1));
      CHECK_CUDA(cudaEventRecord(computed, side));
      if (with_event) CHECK_CUDA(cudaStreamWaitEvent(stream, computed, 0));
      CHECK_CUDA(
          cudaMemcpyAsync(result.data, source.data, sizeof(int), cudaMemcpyDeviceToDevice, stream));
      CHECK_CUDA(cudaStreamWaitEvent(stream, computed, 0));
    });
    graph.launch(stream);
    CHECK(result.read(stream) == std::vector{with_event ? 2 : 1});
    graph.launch(stream);
    CHECK(result.read(stream) == std::vector{with_event ? 3 : 2});
  }
}

TEST_CASE("a launch keeps the order of the stream it is launched on") {
  const Fresh fresh;
  const Stream stream, other;
  const Array<int> array(std::vector<int>{0});
  const Graph graph(stream, [&] { CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1)); });
  CHECK_CUDA(launch_on(other, 1, 1, assign, array.data, 1, 10));
  graph.launch(other);
  CHECK_CUDA(cudaMemcpyAsync(array.data, array.data, 0, cudaMemcpyDefault, other));
  CHECK(array.read(other) == std::vector{11});
}

TEST_CASE("memory that is allocated and freed during a capture is fresh in every launch") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> result(std::vector<int>{0, 0});
  void* data = nullptr;
  const Graph graph(stream, [&] {
    CHECK_CUDA(cudaMallocAsync(&data, sizeof(int), stream));
    CHECK_CUDA(cudaMemcpyAsync(result.data, data, sizeof(int), cudaMemcpyDeviceToDevice, stream));
    CHECK_CUDA(launch_on(stream, 1, 1, assign, static_cast<int*>(data), 1, 5));
    CHECK_CUDA(
        cudaMemcpyAsync(result.data + 1, data, sizeof(int), cudaMemcpyDeviceToDevice, stream));
    CHECK_CUDA(cudaFreeAsync(data, stream));
  });
  for (int i = 0; i < 2; ++i) {
    graph.launch(stream);
    CHECK(result.read(stream) == std::vector{poisoned_int, 5});
  }
}

TEST_CASE("a capture fails if memory from before it is freed inside") {
  const Fresh fresh;
  const Stream stream;
  void* data = nullptr;
  CHECK_CUDA(cudaMallocAsync(&data, sizeof(int), stream));
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK_ERROR(cudaFreeAsync(data, stream), cudaErrorInvalidValue);
  cudaGraph_t graph = nullptr;
  CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK_CUDA(cudaFreeAsync(data, stream));
}

TEST_CASE("a stream that captures cannot be waited for; the capture then fails") {
  const Fresh fresh;
  const Stream stream;
  const Event event;
  cudaGraph_t graph = nullptr;
  const auto fails_with = [&](auto&& call) {
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    call();
    cudaStreamCaptureStatus status;
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status));
    CHECK(status == cudaStreamCaptureStatusInvalidated);
    CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
  };
  fails_with(
      [&] { CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported); });
  fails_with([&] { CHECK_ERROR(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported); });
  fails_with([&] { CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported); });
  fails_with([&] {
    void* data = nullptr;
    CHECK_ERROR(cudaMalloc(&data, 1), cudaErrorStreamCaptureUnsupported);
  });
  fails_with([&] {
    const Stream other;
    CHECK_CUDA(cudaEventRecord(event, other));
    CHECK_ERROR(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
  });
}

TEST_CASE("a capture ends on the stream where it began, with all work joined") {
  const Fresh fresh;
  const Stream stream, side;
  const Event forked;
  const Array<int> array(std::vector<int>{0});
  cudaGraph_t graph = nullptr;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CHECK_CUDA(cudaEventRecord(forked, stream));
  CHECK_ERROR(cudaEventSynchronize(forked), cudaErrorCapturedEvent);
  CHECK_CUDA(cudaStreamWaitEvent(side, forked, 0));
  CHECK_CUDA(launch_on(side, 1, 1, increment, array.data, 1));
  CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);

  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CHECK_CUDA(cudaEventRecord(forked, stream));
  CHECK_CUDA(cudaStreamWaitEvent(side, forked, 0));
  CHECK_ERROR(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureUnmatched);
  CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK(array.read(stream) == std::vector{0});
}

TEST_CASE("every capture has a number, and nothing joins it when it has ended") {
  const Fresh fresh;
  const Stream stream, side;
  const Event forked;
  cudaStreamCaptureStatus status;
  unsigned long long first = 0, same = 0, second = 0;
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &first));
  CHECK(status == cudaStreamCaptureStatusNone);
  const Graph one(stream, [&] {
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &first));
    CHECK(status == cudaStreamCaptureStatusActive);
    CHECK_CUDA(cudaEventRecord(forked, stream));
    CHECK_CUDA(cudaStreamWaitEvent(side, forked, 0));
    CHECK_CUDA(cudaStreamGetCaptureInfo(side, &status, &same));
    CHECK(status == cudaStreamCaptureStatusActive);
    CHECK_CUDA(cudaEventRecord(forked, side));
    CHECK_CUDA(cudaStreamWaitEvent(stream, forked, 0));
  });
  CHECK(same == first);
  CHECK_ERROR(cudaStreamWaitEvent(side, forked, 0), cudaErrorCapturedEvent);
  const Graph two(stream, [&] {
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &second));
    CHECK_ERROR(cudaStreamWaitEvent(stream, forked, 0), cudaErrorCapturedEvent);
  });
  CHECK(second != first);
}
