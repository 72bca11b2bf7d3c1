// Recordings of calls.
#include <thread>

#include "cuda_stand_in/recorder.hpp"
#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE("a recording lists calls with streams and events numbered as they appear") {
  const Fresh fresh;
  const Stream unused, first, second;
  const Event event;
  const Array<int> array(std::vector<int>{1, 2});
  const Recording recording;
  CHECK_CUDA(launch_on(second, 1, dim3(32, 4), increment, array.data, 2));
  CHECK_CUDA(cudaEventRecord(event, second));
  CHECK_CUDA(cudaStreamWaitEvent(first, event, 0));
  CHECK_CUDA(cudaMemcpyAsync(array.data, array.data + 1, 4, cudaMemcpyDeviceToDevice, first));
  CHECK_CUDA(cudaMemcpyAsync(array.data + 1, array.data, 4, cudaMemcpyDefault, nullptr));
  CHECK_ERROR(cudaMemcpyAsync(array.data, array.data, 100, cudaMemcpyDefault, first),
              cudaErrorInvalidValue);
  CHECK(recording.text() ==
        "cudaLaunchKernelEx(stream 1): grid 1x1x1 block 32x4x1\n"
        "cudaEventRecord(event 1, stream 1)\n"
        "cudaStreamWaitEvent(event 1, stream 2)\n"
        "cudaMemcpyAsync(stream 2): 4 bytes DeviceToDevice\n"
        "cudaMemcpyAsync(stream 0): 4 bytes Default\n"
        "cudaMemcpyAsync(stream 2): 100 bytes Default\n");
  CHECK(recording.text("cudaEventRecord") == "cudaEventRecord(event 1, stream 1)\n");
  CHECK(recording.calls()[3].bytes == 4);
}

TEST_CASE("a recording is of its own thread's calls, and an inner one takes over") {
  const Fresh fresh;
  const Stream stream;
  const Recording outer;
  CHECK_CUDA(cudaStreamQuery(stream));
  {
    const Recording inner;
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK(inner.text() == "cudaStreamSynchronize(stream 1)\n");
  }
  std::thread([&] { cudaDeviceSynchronize(); }).join();
  CHECK(outer.text() == "cudaStreamQuery(stream 1)\n");
}
