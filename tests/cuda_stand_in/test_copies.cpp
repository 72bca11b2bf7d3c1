// Copies: the times of host memory accesses, refused calls.
#include "device.hpp"

using namespace cuda_stand_in;

namespace {

/// Pinned host memory of one int, 1.
struct Pinned {
  Pinned() {
    CHECK_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&value), sizeof(int), cudaHostAllocDefault));
    *value = 1;
  }
  ~Pinned() { cudaFreeHost(value); }
  Pinned(const Pinned&) = delete;  // owns the memory
  int* value = nullptr;
};

}  // namespace

TEST_CASE_FIXTURE(Setup, "a copy accesses pinned memory when it runs, pageable before it returns") {
  const Pinned pinned;
  copy(stream, array, pinned.value);
  *pinned.value = 2;
  CHECK(read(stream, array) == 2);
  int pageable = 3;
  copy(stream, array, &pageable);
  CHECK(pending_operations() == 1);
  pageable = 4;
  copy(stream, pinned.value, array);
  CHECK(*pinned.value == 2);
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(*pinned.value == 3);
}

TEST_CASE_FIXTURE(Setup, "a copy from pageable memory that is captured reads at every launch") {
  int pageable = 1;
  const Graph graph(stream, [&] { copy(stream, array, &pageable); });
  pageable = 2;
  graph.launch(stream);
  CHECK(read(stream, array) == 2);
}

TEST_CASE_FIXTURE(Setup, "pinned memory that is freed before a copy runs is detected") {
  {
    const Pinned pinned;
    copy(stream, array, pinned.value);
  }
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  CHECK(says(failure(), "a copy of 4 bytes touches memory that is freed"));
}

TEST_CASE_FIXTURE(Setup, "a copy in the wrong direction or across an allocation's end is refused") {
  const Array<int> two(2);
  int values[3] = {};
  const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, stream);
  };
  CHECK_ERROR(copy(values, two, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(two, values, 8, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  CHECK_ERROR(copy(two, values, 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(two, values, 8, cudaMemcpyHostToHost), cudaErrorInvalidValue);
  CHECK_ERROR(copy(two, values, 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(two + 1, values, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(copy(nullptr, values, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK_ERROR(cudaMemsetAsync(values, 0, 4, stream), cudaErrorInvalidValue);
  CHECK_ERROR(cudaMemsetAsync(two, 0, 1 << 20, stream), cudaErrorInvalidValue);
  CHECK_CUDA(copy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  CHECK_CUDA(copy(two, values, 8, cudaMemcpyDefault));
}
