// Every type and operation.
#include <cstdint>
#include <limits>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

/// The reduction of one number of each rank.
template <class T>
T reduced(const Rank& rank, ncclDataType_t type, ncclRedOp_t op, T mine) {
  const Buffer<T> buffer(std::vector<T>{mine});
  CHECK_NCCL(ncclAllReduce(buffer, buffer, 1, type, op, rank.comm, rank.stream));
  return buffer.read(rank.stream)[0];
}

/// Small integers, which are exact in every type, as are all results.
template <class T>
void reduces(const Rank& rank, ncclDataType_t type) {
  const T mine(rank.rank == 0 ? 3.0f : 5.0f);
  CHECK(float(reduced(rank, type, ncclSum, mine)) == 8);
  CHECK(float(reduced(rank, type, ncclProd, mine)) == 15);
  CHECK(float(reduced(rank, type, ncclMax, mine)) == 5);
  CHECK(float(reduced(rank, type, ncclMin, mine)) == 3);
  CHECK(float(reduced(rank, type, ncclAvg, mine)) == 4);
}

}  // namespace

TEST_CASE("every type is reduced by every operation") {
  const Fresh fresh;
  on_ranks(2, [](Rank& rank) {
    reduces<std::int8_t>(rank, ncclInt8);
    reduces<std::uint8_t>(rank, ncclUint8);
    reduces<std::int32_t>(rank, ncclInt32);
    reduces<std::uint32_t>(rank, ncclUint32);
    reduces<std::int64_t>(rank, ncclInt64);
    reduces<std::uint64_t>(rank, ncclUint64);
    reduces<double>(rank, ncclFloat64);
    reduces<float>(rank, ncclFloat32);
    reduces<__half>(rank, ncclFloat16);
    reduces<__nv_bfloat16>(rank, ncclBfloat16);
  });
}

TEST_CASE("integers keep all their bits, wrap around, and are compared with their signs") {
  const Fresh fresh;
  on_ranks(2, [](Rank& rank) {
    using Limits = std::numeric_limits<std::int64_t>;
    const std::int64_t big = (std::int64_t(1) << 53) + 1, last = rank.rank == 0 ? Limits::max() : 1;
    CHECK(reduced(rank, ncclInt64, ncclSum, big) == 2 * big);
    CHECK(reduced(rank, ncclInt64, ncclSum, last) == Limits::min());
    CHECK(reduced(rank, ncclUint8, ncclMax, std::uint8_t(1 + 199 * rank.rank)) == 200);
    CHECK(reduced(rank, ncclInt8, ncclMax, std::int8_t(1 - 57 * rank.rank)) == 1);
  });
}
