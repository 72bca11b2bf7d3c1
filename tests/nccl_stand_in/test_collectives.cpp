// What collectives leave in memory, for one to four ranks.
#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

/// `count` values of a rank, different for all ranks.
std::vector<int> values_of(int rank, int count) {
  std::vector<int> values;
  for (int i = 0; i < count; ++i) values.push_back(100 * rank + i);
  return values;
}

int sum_at(int size, int i) {
  int sum = 0;
  for (int r = 0; r < size; ++r) sum += 100 * r + i;
  return sum;
}

void on_all_sizes(const auto& body) {
  for (const int size : {1, 2, 3, 4}) {
    const Fresh fresh(size);
    on_ranks(size, body);
  }
}

}  // namespace

TEST_CASE("an all-reduce adds, in and out of place") {
  on_all_sizes([](Rank& rank) {
    const Buffer<int> from(values_of(rank.rank, 5)), to(5);
    CHECK_NCCL(ncclAllReduce(from.data, to.data, 5, ncclInt32, ncclSum, rank.comm, rank.stream));
    CHECK_NCCL(ncclAllReduce(from.data, from.data, 5, ncclInt32, ncclSum, rank.comm, rank.stream));
    std::vector<int> expected;
    for (int i = 0; i < 5; ++i) expected.push_back(sum_at(rank.size, i));
    CHECK(to.read(rank.stream) == expected);
    CHECK(from.read(rank.stream) == expected);
  });
}

TEST_CASE("a reduce-scatter gives each rank its block of the sum, in place too") {
  on_all_sizes([](Rank& rank) {
    const int blocks = rank.size;
    const Buffer<int> from(values_of(rank.rank, 2 * blocks)), to(2);
    int* own = from.data + 2 * rank.rank;
    CHECK_NCCL(
        ncclReduceScatter(from.data, to.data, 2, ncclInt32, ncclSum, rank.comm, rank.stream));
    CHECK_NCCL(ncclReduceScatter(from.data, own, 2, ncclInt32, ncclSum, rank.comm, rank.stream));
    const std::vector<int> expected{sum_at(rank.size, 2 * rank.rank),
                                    sum_at(rank.size, 2 * rank.rank + 1)};
    CHECK(to.read(rank.stream) == expected);
    const std::vector<int> after = from.read(rank.stream);
    for (int i = 0; i < 2 * blocks; ++i)
      CHECK(after[std::size_t(i)] ==
            (i / 2 == rank.rank ? sum_at(rank.size, i) : 100 * rank.rank + i));
  });
}

TEST_CASE("an all-gather puts the ranks' values one behind the other, in place too") {
  on_all_sizes([](Rank& rank) {
    const Buffer<int> from(values_of(rank.rank, 2)), to(std::size_t(2 * rank.size));
    std::vector<int> expected;
    for (int r = 0; r < rank.size; ++r)
      for (const int value : values_of(r, 2)) expected.push_back(value);
    CHECK_NCCL(ncclAllGather(from.data, to.data, 2, ncclInt32, rank.comm, rank.stream));
    CHECK(to.read(rank.stream) == expected);
    const Buffer<int> all(std::size_t(2 * rank.size));
    CHECK_CUDA(cudaMemcpyAsync(all.data + 2 * rank.rank, from.data, 8, cudaMemcpyDeviceToDevice,
                               rank.stream));
    CHECK_NCCL(
        ncclAllGather(all.data + 2 * rank.rank, all.data, 2, ncclInt32, rank.comm, rank.stream));
    CHECK(all.read(rank.stream) == expected);
  });
}

TEST_CASE("a broadcast copies the root's values; other ranks need no send buffer") {
  on_all_sizes([](Rank& rank) {
    const int root = rank.size - 1;
    const Buffer<int> buffer(values_of(rank.rank, 3)), to(3);
    const bool sends = rank.rank == root;
    CHECK_NCCL(ncclBroadcast(sends ? buffer.data : nullptr, to.data, 3, ncclInt32, root, rank.comm,
                             rank.stream));
    CHECK_NCCL(ncclBroadcast(buffer.data, buffer.data, 3, ncclInt32, root, rank.comm, rank.stream));
    CHECK(to.read(rank.stream) == values_of(root, 3));
    CHECK(buffer.read(rank.stream) == values_of(root, 3));
  });
}

TEST_CASE("an all-to-all transposes blocks") {
  on_all_sizes([](Rank& rank) {
    const Buffer<int> from(values_of(rank.rank, 2 * rank.size)), to(std::size_t(2 * rank.size));
    CHECK_NCCL(ncclAlltoAll(from.data, to.data, 2, ncclInt32, rank.comm, rank.stream));
    std::vector<int> expected;
    for (int r = 0; r < rank.size; ++r)
      for (int i = 0; i < 2; ++i) expected.push_back(100 * r + 2 * rank.rank + i);
    CHECK(to.read(rank.stream) == expected);
  });
}

TEST_CASE("a gather and a scatter undo each other") {
  on_all_sizes([](Rank& rank) {
    const int root = rank.size - 1;
    const bool is_root = rank.rank == root;
    const Buffer<int> from(values_of(rank.rank, 2)), all(std::size_t(2 * rank.size)), back(2);
    CHECK_NCCL(ncclGather(from.data, is_root ? all.data : nullptr, 2, ncclInt32, root, rank.comm,
                          rank.stream));
    if (is_root)
      for (int r = 0; r < rank.size; ++r)
        for (int i = 0; i < 2; ++i)
          CHECK(all.read(rank.stream)[std::size_t(2 * r + i)] == 100 * r + i);
    CHECK_NCCL(ncclScatter(is_root ? all.data : nullptr, back.data, 2, ncclInt32, root, rank.comm,
                           rank.stream));
    CHECK(back.read(rank.stream) == values_of(rank.rank, 2));
  });
}

TEST_CASE("a collective of nothing is nothing, even with null pointers") {
  on_all_sizes([](Rank& rank) {
    const std::size_t before = cuda_stand_in::pending_operations();
    if (rank.rank == 0) {
      CHECK_NCCL(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, rank.comm, rank.stream));
      CHECK(cuda_stand_in::pending_operations() == before);
    }
    rank.wait();
  });
}
