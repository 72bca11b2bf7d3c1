// Capture of streams into graphs, and their launches.
#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE_FIXTURE(Setup, "captured work runs with every launch, in the order of its stream") {
  const Graph graph(stream, [&] { add_one(stream, array); });
  CHECK(read(stream, array) == 0);
  set_to(other, array, 10);
  graph.launch(other);
  graph.launch(other);
  CHECK(read(other, array) == 12);
  // Launches of one graph wait for each other, also on two streams.
  graph.launch(stream);
  graph.launch(other);
  CHECK(read(other, array) == 14);
}

TEST_CASE_FIXTURE(Setup, "events carry a capture to other streams; results without one are stale") {
  const Event computed;
  for (const bool with_event : {true, false}) {
    set_to(stream, array, 1);
    const Graph graph(stream, [&] {
      record(stream, event);
      wait_for(other, event);
      add_one(other, array);
      record(other, computed);
      if (with_event) wait_for(stream, computed);
      copy(stream, result, array);
      wait_for(stream, computed);
    });
    graph.launch(stream);
    CHECK(read(stream, result) == (with_event ? 2 : 1));
  }
}

TEST_CASE_FIXTURE(Setup, "a graph's own memory is fresh in every launch, and freed with it") {
  std::size_t before = 1, after = 2, total = 0;
  CHECK_CUDA(cudaMemGetInfo(&before, &total));
  CHECK(before < total);
  {
    int* data = nullptr;
    const Graph graph(stream, [&] {
      CHECK_CUDA(cudaMallocAsync(reinterpret_cast<void**>(&data), sizeof(int), stream));
      copy(stream, array, data);
      set_to(stream, data, 5);
      copy(stream, result, data);
      CHECK_CUDA(cudaFreeAsync(data, stream));
    });
    for (int i = 0; i < 2; ++i) {
      graph.launch(stream);
      CHECK(read(stream, array) == poisoned_int);
      CHECK(read(stream, result) == 5);
      CHECK(says(fault_of(1, increment, data, 1), "is not within usable device memory"));
    }
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaMemGetInfo(&after, &total));
  CHECK(after == before);
}

TEST_CASE_FIXTURE(Setup, "calls that cannot be captured are refused; the capture then fails") {
  void* data = nullptr;
  CHECK_CUDA(cudaMallocAsync(&data, sizeof(int), stream));
  record(other, event);
  const auto fails_with = [&](cudaError_t error, auto&& call) {
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(call() == error);
    cudaStreamCaptureStatus status;
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status));
    CHECK(status == cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph;
    CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
  };
  fails_with(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(stream); });
  fails_with(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamQuery(stream); });
  fails_with(cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); });
  fails_with(cudaErrorStreamCaptureIsolation,
             [&] { return cudaStreamWaitEvent(stream, event, 0); });
  fails_with(cudaErrorInvalidValue, [&] { return cudaFreeAsync(data, stream); });
  CHECK_CUDA(cudaFreeAsync(data, stream));
}

TEST_CASE_FIXTURE(Setup, "a capture ends on the stream where it began, with all work joined") {
  cudaGraph_t graph = nullptr;
  const auto fork = [&] {
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    record(stream, event);
    wait_for(other, event);
    add_one(other, array);
  };
  fork();
  CHECK_ERROR(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  fork();
  CHECK_ERROR(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
  CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK(read(stream, array) == 0);
}

TEST_CASE_FIXTURE(Setup, "every capture has a number, and nothing joins it when it has ended") {
  unsigned long long first = 0, same = 0, second = 0;
  const auto number_of = [](cudaStream_t of, unsigned long long& number) {
    cudaStreamCaptureStatus status;
    CHECK_CUDA(cudaStreamGetCaptureInfo(of, &status, &number));
    return status;
  };
  CHECK(number_of(stream, first) == cudaStreamCaptureStatusNone);
  const Graph one(stream, [&] {
    CHECK(number_of(stream, first) == cudaStreamCaptureStatusActive);
    record(stream, event);
    wait_for(other, event);
    CHECK(number_of(other, same) == cudaStreamCaptureStatusActive);
    record(other, event);
    wait_for(stream, event);
  });
  CHECK(same == first);
  CHECK_ERROR(cudaStreamWaitEvent(other, event, 0), cudaErrorCapturedEvent);
  const Graph two(stream, [&] {
    CHECK(number_of(stream, second) == cudaStreamCaptureStatusActive);
    CHECK_ERROR(cudaStreamWaitEvent(stream, event, 0), cudaErrorCapturedEvent);
  });
  CHECK(second != first);
}
