// Every type and operation, compared with loops in double or 64-bit integers.
#include <cmath>
#include <cstdint>
#include <limits>

#include "ranks.hpp"

using namespace nccl_stand_in;

namespace {

constexpr int ranks = 3;

template <class T>
double as_double(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return double(value);
  } else {
    return double(float(value));
  }
}

/// A rank's small integer at a place: exact in every type, as are all results.
template <class T>
T value_at(int rank, int i) {
  const int value = (rank + 1) * (i % 2 == 0 ? 1 : 2);
  if constexpr (std::is_arithmetic_v<T>) {
    return T(value);
  } else {
    return T(float(value));
  }
}

double expected(ncclRedOp_t op, int i) {
  double result = as_double(value_at<float>(0, i));
  for (int r = 1; r < ranks; ++r) {
    const double value = as_double(value_at<float>(r, i));
    if (op == ncclProd) result *= value;
    else if (op == ncclMax) result = std::max(result, value);
    else if (op == ncclMin) result = std::min(result, value);
    else result += value;
  }
  return op == ncclAvg ? result / ranks : result;
}

template <class T>
void reduces(ncclDataType_t type, double tolerance) {
  const Fresh fresh(ranks);
  on_ranks(ranks, [&](Rank& rank) {
    for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
      std::vector<T> values;
      for (int i = 0; i < 4; ++i) values.push_back(value_at<T>(rank.rank, i));
      const Buffer<T> buffer(values);
      CHECK_NCCL(ncclAllReduce(buffer.data, buffer.data, 4, type, op, rank.comm, rank.stream));
      const std::vector<T> result = buffer.read(rank.stream);
      for (int i = 0; i < 4; ++i) {
        CAPTURE(int(op));
        CHECK(std::abs(as_double(result[std::size_t(i)]) - expected(op, i)) <=
              tolerance * expected(op, i));
      }
    }
  });
}

}  // namespace

TEST_CASE("integers are reduced exactly") {
  reduces<std::int8_t>(ncclInt8, 0);
  reduces<std::uint8_t>(ncclUint8, 0);
  reduces<std::int32_t>(ncclInt32, 0);
  reduces<std::uint32_t>(ncclUint32, 0);
  reduces<std::int64_t>(ncclInt64, 0);
  reduces<std::uint64_t>(ncclUint64, 0);
}

TEST_CASE("floating-point numbers are reduced to the precision of their type") {
  reduces<double>(ncclFloat64, 1e-15);
  reduces<float>(ncclFloat32, 1e-6);
  reduces<__half>(ncclFloat16, 1e-3);
  reduces<__nv_bfloat16>(ncclBfloat16, 1e-2);
}

TEST_CASE("64-bit integers keep all their bits, and wrap around") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    constexpr std::int64_t big = (std::int64_t(1) << 53) + 1;
    const Buffer<std::int64_t> buffer(
        std::vector{big, rank.rank == 0 ? std::numeric_limits<std::int64_t>::max() : 1});
    CHECK_NCCL(
        ncclAllReduce(buffer.data, buffer.data, 2, ncclInt64, ncclSum, rank.comm, rank.stream));
    CHECK(buffer.read(rank.stream) ==
          std::vector{2 * big, std::numeric_limits<std::int64_t>::min()});
  });
}

TEST_CASE("maxima of unsigned numbers are unsigned, of signed numbers signed") {
  const Fresh fresh(2);
  on_ranks(2, [](Rank& rank) {
    const Buffer<std::uint8_t> bytes(std::vector<std::uint8_t>{std::uint8_t(1 + 199 * rank.rank)});
    CHECK_NCCL(
        ncclAllReduce(bytes.data, bytes.data, 1, ncclUint8, ncclMax, rank.comm, rank.stream));
    CHECK(bytes.read(rank.stream)[0] == 200);
    const Buffer<std::int8_t> chars(std::vector<std::int8_t>{std::int8_t(1 - 57 * rank.rank)});
    CHECK_NCCL(ncclAllReduce(chars.data, chars.data, 1, ncclInt8, ncclMax, rank.comm, rank.stream));
    CHECK(chars.read(rank.stream)[0] == 1);
  });
}
