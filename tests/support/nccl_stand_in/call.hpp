// One call that transfers data, as a value: its input, its output, and the properties that must
// match the other ranks' calls.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <nccl.h>

#include "cuda_stand_in/machine.hpp"

namespace nccl_stand_in {

enum class Function {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  gather,
  scatter,
  send,
  receive
};

struct Range {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;

  const std::byte* end() const { return begin + bytes; }
  bool overlaps(Range other) const {
    return bytes > 0 && other.bytes > 0 && begin < other.end() && other.begin < end();
  }
};

struct TransferCall {
  Function function{};
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t op = ncclSum;
  int peer = -1;  ///< the root, or the other rank of a send or receive
  CUstream_st* stream = nullptr;
  bool registered = false;    ///< a buffer has been registered with the communicator
  bool unregistered = false;  ///< a buffer has not

  bool to_one() const { return function == Function::send || function == Function::receive; }
  bool reduces() const;
  bool has_root() const;
  std::size_t bytes() const;

  /// The ranges that rank `rank` of `size` reads and writes.
  Range input(int rank, int size) const;
  Range output(int rank, int size) const;
  /// Whether input and output overlap in a way that NCCL does not allow.
  bool overlaps_itself(int rank, int size) const;

  /// "1024 float32 sum to 0"
  std::string text() const;
};

const char* name_of(Function function);
const char* name_of(ncclDataType_t type);
/// Bytes of an element; 0 for an invalid type.
std::size_t bytes_of(ncclDataType_t type);

}  // namespace nccl_stand_in
