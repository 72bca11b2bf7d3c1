// One call that transfers data, as a value: its input, its output, and the properties that must
// match the other ranks' calls.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <nccl.h>

#include "cuda_stand_in/machine.hpp"

namespace nccl_stand_in {

/// What a call reads or writes: `count` elements, or that many for each rank.
enum class Blocks { none, one, each, one_at_root, each_at_root };

struct Function {
  const char* name;
  Blocks reads;
  Blocks writes;
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
  Function function;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type{};
  std::optional<int> peer{};        ///< the root, or the other rank of a send or receive
  std::optional<ncclRedOp_t> op{};  ///< of a reduction
  CUstream_st* stream = nullptr;
  bool registered = false;    ///< a buffer has been registered with the communicator
  bool unregistered = false;  ///< a buffer has not

  bool sends() const { return function.writes == Blocks::none; }
  /// Whether it is a send or a receive.
  bool to_one() const { return sends() || function.reads == Blocks::none; }
  /// Bytes of one block.
  std::size_t bytes() const;

  /// The ranges that rank `rank` of `size` reads and writes.
  Range input(int rank, int size) const { return range(send, function.reads, rank, size); }
  Range output(int rank, int size) const { return range(receive, function.writes, rank, size); }
  /// The offset of the rank's own block in its input, or in its output.
  std::size_t own_block(Blocks blocks, int rank) const {
    return is_each(blocks) ? std::size_t(rank) * bytes() : 0;
  }
  /// Whether input and output overlap in a way that NCCL does not allow.
  bool overlaps_itself(int rank, int size) const;

  /// "1024 float32"
  std::string data() const;
  /// "ncclAllReduce: 1024 float32 sum"
  std::string text() const;
  /// "1024 float32 sum"
  std::string arguments() const;

  static bool is_each(Blocks b) { return b == Blocks::each || b == Blocks::each_at_root; }
  static bool is_at_root(Blocks b) { return b == Blocks::one_at_root || b == Blocks::each_at_root; }

 private:
  Range range(const void* begin, Blocks blocks, int rank, int size) const;
};

/// Bytes of an element; 0 for a type that is not supported.
std::size_t bytes_of(ncclDataType_t type);

}  // namespace nccl_stand_in
