// Chooses how a collective is carried out where ranks share memory or use MPI: the only place that
// does. The choice depends on values that all ranks of the group share: the call, the nodes of the
// group, and the constants of topology.hpp.
#pragma once

#include <cstdint>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/schedule/topology.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/core/reduce_op.hpp>
#include <cleave/core/require_reduction.hpp>

namespace cleave::inline v0::detail {

enum class Algorithm : std::uint8_t {
  direct,         ///< ranks read each other's memory
  columns,        ///< two levels: direct on each node, columns between nodes (two_level.hpp)
  leaders,        ///< the same, where one rank of each node communicates for all of its ranks
  forwarded,      ///< the same, for a short all_to_all: by way of the column of the receiver
  library,        ///< one call of the MPI library
  messages,       ///< MPI_Isend and MPI_Irecv
  in_rank_order,  ///< a reduction of our own: ranks exchange addends (flat.hpp)
};

/// Whether MPI has an equivalent: it has no 16-bit floats and bools, no averages, no products of
/// complex numbers, and no floating-point maximum or minimum that propagates NaNs; and Open MPI 4.1
/// saturates sums of 8- and 16-bit integers instead of wrapping (ompi/mca/op/avx).
inline bool library_reduces(DType type, ReduceOp op) {
  if (op == ReduceOp::avg) return false;
  if (is_integer_dtype(type)) return op != ReduceOp::sum || size_of(type) > 2;
  if (is_complex_dtype(type)) return op == ReduceOp::sum;
  return (type == DType::float32 || type == DType::float64) &&
         (op == ReduceOp::sum || op == ReduceOp::product);
}

/// Whether a reduction gives the same result, or one with the usual rounding errors, in any order:
/// partial results may be rounded.
/// @param reproducible  whether sums are added in rank order, so that they do not depend on the run
inline bool reduces_in_any_order(DType type, ReduceOp op, bool reproducible) {
  if (op == ReduceOp::avg) return false;
  const bool rounds = !is_integer_dtype(type) && type != DType::boolean &&
                      (op == ReduceOp::sum || op == ReduceOp::product);
  const bool is_short = type == DType::float16 || type == DType::bfloat16;
  return !rounds || !(is_short || reproducible);
}

/// For ranks that share no memory.
/// @param in_any_order  whether a reduction may be left to the library
inline Algorithm select_flat(const Collective& c, const ScheduleLimits& limits,
                             bool in_any_order = true) {
  const bool reduces = is_reduction(c.kind);
  index_t elements = c.global_count;
  if (reduces) elements = c.source.size();
  if (c.kind == CollectiveKind::all_gather) elements = c.destination.size();
  switch (c.kind) {
    case CollectiveKind::barrier:
    case CollectiveKind::broadcast: return Algorithm::library;
    case CollectiveKind::scatter:
    case CollectiveKind::gather:
    case CollectiveKind::exchange: return Algorithm::messages;
    default: break;
  }
  if (elements > 0 && elements <= limits.library_count &&
      (!reduces || (in_any_order && library_reduces(c.dtype(), c.op))))
    return Algorithm::library;
  return reduces ? Algorithm::in_rank_order : Algorithm::messages;
}

/// For any group.
inline Algorithm select(const Collective& c, const Topology& topology) {
  if (topology.shares_memory) return Algorithm::direct;
  const ScheduleLimits& limits = topology.limits;
  const bool in_any_order =
      !is_reduction(c.kind) || reduces_in_any_order(c.dtype(), c.op, topology.reproducible);
  const bool two_levels =
      topology.grid.nodes > 0 && in_any_order &&
      (c.kind == CollectiveKind::all_gather || is_reduction(c.kind) || is_exchange(c.kind));
  if (!two_levels) return select_flat(c, limits, in_any_order);
  if (is_exchange(c.kind)) {
    const auto pairs = index_t(topology.size) * index_t(topology.size);
    const bool is_short =
        c.kind == CollectiveKind::all_to_all && c.even && c.global_count >= pairs &&
        c.global_count / pairs * index_t(size_of(c.dtype())) <= limits.forwarded_piece_bytes;
    return is_short ? Algorithm::forwarded : Algorithm::columns;
  }
  const index_t bytes =
      c.kind == CollectiveKind::all_gather ? c.destination.bytes() : c.source.bytes();
  return bytes <= limits.leader_bytes ? Algorithm::leaders : Algorithm::columns;
}

/// Whether the messages of a call between nodes cost more than its bytes: it then goes in one
/// message for each pair of ranks with others that run together (packed.hpp).
inline bool is_packed(const Collective& c, const Topology& topology) {
  const bool kind = c.kind == CollectiveKind::all_gather ||
                    c.kind == CollectiveKind::reduce_scatter || is_exchange(c.kind);
  const index_t bytes = c.global_count * index_t(size_of(c.dtype()));
  return !topology.shares_memory && kind && bytes > 0 &&
         bytes <= topology.limits.packed_bytes * topology.size;
}

}  // namespace cleave::inline v0::detail
