// Recordings of calls. The tests of the library's calls compare their text.
#include <thread>

#include "cuda_stand_in/recorder.hpp"
#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE_FIXTURE(Setup, "a recording lists its own thread's calls; an inner one takes over") {
  const Recording outer;
  record(other, event);
  CHECK_ERROR(cudaMemcpyAsync(array, array, 100, cudaMemcpyDefault, stream), cudaErrorInvalidValue);
  {
    const Recording inner;
    wait_for(stream, event);
    CHECK(inner.text() == "cudaStreamWaitEvent(event 1, stream 1)\n");
  }
  std::thread([&] { cudaDeviceSynchronize(); }).join();
  copy(nullptr, array, result);
  CHECK(outer.text() ==
        "cudaEventRecord(event 1, stream 1)\n"
        "cudaMemcpyAsync(stream 2): 100 bytes Default\n"
        "cudaMemcpyAsync(stream 0): 4 bytes Default\n");
}
