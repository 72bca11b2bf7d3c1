// Ranks that make different calls: the report, and that no rank gets past the call.
#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

/// Lets two ranks make calls that do not match, and CHECKs the report.
/// @param body  (Rank&, int* two buffers of eight ints)
void disagree(const std::string& about, const std::string& first, const std::string& second,
              const auto& body) {
  const Fresh fresh;
  on_ranks(2, End::none, [&](Rank& rank) {
    const Buffer<int> buffer(16);
    body(rank, buffer, buffer + 8);
    while (rank.async_error() == ncclSuccess) std::this_thread::yield();
    CHECK(rank.async_error() == ncclInvalidUsage);
    CHECK(std::string(ncclGetLastError(rank.comm)).find("the ranks disagree") == 0);
    rank.hangs();
    CHECK_RESULT(rank.sum(buffer), ncclInvalidUsage);
    CHECK_NCCL(ncclCommAbort(rank.comm));
    rank.wait();
  });
  CHECK(take_faults() == "nccl: the ranks disagree about " + about + " on world: rank 0 calls " +
                             first + ", rank 1 calls " + second + "\n");
}

}  // namespace

TEST_CASE("a wrong count, type, operation or root is reported") {
  const auto reduction = [](auto count, ncclDataType_t type, ncclRedOp_t op) {
    return [=](Rank& rank, int* a, int* b) {
      CHECK_NCCL(ncclAllReduce(a, b, 4 + count * rank.rank, rank.rank == 0 ? ncclInt32 : type,
                               rank.rank == 0 ? ncclSum : op, rank.comm, rank.stream));
    };
  };
  const std::string what = "collective 1", first = "ncclAllReduce: 4 int32 sum";
  disagree(what, first, "ncclAllReduce: 5 int32 sum", reduction(1u, ncclInt32, ncclSum));
  disagree(what, first, "ncclAllReduce: 4 uint32 sum", reduction(0u, ncclUint32, ncclSum));
  disagree(what, first, "ncclAllReduce: 4 int32 min", reduction(0u, ncclInt32, ncclMin));
  disagree(what, "ncclBroadcast: 2 int32 from 0", "ncclBroadcast: 2 int32 from 1",
           [](Rank& rank, int* a, int* b) {
             CHECK_NCCL(ncclBroadcast(a, b, 2, ncclInt32, rank.rank, rank.comm, rank.stream));
           });
}

TEST_CASE("two collectives swapped on one rank are reported, with their number") {
  disagree("collective 2", "ncclAllGather: 1 int32", "ncclAllReduce: 1 int32 sum",
           [](Rank& rank, int* a, int* b) {
             CHECK_NCCL(rank.sum(a, a));
             // The second calls may come after the first ones have been found not to match.
             CHECK_NCCL(rank.rank == 0 ? ncclAllGather(a, b, 1, ncclInt32, rank.comm, rank.stream)
                                       : rank.sum(a, a));
           });
}

TEST_CASE("groups that are made of different collectives are reported") {
  disagree("collective 1", "ncclAllReduce: 1 int32 sum (1 of 2 collectives in its group)",
           "ncclAllReduce: 1 int32 sum", [](Rank& rank, int* a, int* b) {
             group([&] {
               CHECK_NCCL(rank.sum(a, a));
               if (rank.rank == 0) CHECK_NCCL(rank.sum(b, b));
             });
           });
}

TEST_CASE("a send and a receive of different counts or types are reported") {
  const auto receive = [](std::size_t count, ncclDataType_t type) {
    return [=](Rank& rank, int* a, int*) {
      CHECK_NCCL(rank.rank == 0 ? rank.send(a, 1, 4)
                                : ncclRecv(a, count, type, 0, rank.comm, rank.stream));
    };
  };
  const std::string what = "transfer 1 from rank 0 to rank 1", sent = "ncclSend: 4 int32 to 1";
  disagree(what, sent, "ncclRecv: 3 int32 from 0", receive(3, ncclInt32));
  disagree(what, sent, "ncclRecv: 4 float32 from 0", receive(4, ncclFloat32));
}
