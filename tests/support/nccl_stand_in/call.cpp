#include "call.hpp"

#include <iterator>

namespace nccl_stand_in {
namespace {

struct Type {
  const char* name;
  std::size_t bytes;
};

// in the order of ncclDataType_t
constexpr Type types[] = {{"int8", 1},    {"uint8", 1},    {"int32", 4},      {"uint32", 4},
                          {"int64", 8},   {"uint64", 8},   {"float16", 2},    {"float32", 4},
                          {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 0}, {"float8e5m2", 0}};

// in the order of ncclRedOp_t
constexpr const char* ops[] = {"sum", "prod", "max", "min", "avg"};

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  return std::size_t(type) < std::size(types) ? types[type].bytes : 0;
}

std::size_t TransferCall::bytes() const { return count * bytes_of(type); }

Range TransferCall::range(const void* begin, Blocks blocks, int rank, int size) const {
  const bool none = blocks == Blocks::none || (is_at_root(blocks) && rank != peer);
  const std::size_t number = none ? 0 : is_each(blocks) ? std::size_t(size) : 1;
  return {static_cast<const std::byte*>(begin), number * bytes()};
}

bool TransferCall::overlaps_itself(int rank, int size) const {
  const Range in = input(rank, size), out = output(rank, size);
  if (!in.overlaps(out)) return false;
  const bool in_place =
      in.begin + own_block(function.reads, rank) == out.begin + own_block(function.writes, rank);
  return !in_place || (is_each(function.reads) && is_each(function.writes));
}

std::string TransferCall::data() const { return std::to_string(count) + ' ' + types[type].name; }

std::string TransferCall::arguments() const {
  std::string text = data();
  if (op) text += std::string(" ") + ops[*op];
  const bool outwards = sends() || is_at_root(function.writes);
  if (peer) text += (outwards ? " to " : " from ") + std::to_string(*peer);
  return text;
}

std::string TransferCall::text() const { return std::string(function.name) + ": " + arguments(); }

}  // namespace nccl_stand_in
