// Communication for the library's own purposes: not requested by the user, not shown in traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/exchange_values.hpp>

namespace cleave::detail {

struct Unobserved : Communicator {
  using Communicator::pass_on;
};

/// @collective every rank of the group
inline void run_unobserved(Communicator& host, const Collective& call) {
  Unobserved::pass_on(host, {&call, 1});
}

/// Gathers one number of each rank, in rank order.
///
/// @param operation  what the user called, for errors
/// @collective       every rank of the group
inline std::vector<std::int64_t> allgather(Communicator& host, std::int64_t mine,
                                           const char* operation) {
  return gather_values(host, mine, operation, run_unobserved);
}

/// Copies `data` of the first rank to all ranks. @see allgather
/// @collective every rank of the group
inline void bcast(Communicator& host, void* data, std::size_t bytes, const char* operation) {
  const View values = View::dense(data, DType::uint8, Shape::filled(1, index_t(bytes)));
  run_unobserved(host, broadcast_call(values, operation));
}

}  // namespace cleave::detail
