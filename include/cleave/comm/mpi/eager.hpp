// Which part of a message goes eagerly: without a reply from its receiver, but copied once more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include <cleave/comm/mpi/handle.hpp>

namespace cleave::detail {

/// Maximum bytes of one message; longer ones are split. The same on all ranks. Small in tests.
inline std::size_t mpi_message_limit = std::size_t(1) << 30;

/// The longest part that Open MPI sends over TCP eagerly (btl_tcp_eager_limit: 64 KiB with the
/// header).
inline std::size_t eager_part() { return std::min(std::size_t(60) << 10, mpi_message_limit); }

/// The total bytes of a rank's messages, to all peers, up to which they are sent in eager parts,
/// unless the network is slow: once no cache holds the data, the copy takes longer than a reply.
inline constexpr std::size_t least_eager_bytes = std::size_t(1) << 20;

/// The same for a network with this round trip: what is copied, at 2 GB/s, while a reply arrives.
inline std::size_t eager_bytes_of(double round_trip_seconds) {
  constexpr double copied_per_second = 2e9, most = 4 << 20;
  return std::max(least_eager_bytes,
                  std::size_t(std::clamp(copied_per_second * round_trip_seconds, 0., most)));
}

/// The number of leading bytes of a message that are sent in eager parts: all, as long as those to
/// all peers do not exceed `eager_bytes`. Of a longer message between two ranks, a quarter or
/// 512 KiB overlaps the reply that the rest waits for; with more peers, their messages do.
inline std::size_t bytes_in_parts(std::size_t bytes, int ranks, std::size_t eager_bytes) {
  const auto peers = std::size_t(std::max(1, ranks - 1));
  if (peers == 1)
    return bytes <= least_eager_bytes ? bytes : std::min(least_eager_bytes / 2, bytes / 4);
  return bytes <= eager_bytes / peers ? bytes : 0;
}

/// The fastest of a few round trips between the first rank of `comm` and the first one on another
/// node, in seconds; 0 if there is none.
///
/// @param comm, nodes  ranks whose messages do not mix with others, and their nodes (nodes_of)
/// @return             the same on all ranks
/// @collective         every rank of `comm`
inline double network_round_trip(MPI_Comm comm, std::span<const int> nodes) {
  const auto other = std::ranges::find_if(nodes, [&](int node) { return node != nodes[0]; });
  if (other == nodes.end()) return 0;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const int far = int(other - nodes.begin());
  const auto send = [&](int peer) {
    mpi_check(MPI_Send(nullptr, 0, MPI_BYTE, peer, 0, comm), "MPI_Send");
  };
  const auto receive = [&](int peer) {
    mpi_check(MPI_Recv(nullptr, 0, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE), "MPI_Recv");
  };
  double fastest = std::numeric_limits<double>::max();
  for (int trip = 0; trip < 5; ++trip) {
    const double start = MPI_Wtime();
    if (rank == 0) send(far), receive(far);
    if (rank == far) receive(0), send(0);
    fastest = std::min(fastest, MPI_Wtime() - start);
  }
  mpi_check(MPI_Bcast(&fastest, 1, MPI_DOUBLE, 0, comm), "MPI_Bcast");
  return fastest;
}

}  // namespace cleave::detail
