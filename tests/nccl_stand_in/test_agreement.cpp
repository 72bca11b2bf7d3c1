// Ranks that make different calls: the report, and that no rank gets past the call.
#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

/// Lets two ranks make calls that do not match.
/// @param body  (Rank&, int* two buffers of eight ints)
/// @return the faults
std::string disagreement(const auto& body) {
  const Fresh fresh(2);
  std::string faults;
  on_ranks(2,
           [&](Rank& rank) {
             const Buffer<int> buffer(16);
             body(rank, buffer.data, buffer.data + 8);
             ncclResult_t state = ncclSuccess;
             while (state == ncclSuccess) CHECK_NCCL(ncclCommGetAsyncError(rank.comm, &state));
             CHECK(state == ncclInvalidUsage);
             CHECK(std::string(ncclGetLastError(rank.comm)).find("the ranks disagree") == 0);
             for (int i = 0; i < 10; ++i) CHECK(cudaStreamQuery(rank.stream) == cudaErrorNotReady);
             CHECK_RESULT(ncclAllReduce(buffer.data, buffer.data, 1, ncclInt32, ncclSum, rank.comm,
                                        rank.stream),
                          ncclInvalidUsage);
             CHECK_NCCL(ncclCommAbort(rank.comm));
             rank.wait();
           },
           {.destroy = false});
  return cuda_stand_in::take_faults();
}

void reduce(Rank& rank, int* from, int* to, std::size_t count, ncclDataType_t type = ncclInt32,
            ncclRedOp_t op = ncclSum) {
  CHECK_NCCL(ncclAllReduce(from, to, count, type, op, rank.comm, rank.stream));
}

}  // namespace

TEST_CASE("a wrong count is reported") {
  CHECK(disagreement(
            [](Rank& rank, int* a, int* b) { reduce(rank, a, b, rank.rank == 0 ? 4 : 5); }) ==
        "nccl: the ranks disagree about collective 1 on world: rank 0 calls ncclAllReduce: "
        "4 int32 sum, rank 1 calls ncclAllReduce: 5 int32 sum\n");
}

TEST_CASE("a wrong type and a wrong operation are reported") {
  CHECK(disagreement([](Rank& rank, int* a, int* b) {
          reduce(rank, a, b, 4, rank.rank == 0 ? ncclInt32 : ncclUint32);
        }) ==
        "nccl: the ranks disagree about collective 1 on world: rank 0 calls ncclAllReduce: "
        "4 int32 sum, rank 1 calls ncclAllReduce: 4 uint32 sum\n");
  CHECK(disagreement([](Rank& rank, int* a, int* b) {
          reduce(rank, a, b, 4, ncclInt32, rank.rank == 0 ? ncclMax : ncclMin);
        }) ==
        "nccl: the ranks disagree about collective 1 on world: rank 0 calls ncclAllReduce: "
        "4 int32 max, rank 1 calls ncclAllReduce: 4 int32 min\n");
}

TEST_CASE("a wrong root is reported") {
  CHECK(disagreement([](Rank& rank, int* a, int* b) {
          CHECK_NCCL(ncclBroadcast(a, b, 2, ncclInt32, rank.rank, rank.comm, rank.stream));
        }) ==
        "nccl: the ranks disagree about collective 1 on world: rank 0 calls ncclBroadcast: "
        "2 int32 from 0, rank 1 calls ncclBroadcast: 2 int32 from 1\n");
}

TEST_CASE("two collectives swapped on one rank are reported, with their number") {
  CHECK(disagreement([](Rank& rank, int* a, int* b) {
          reduce(rank, a, a, 1);
          const auto gather = [&] {
            CHECK_NCCL(ncclAllGather(a, b, 1, ncclInt32, rank.comm, rank.stream));
          };
          // The second calls may come after the first ones have been found not to match.
          if (rank.rank == 0) gather();
          else reduce(rank, a, a, 1);
        }) ==
        "nccl: the ranks disagree about collective 2 on world: rank 0 calls ncclAllGather: "
        "1 int32, rank 1 calls ncclAllReduce: 1 int32 sum\n");
}

TEST_CASE("groups that are made of different collectives are reported") {
  CHECK(disagreement([](Rank& rank, int* a, int* b) {
          if (rank.rank == 0) CHECK_NCCL(ncclGroupStart());
          reduce(rank, a, a, 1);
          if (rank.rank == 0) {
            reduce(rank, b, b, 1);
            CHECK_NCCL(ncclGroupEnd());
          }
        }) ==
        "nccl: the ranks disagree about collective 1 on world: rank 0 calls ncclAllReduce: "
        "1 int32 sum (1 of 2 collectives in its group), rank 1 calls ncclAllReduce: 1 int32 "
        "sum\n");
}

TEST_CASE("a send and a receive of different counts or types are reported") {
  const auto exchange = [](Rank& rank, int* a, std::size_t count, ncclDataType_t type) {
    if (rank.rank == 0) CHECK_NCCL(ncclSend(a, 4, ncclInt32, 1, rank.comm, rank.stream));
    else CHECK_NCCL(ncclRecv(a, count, type, 0, rank.comm, rank.stream));
  };
  CHECK(disagreement([&](Rank& rank, int* a, int*) { exchange(rank, a, 3, ncclInt32); }) ==
        "nccl: the ranks disagree about transfer 1 from rank 0 to rank 1 on world: rank 0 calls "
        "ncclSend: 4 int32 to 1, rank 1 calls ncclRecv: 3 int32 from 0\n");
  CHECK(disagreement([&](Rank& rank, int* a, int*) { exchange(rank, a, 4, ncclFloat32); }) ==
        "nccl: the ranks disagree about transfer 1 from rank 0 to rank 1 on world: rank 0 calls "
        "ncclSend: 4 int32 to 1, rank 1 calls ncclRecv: 4 float32 from 0\n");
}

TEST_CASE("unrelated calls may differ") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    ncclComm_t own;
    CHECK_NCCL(ncclCommSplit(rank.comm, rank.rank, 0, &own, nullptr));
    const Buffer<int> buffer(std::vector{1, 2, 3});
    if (rank.rank == 0) {
      CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data, 3, ncclInt32, ncclSum, own, rank.stream));
    } else {
      CHECK_NCCL(ncclBroadcast(buffer.data, buffer.data, 2, ncclInt32, 0, own, rank.stream));
    }
    CHECK(buffer.read(rank.stream) == std::vector{1, 2, 3});
    CHECK_NCCL(ncclCommDestroy(own));
  });
}
