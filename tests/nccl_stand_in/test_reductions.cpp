// Every type and operation, against loops in double or in 64-bit integers.
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
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

/// The small whole number that a rank has at a place: exact in every type, as are all results.
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
  reduces<__nv_fp8_e4m3>(ncclFloat8e4m3, 0.2);
  reduces<__nv_fp8_e5m2>(ncclFloat8e5m2, 0.3);
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

TEST_CASE(
    "a premultiplied sum takes each rank's own scalar, from the host at once, from the device "
    "when it runs") {
  const Fresh fresh(2);
  std::barrier here(2);
  on_ranks(2, [&](Rank& rank) {
    const Buffer<float> buffer(std::vector{1.0f, 2.0f}), result(2), scalar(std::vector{0.0f});
    float factor = rank.rank == 0 ? 0.5f : 4.0f;
    ncclRedOp_t op;
    CHECK_NCCL(
        ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, rank.comm));
    factor = -1;
    CHECK_NCCL(ncclAllReduce(buffer.data, result.data, 2, ncclFloat32, op, rank.comm, rank.stream));
    CHECK_NCCL(ncclRedOpDestroy(op, rank.comm));
    CHECK(result.read(rank.stream) == std::vector{4.5f, 9.0f});

    CHECK_NCCL(
        ncclRedOpCreatePreMulSum(&op, scalar.data, ncclFloat32, ncclScalarDevice, rank.comm));
    CHECK_NCCL(ncclAllReduce(buffer.data, result.data, 2, ncclFloat32, op, rank.comm, rank.stream));
    CHECK_NCCL(ncclRedOpDestroy(op, rank.comm));
    const float later = 3;
    CHECK_CUDA(cudaMemcpy(scalar.data, &later, 4, cudaMemcpyHostToDevice));
    here.arrive_and_wait();  // who reads first lets both collectives run
    CHECK(result.read(rank.stream) == std::vector{6.0f, 12.0f});
  });
}

TEST_CASE("a premultiplied sum is for its type and its communicator only") {
  const Fresh fresh(1);
  on_ranks(1, [](Rank& rank) {
    const Buffer<double> buffer(1);
    float factor = 1;
    ncclRedOp_t op;
    CHECK_NCCL(
        ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, rank.comm));
    CHECK_RESULT(
        ncclAllReduce(buffer.data, buffer.data, 1, ncclFloat64, op, rank.comm, rank.stream),
        ncclInvalidArgument);
    CHECK(std::string(ncclGetLastError(nullptr)) ==
          "ncclAllReduce: the operation is for another data type");
    CHECK_NCCL(ncclRedOpDestroy(op, rank.comm));
    CHECK_RESULT(
        ncclAllReduce(buffer.data, buffer.data, 1, ncclFloat32, op, rank.comm, rank.stream),
        ncclInvalidArgument);
    CHECK_RESULT(ncclRedOpDestroy(op, rank.comm), ncclInvalidArgument);
  });
  fresh.expect_faults(
      "nccl: ncclAllReduce: the operation is none of this communicator\n"
      "nccl: ncclRedOpDestroy: the operation is none of this communicator\n");
}
