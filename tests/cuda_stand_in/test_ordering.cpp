// Which operations run, and when: streams, events, the default stream, eager order, queries.
#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE_FIXTURE(Setup, "operations run when the host needs them, and no others") {
  add_one(stream, array);
  copy(stream, result, array);
  CHECK_CUDA(cudaMemsetAsync(array, 0x11, sizeof(int), stream));
  add_one(other, array);
  CHECK(pending_operations() == 4);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(pending_operations() == 1);
  CHECK(read(stream, result) == 1);
  CHECK(read(stream, array) == 0x11111111);
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK(read(stream, array) == 0x11111112);
}

TEST_CASE_FIXTURE(Setup, "a wait is for the record before it; what follows is stale without one") {
  add_one(stream, array);
  record(stream, event);
  wait_for(other, event);
  add_one(stream, array);
  record(stream, event);
  CHECK(read(other, array) == 1);
  CHECK_CUDA(cudaEventSynchronize(event));
  CHECK(read(other, array) == 2);
}

TEST_CASE_FIXTURE(Setup, "an event that was never recorded is complete and orders nothing") {
  CHECK_CUDA(cudaEventQuery(event));
  CHECK_CUDA(cudaEventSynchronize(event));
  wait_for(stream, event);
  CHECK_CUDA(cudaStreamQuery(stream));
}

TEST_CASE_FIXTURE(Setup,
                  "long chains between streams, also destroyed ones, need no deep recursion") {
  constexpr int rounds = 3000;
  {
    const Stream destroyed;
    for (int i = 0; i < rounds; ++i) {
      const cudaStream_t next = i % 2 == 0 ? destroyed : other;
      wait_for(next, event);
      add_one(next, array);
      record(next, event);
    }
  }
  wait_for(stream, event);
  CHECK(read(stream, array) == rounds);
}

TEST_CASE_FIXTURE(Setup,
                  "the default stream keeps order with blocking streams, but with no others") {
  for (const bool ordered : {true, false}) {
    const Stream one(ordered ? cudaStreamDefault : cudaStreamNonBlocking);
    set_to(nullptr, array, 0);
    CHECK_CUDA(cudaDeviceSynchronize());
    set_to(one, array, 7);
    add_one(nullptr, array);
    CHECK(read(nullptr, array) == (ordered ? 8 : 1));
    CHECK_CUDA(cudaDeviceSynchronize());
    set_to(nullptr, array, 20);
    add_one(one, array);
    CHECK(read(one, array) == (ordered ? 21 : 8));
  }
  const Stream first(cudaStreamDefault), second(cudaStreamDefault);
  set_to(nullptr, array, 1);
  set_to(first, array, 7);
  add_one(second, array);
  CHECK(read(second, array) == 2);
  add_one(other, array);
  CHECK_CUDA(cudaStreamSynchronize(nullptr));
  CHECK(read(second, array) == 7);
  CHECK(pending_operations() == 1);
}

TEST_CASE_FIXTURE(Setup, "eager order runs an operation when it is enqueued") {
  set_order(Order::eager);
  add_one(stream, array);
  CHECK(pending_operations() == 0);
  CHECK(read(other, array) == 1);
}

TEST_CASE_FIXTURE(Setup,
                  "queries say, also as the last error, that work is not ready; polling ends") {
  for (int i = 0; i < 5; ++i) add_one(stream, array);
  record(stream, event);
  CHECK_ERROR(cudaStreamQuery(stream), cudaErrorNotReady);
  CHECK_ERROR(cudaGetLastError(), cudaErrorNotReady);
  CHECK_CUDA(cudaGetLastError());
  int polls = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady && polls < 1000) ++polls;
  CHECK(polls < 1000);
  CHECK(polls > 5);
  CHECK_ERROR(cudaGetLastError(), cudaErrorNotReady);
  CHECK_CUDA(cudaStreamQuery(stream));
  CHECK(read(other, array) == 5);
}
