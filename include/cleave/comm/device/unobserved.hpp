// What ranks tell each other on behalf of the library: no user has asked for it, no trace shows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/core/shape.hpp>

namespace cleave::detail {

struct Unobserved : Communicator {
  using Communicator::pass_on;
};

/// @collective every rank of the group
inline void run_unobserved(Communicator& host, const Collective& call) {
  Unobserved::pass_on(host, {&call, 1});
}

/// What each rank says, in rank order.
///
/// @param operation  what the user called, for errors
/// @collective       every rank of the group
inline std::vector<std::int64_t> allgather(Communicator& host, std::int64_t mine,
                                           const char* operation) {
  std::vector<std::int64_t> said(std::size_t(host.size())), all(said.size());
  said[std::size_t(host.rank())] = mine;
  const Shape extents(std::array<index_t, 1>{host.size()});
  Collective call;
  call.kind = CollectiveKind::all_reduce;
  call.op = ReduceOp::sum;  // of which one is not zero
  call.source = ConstView::dense(said.data(), DType::int64, extents);
  call.destination = View::dense(all.data(), DType::int64, extents);
  call.operation = operation;
  run_unobserved(host, call);
  return all;
}

/// Fills `data` with what the first rank has there. @see allgather
/// @collective every rank of the group
inline void bcast(Communicator& host, void* data, std::size_t bytes, const char* operation) {
  const Shape extents(std::array<index_t, 1>{index_t(bytes)});
  Collective call;
  call.kind = CollectiveKind::broadcast;
  call.source = ConstView::dense(data, DType::uint8, extents);
  call.destination = View::dense(data, DType::uint8, extents);
  call.operation = operation;
  run_unobserved(host, call);
}

}  // namespace cleave::detail
