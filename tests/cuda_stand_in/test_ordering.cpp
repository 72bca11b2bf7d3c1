// Which operations run, and when: streams, events, queries.
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

TEST_CASE_FIXTURE(Setup, "long chains of streams, also destroyed ones, need no deep recursion") {
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

TEST_CASE_FIXTURE(Setup, "queries, and the last error, say that work is not ready; polling ends") {
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
