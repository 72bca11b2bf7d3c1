// Which operations run, and when: streams, events, the default stream, eager order, queries.
#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE("an operation runs when the host needs it, not when it is enqueued") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(std::vector<int>{5});
  const std::size_t before = pending_operations();
  CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
  CHECK(pending_operations() == before + 1);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(pending_operations() == before);
  CHECK(array.read(stream) == std::vector{6});
}

TEST_CASE("synchronising a stream leaves other streams' work undone") {
  const Fresh fresh;
  const Stream needed, other;
  const Array<int> array(std::vector<int>{0});
  CHECK_CUDA(launch_on(other, 1, 1, increment, array.data, 1));
  CHECK_CUDA(launch_on(needed, 1, 1, increment, array.data, 1));
  CHECK_CUDA(cudaStreamSynchronize(needed));
  CHECK(array.read(needed) == std::vector{1});
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(array.read(needed) == std::vector{2});
}

TEST_CASE("without an event between them, the reader of another stream's result reads stale data") {
  const Fresh fresh;
  for (const bool with_event : {false, true}) {
    const Stream producer, consumer;
    const Event produced;
    const Array<int> source(std::vector<int>{1}), result(std::vector<int>{0});
    CHECK_CUDA(launch_on(producer, 1, 1, assign, source.data, 1, 42));
    CHECK_CUDA(cudaEventRecord(produced, producer));
    if (with_event) CHECK_CUDA(cudaStreamWaitEvent(consumer, produced, 0));
    CHECK_CUDA(
        cudaMemcpyAsync(result.data, source.data, sizeof(int), cudaMemcpyDeviceToDevice, consumer));
    CHECK(result.read(consumer) == std::vector{with_event ? 42 : 1});
  }
}

TEST_CASE("a wait is for the record before it, not for a later one") {
  const Fresh fresh;
  const Stream producer, consumer;
  const Event produced;
  const Array<int> source(std::vector<int>{0}), result(std::vector<int>{-1});
  CHECK_CUDA(launch_on(producer, 1, 1, increment, source.data, 1));
  CHECK_CUDA(cudaEventRecord(produced, producer));
  CHECK_CUDA(cudaStreamWaitEvent(consumer, produced, 0));
  CHECK_CUDA(launch_on(producer, 1, 1, increment, source.data, 1));
  CHECK_CUDA(cudaEventRecord(produced, producer));
  CHECK_CUDA(
      cudaMemcpyAsync(result.data, source.data, sizeof(int), cudaMemcpyDeviceToDevice, consumer));
  CHECK(result.read(consumer) == std::vector{1});
  CHECK_CUDA(cudaEventSynchronize(produced));
  CHECK(source.read(consumer) == std::vector{2});
}

TEST_CASE("an event that was never recorded is complete and orders nothing") {
  const Fresh fresh;
  const Stream stream;
  const Event event;
  CHECK_CUDA(cudaEventQuery(event));
  CHECK_CUDA(cudaEventSynchronize(event));
  CHECK_CUDA(cudaStreamWaitEvent(stream, event, 0));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

TEST_CASE("dependencies are followed through several streams") {
  const Fresh fresh;
  const Stream first, second, third;
  const Event one, two;
  const Array<int> array(std::vector<int>{0});
  CHECK_CUDA(launch_on(first, 1, 1, assign, array.data, 1, 1));
  CHECK_CUDA(cudaEventRecord(one, first));
  CHECK_CUDA(cudaStreamWaitEvent(second, one, 0));
  CHECK_CUDA(launch_on(second, 1, 1, increment, array.data, 1));
  CHECK_CUDA(cudaEventRecord(two, second));
  CHECK_CUDA(cudaStreamWaitEvent(third, two, 0));
  CHECK_CUDA(launch_on(third, 1, 1, increment, array.data, 1));
  CHECK(array.read(third) == std::vector{3});
}

TEST_CASE("long chains between two streams need no deep recursion") {
  const Fresh fresh;
  const Stream ping, pong;
  const Event event;
  const Array<int> array(std::vector<int>{0});
  constexpr int rounds = 3000;
  for (int i = 0; i < rounds; ++i) {
    const cudaStream_t stream = i % 2 == 0 ? ping : pong;
    if (i > 0) CHECK_CUDA(cudaStreamWaitEvent(stream, event, 0));
    CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
    CHECK_CUDA(cudaEventRecord(event, stream));
  }
  CHECK(array.read(pong) == std::vector{rounds});
}

TEST_CASE("the default stream and blocking streams keep their order; other streams do not") {
  const Fresh fresh;
  for (const unsigned flags : {unsigned(cudaStreamDefault), unsigned(cudaStreamNonBlocking)}) {
    const bool ordered = flags == cudaStreamDefault;
    const Stream stream(flags);
    const Array<int> array(std::vector<int>{0});
    // The default stream waits for the stream ..
    CHECK_CUDA(launch_on(stream, 1, 1, assign, array.data, 1, 7));
    CHECK_CUDA(launch_on(nullptr, 1, 1, increment, array.data, 1));
    CHECK(array.read(nullptr) == std::vector{ordered ? 8 : 1});
    CHECK_CUDA(cudaDeviceSynchronize());
    // .. and the stream for the default stream.
    CHECK_CUDA(launch_on(nullptr, 1, 1, assign, array.data, 1, 20));
    CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
    CHECK(array.read(stream) == std::vector{ordered ? 21 : 8});
  }
}

TEST_CASE("two blocking streams are not ordered with each other") {
  const Fresh fresh;
  const Stream first(cudaStreamDefault), second(cudaStreamDefault);
  const Array<int> array(std::vector<int>{0});
  CHECK_CUDA(launch_on(first, 1, 1, assign, array.data, 1, 7));
  CHECK_CUDA(launch_on(second, 1, 1, increment, array.data, 1));
  CHECK(array.read(second) == std::vector{1});
}

TEST_CASE("synchronising the default stream waits for the blocking streams") {
  const Fresh fresh;
  const Stream blocking(cudaStreamDefault), other;
  const std::size_t before = pending_operations();
  const Array<int> array(std::vector<int>{0});
  CHECK_CUDA(launch_on(blocking, 1, 1, increment, array.data, 1));
  CHECK_CUDA(launch_on(other, 1, 1, increment, array.data, 1));
  CHECK_CUDA(cudaStreamSynchronize(nullptr));
  CHECK(pending_operations() == before + 1);
}

TEST_CASE("eager order runs an operation when it is enqueued") {
  const Fresh fresh;
  set_order(Order::eager);
  const Stream producer, consumer;
  const Array<int> source(std::vector<int>{1}), result(std::vector<int>{0});
  CHECK_CUDA(launch_on(producer, 1, 1, assign, source.data, 1, 42));
  CHECK(pending_operations() == 0);
  CHECK_CUDA(
      cudaMemcpyAsync(result.data, source.data, sizeof(int), cudaMemcpyDeviceToDevice, consumer));
  CHECK(result.read(consumer) == std::vector{42});
}

TEST_CASE("queries report that work is not ready, and polling ends") {
  const Fresh fresh;
  const Stream stream;
  const Event event;
  const Array<int> array(std::vector<int>{0});
  for (int i = 0; i < 5; ++i) CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
  CHECK_CUDA(cudaEventRecord(event, stream));
  CHECK_ERROR(cudaStreamQuery(stream), cudaErrorNotReady);
  CHECK_ERROR(cudaEventQuery(event), cudaErrorNotReady);
  CHECK_ERROR(cudaGetLastError(), cudaErrorNotReady);
  int polls = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady && polls < 1000) ++polls;
  CHECK(polls < 1000);
  CHECK(polls > 5);
  CHECK_CUDA(cudaStreamQuery(stream));
  CHECK(array.read(stream) == std::vector{5});
}

TEST_CASE("work of a destroyed stream runs when a waiter needs it") {
  const Fresh fresh;
  const Stream consumer;
  const Event event;
  const Array<int> array(std::vector<int>{0});
  {
    const Stream producer;
    CHECK_CUDA(launch_on(producer, 1, 1, increment, array.data, 1));
    CHECK_CUDA(cudaEventRecord(event, producer));
  }
  CHECK_CUDA(cudaStreamWaitEvent(consumer, event, 0));
  CHECK(array.read(consumer) == std::vector{1});
}
