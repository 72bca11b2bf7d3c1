// Copies: data moved, the times of host memory accesses, refused calls.
#include "device.hpp"

using namespace cuda_stand_in;

namespace {

/// Pinned host memory of one int.
struct Pinned {
  Pinned() {
    CHECK_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&value), sizeof(int), cudaHostAllocDefault));
    *value = 0;
  }
  ~Pinned() { cudaFreeHost(value); }
  Pinned(const Pinned&) = delete;  // owns the memory
  int* value = nullptr;
};

}  // namespace

TEST_CASE("pinned memory is read when the copy runs, pageable memory before the call returns") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(1);
  const Pinned pinned;
  *pinned.value = 1;
  CHECK_CUDA(
      cudaMemcpyAsync(array.data, pinned.value, sizeof(int), cudaMemcpyHostToDevice, stream));
  *pinned.value = 2;
  CHECK(array.read(stream) == std::vector{2});

  int pageable = 1;
  CHECK_CUDA(cudaMemcpyAsync(array.data, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream));
  CHECK(pending_operations() == 1);
  pageable = 2;
  CHECK(array.read(stream) == std::vector{1});
}

TEST_CASE("a copy from pageable memory that is captured reads at every launch of the graph") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(1);
  int pageable = 1;
  const Graph graph(stream, [&] {
    CHECK_CUDA(cudaMemcpyAsync(array.data, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream));
  });
  pageable = 2;
  graph.launch(stream);
  CHECK(array.read(stream) == std::vector{2});
}

TEST_CASE("pinned memory is written when the copy runs, pageable memory before the call returns") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(std::vector<int>{7});
  const Pinned pinned;
  CHECK_CUDA(
      cudaMemcpyAsync(pinned.value, array.data, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(*pinned.value == 0);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(*pinned.value == 7);

  int pageable = 0;
  CHECK_CUDA(cudaMemcpyAsync(&pageable, array.data, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(pageable == 7);
}

TEST_CASE("a copy in the wrong direction or across the end of an allocation is refused") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(2);
  int values[3] = {};
  const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, stream);
  };
  CHECK_ERROR(copy(values, array.data, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(array.data, values, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  CHECK_ERROR(copy(array.data, values, 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(array.data, values, 8, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  CHECK_ERROR(copy(array.data, values, 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(array.data + 1, values, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(nullptr, values, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_CUDA(copy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  CHECK_CUDA(copy(array.data, values, 8, cudaMemcpyDefault));
}

TEST_CASE("a copy goes between devices; pinned memory freed before it runs is detected") {
  const Fresh fresh(2);
  const Array<int> on_first(std::vector<int>{4});
  CHECK_CUDA(cudaSetDevice(1));
  {
    const Stream stream;
    const Array<int> on_second(1);
    CHECK_CUDA(cudaMemcpyAsync(on_second.data, on_first.data, sizeof(int), cudaMemcpyDeviceToDevice,
                               stream));
    CHECK(on_second.read(stream) == std::vector{4});
    CHECK_CUDA(
        cudaMemcpyAsync(on_first.data, on_second.data, sizeof(int), cudaMemcpyDefault, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));

    {
      const Pinned pinned;
      CHECK_CUDA(cudaMemcpyAsync(on_second.data, pinned.value, sizeof(int), cudaMemcpyHostToDevice,
                                 stream));
    }
    CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    CHECK(take_faults().find("a copy of 4 bytes touches memory that is freed") !=
          std::string::npos);
    reset();
  }
  CHECK_CUDA(cudaSetDevice(0));
}

TEST_CASE("memory is set to a byte in the order of its stream, also by a graph") {
  const Fresh fresh;
  const Stream stream;
  const Array<int> array(std::vector<int>{1, 2, 3});
  CHECK_CUDA(cudaMemsetAsync(array.data + 1, 0x11, sizeof(int), stream));
  CHECK(array.read(stream) == std::vector{1, 0x11111111, 3});
  const Graph graph(stream, [&] { CHECK_CUDA(cudaMemsetAsync(array.data, 0, 8, stream)); });
  CHECK(array.read(stream) == std::vector{1, 0x11111111, 3});
  graph.launch(stream);
  CHECK(array.read(stream) == std::vector{0, 0, 3});
  int on_host = 0;
  CHECK_ERROR(cudaMemsetAsync(&on_host, 0, sizeof(int), stream), cudaErrorInvalidValue);
  CHECK_ERROR(cudaMemsetAsync(array.data, 0, 1 << 20, stream), cudaErrorInvalidValue);
}
