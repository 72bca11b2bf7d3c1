// Errors: planted errors, machines without devices, invalid handles, and how long errors last.
#include "device.hpp"

using namespace cuda_stand_in;

TEST_CASE("a planted error is returned by the chosen call of the function, once") {
  const Fresh fresh;
  const Stream stream;
  fail_call("cudaStreamSynchronize", 2, cudaErrorLaunchTimeout);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaStreamQuery(stream));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
  CHECK_ERROR(cudaGetLastError(), cudaErrorLaunchTimeout);
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

TEST_CASE("a call with a planted error does nothing") {
  const Fresh fresh;
  const Stream stream;
  fail_call("cudaLaunchKernelEx", 1, cudaErrorLaunchOutOfResources);
  const Array<int> array(std::vector<int>{1});
  CHECK_ERROR(launch_on(stream, 1, 1, increment, array.data, 1), cudaErrorLaunchOutOfResources);
  CHECK(array.read(stream) == std::vector{1});
  void* data = nullptr;
  fail_call("cudaMallocAsync", 1, cudaErrorMemoryAllocation);
  CHECK_ERROR(cudaMallocAsync(&data, 10, stream), cudaErrorMemoryAllocation);
  CHECK(data == nullptr);
}

TEST_CASE("an operation's error appears when it runs, and stays with the device") {
  const Fresh fresh;
  const Stream stream, other;
  const Array<int> array(std::vector<int>{1});
  fail_operation(stream, cudaErrorIllegalAddress);
  CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
  CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
  CHECK_CUDA(cudaStreamSynchronize(other));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  CHECK_ERROR(cudaStreamSynchronize(other), cudaErrorIllegalAddress);
  CHECK_ERROR(launch_on(other, 1, 1, increment, array.data, 1), cudaErrorIllegalAddress);
  CHECK_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  CHECK_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
  CHECK(take_faults() == "a planted error\n");
  reset();
  CHECK_CUDA(cudaGetLastError());
  CHECK(array.read(stream) == std::vector{1});
}

TEST_CASE("a query that returns not ready sets the last error") {
  const Fresh fresh;
  const Stream stream;
  const Event event;
  const Array<int> array(std::vector<int>{1});
  CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
  CHECK_CUDA(cudaEventRecord(event, stream));
  CHECK_ERROR(cudaStreamQuery(stream), cudaErrorNotReady);
  CHECK_ERROR(cudaGetLastError(), cudaErrorNotReady);
  CHECK_ERROR(cudaEventQuery(event), cudaErrorNotReady);
  CHECK_ERROR(cudaGetLastError(), cudaErrorNotReady);
  CHECK_CUDA(cudaGetLastError());
}

TEST_CASE("devices without peer access refuse it, and report their PCI bus ids") {
  const Fresh fresh(2);
  int can = -1;
  CHECK_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  set_peer_access(false);
  CHECK_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 0);
  CHECK_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
  CHECK_ERROR(set_pool_access(0, 1), cudaErrorPeerAccessUnsupported);
  char first[32], second[32];
  CHECK_CUDA(cudaDeviceGetPCIBusId(first, sizeof(first), 0));
  CHECK_CUDA(cudaDeviceGetPCIBusId(second, sizeof(second), 1));
  CHECK(std::string(first) != second);
  CHECK_ERROR(cudaDeviceGetPCIBusId(first, sizeof(first), 2), cudaErrorInvalidDevice);
}

TEST_CASE("a device that has failed leaves the others alone") {
  const Fresh fresh(2);
  const Stream stream;
  fail_operation(stream, cudaErrorLaunchFailure);
  const Array<int> array(1);
  CHECK_CUDA(launch_on(stream, 1, 1, increment, array.data, 1));
  CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  CHECK_CUDA(cudaSetDevice(1));
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_ERROR(cudaSetDevice(0), cudaErrorLaunchFailure);
  CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  take_faults();
  reset();
}

TEST_CASE("without a device, every call returns that error") {
  const Fresh fresh;
  set_devices(0);
  int count = -1;
  CHECK_ERROR(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  CHECK(count == 0);
  cudaStream_t stream = nullptr;
  CHECK_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaErrorNoDevice);
  void* data = nullptr;
  CHECK_ERROR(cudaMalloc(&data, 1), cudaErrorNoDevice);
  CHECK_ERROR(cudaSetDevice(0), cudaErrorNoDevice);
  CHECK(std::string(cudaGetErrorString(cudaErrorNoDevice)) == "no CUDA-capable device is detected");
  set_devices(1);
  CHECK_CUDA(cudaGetDeviceCount(&count));
  CHECK(count == 1);
}

TEST_CASE("devices are chosen by number, for each thread") {
  const Fresh fresh(3);
  int device = -1;
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK(device == 0);
  CHECK_CUDA(cudaSetDevice(2));
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK(device == 2);
  CHECK_ERROR(cudaSetDevice(3), cudaErrorInvalidDevice);
  CHECK_ERROR(cudaSetDevice(-1), cudaErrorInvalidDevice);
  int value = 0;
  CHECK_CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1));
  CHECK(value == 4);
  CHECK_ERROR(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 3),
              cudaErrorInvalidDevice);
}

TEST_CASE("handles of destroyed streams and events are refused") {
  const Fresh fresh;
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK_CUDA(cudaEventRecord(event, stream));
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  CHECK_CUDA(cudaEventDestroy(event));
  CHECK_ERROR(cudaEventSynchronize(event), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaStreamWaitEvent(nullptr, event, 0), cudaErrorInvalidResourceHandle);
}

TEST_CASE("kernels and events belong to the device of their stream") {
  const Fresh fresh(2);
  const Stream stream;
  const Event event;
  CHECK_CUDA(cudaSetDevice(1));
  CHECK_ERROR(launch_on(stream, 1, 1, increment, static_cast<int*>(nullptr), 0),
              cudaErrorInvalidResourceHandle);
  {
    const Stream other;
    CHECK_ERROR(cudaEventRecord(event, other), cudaErrorInvalidResourceHandle);
    CHECK_CUDA(cudaStreamWaitEvent(other, event, 0));
  }
  CHECK_CUDA(cudaSetDevice(0));
}
