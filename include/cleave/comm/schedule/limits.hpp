// The constants that decide how collectives over MPI are carried out.
#pragma once

#include <cstddef>
#include <limits>

#include <cleave/core/shape.hpp>

namespace cleave::detail {

/// Equal on all ranks of a world; small in tests. Bytes count the whole array of a collective
/// unless stated otherwise.
struct ScheduleLimits {
  /// Up to this length one rank per node communicates for all ranks of the node: the cost is that
  /// of the messages, not of the bytes.
  index_t leader_bytes = 2 << 10;
  /// The longest part of an all-to-all that goes by way of the rank of its node that is in the
  /// column of the receiver: in fewer messages, each copied twice more.
  index_t forwarded_part_bytes = 4 << 10;
  /// The longest call, per rank, that is sent in one message with others that run together.
  index_t packed_bytes = 64 << 10;
  /// The longest all-reduce in rank order, times the number of ranks, that every rank reduces
  /// whole.
  index_t gathered_bytes = 32 << 10;
  /// Scratch of a rank for a reduction; longer ones take several rounds.
  index_t scratch_bytes = 8 << 20;
  /// The most elements in one call of the MPI library, whose counts are ints.
  index_t library_count = std::numeric_limits<int>::max();
  /// The longest message; longer ones are split.
  std::size_t message_bytes = std::size_t(1) << 30;
  /// For tests: nodes count as several, each of at most this many ranks. 0: as one.
  int ranks_per_node = 0;
};

}  // namespace cleave::detail
