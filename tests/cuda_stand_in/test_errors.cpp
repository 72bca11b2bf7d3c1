// Errors: planted errors, machines without devices, invalid handles, and how long errors last.
#include <thread>

#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE_FIXTURE(Setup, "the chosen call returns a planted error, once, and does nothing") {
  fail_call("cudaLaunchKernelEx", 2, cudaErrorLaunchOutOfResources);
  add_one(stream, array);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_ERROR(launch_on(stream, 1, 1, increment, array.data, 1), cudaErrorLaunchOutOfResources);
  CHECK_ERROR(cudaGetLastError(), cudaErrorLaunchOutOfResources);
  CHECK_CUDA(cudaGetLastError());
  CHECK(read(stream, array) == 1);
  add_one(stream, array);
  CHECK(read(stream, array) == 2);
}

TEST_CASE_FIXTURE(Setup, "an operation's error appears when it runs, and stays with the device") {
  fail_operation(stream, cudaErrorIllegalAddress);
  add_one(stream, array);
  add_one(stream, array);
  CHECK_CUDA(cudaStreamSynchronize(other));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  CHECK_ERROR(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
  CHECK_ERROR(launch_on(other, 1, 1, increment, array.data, 1), cudaErrorIllegalAddress);
  CHECK_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  CHECK_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  CHECK_CUDA(cudaSetDevice(1));
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_ERROR(cudaSetDevice(0), cudaErrorIllegalAddress);
  CHECK(failure() == "a planted error\n");
  CHECK_CUDA(cudaGetLastError());
  CHECK(read(stream, array) == 0);
}

TEST_CASE_FIXTURE(Setup, "each thread chooses a device by number; without one, all calls fail") {
  int value = -1;
  std::thread([] { CHECK_CUDA(cudaSetDevice(3)); }).join();
  CHECK_CUDA(cudaGetDevice(&value));
  CHECK(value == 0);
  CHECK_ERROR(cudaSetDevice(4), cudaErrorInvalidDevice);
  CHECK_ERROR(cudaSetDevice(-1), cudaErrorInvalidDevice);
  CHECK_ERROR(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 4),
              cudaErrorInvalidDevice);
  set_devices(0);
  value = -1;
  CHECK_ERROR(cudaGetDeviceCount(&value), cudaErrorNoDevice);
  CHECK(value == 0);
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorNoDevice);
  CHECK_ERROR(cudaSetDevice(0), cudaErrorNoDevice);
  set_devices(4);
  CHECK_CUDA(cudaGetDeviceCount(&value));
  CHECK(value == 4);
}

TEST_CASE_FIXTURE(Setup, "streams and events that are destroyed or of other devices are refused") {
  cudaStream_t destroyed;
  cudaEvent_t gone;
  CHECK_CUDA(cudaStreamCreateWithFlags(&destroyed, cudaStreamNonBlocking));
  CHECK_CUDA(cudaEventCreateWithFlags(&gone, cudaEventDisableTiming));
  CHECK_CUDA(cudaStreamDestroy(destroyed));
  CHECK_CUDA(cudaEventDestroy(gone));
  CHECK_ERROR(cudaStreamSynchronize(destroyed), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaStreamDestroy(destroyed), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaEventRecord(event, destroyed), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaEventSynchronize(gone), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaStreamWaitEvent(stream, gone, 0), cudaErrorInvalidResourceHandle);
  CHECK_CUDA(cudaSetDevice(1));
  CHECK_ERROR(launch_on(stream, 1, 1, increment, array.data, 1), cudaErrorInvalidResourceHandle);
  const Stream on_second;
  CHECK_ERROR(cudaEventRecord(event, on_second), cudaErrorInvalidResourceHandle);
  wait_for(on_second, event);
  CHECK_CUDA(cudaSetDevice(0));
}
