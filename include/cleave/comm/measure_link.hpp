// Measures communication costs among the ranks of a group (CLEAVE_TUNE=measure), by all-gathers,
// which every backend supports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/exchange_values.hpp>
#include <cleave/comm/machine.hpp>
#include <cleave/comm/pieces.hpp>
#include <cleave/core/clock.hpp>
#include <cleave/tensor/storage.hpp>

namespace cleave::inline v0::detail {

/// Seconds of an all-gather of `each` bytes per rank, on the slowest rank: the same on all ranks.
inline double seconds_of_gather(Communicator& group, index_t each) {
  const index_t all = group.size() * each;
  const std::shared_ptr<void> from = allocate_bytes(Host{}, std::size_t(each));
  const std::shared_ptr<void> to = allocate_bytes(Host{}, std::size_t(all));
  std::memset(from.get(), 0, std::size_t(each));
  const std::vector<Box> pieces = flat_pieces(all, group.size());
  Collective c =
      Collective::all_gather(ConstView::dense(from.get(), DType::uint8, Shape::filled(1, each)),
                             View::dense(to.get(), DType::uint8, Shape::filled(1, all)), pieces)
          .named("run");
  c.even = true;
  const auto seconds = [&](int calls) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) group.run(c);
    return reduce_values(group, ReduceOp::max, Seconds(Clock::now() - start).count() / calls,
                         "run");
  };
  group.run(c);  // the first call may make groups and map memory
  const int calls = int(std::clamp(0.004 / seconds(1), 1.0, 100.0));
  double least = seconds(calls);
  for (int i = 0; i < 4; ++i) least = std::min(least, seconds(calls));
  return least;
}

/// Times short and long all-gathers; takes some tenths of a second if one takes less than 10 ms.
///
/// @param all  all ranks that measure at the same time, in several groups: the costliest group
///             counts
/// @return     the same on all ranks of `all`; unknown costs if groups have one rank
/// @collective every rank of `all`
inline LinkCosts measure_link(Communicator& group, Communicator& all) {
  LinkCosts costs;
  const index_t ranks = group.size();
  if (ranks == 1) return costs;
  constexpr index_t few = 64, most = index_t(4) << 20;
  const double latency = seconds_of_gather(group, std::max<index_t>(1, few / ranks));
  double seconds = latency;
  index_t each = 0;
  for (index_t bytes = index_t(64) << 10; bytes <= most && seconds < 2 * latency + 0.01;
       bytes *= 4) {
    each = std::max<index_t>(1, bytes / ranks);
    seconds = seconds_of_gather(group, each);
  }
  const double us = std::max((seconds - latency) * 1e6, 1e-3);
  costs.latency_us = reduce_values(all, ReduceOp::max, latency * 1e6, "run");
  costs.bytes_per_us = -reduce_values(all, ReduceOp::max, -double(each * (ranks - 1)) / us, "run");
  return costs;
}

}  // namespace cleave::inline v0::detail
