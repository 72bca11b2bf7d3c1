// Measures the network between two nodes when a world is made: its round trip, and which messages
// arrive sooner in eager parts. That depends on more than the round trip: where TCP paces what it
// sends (BBR), parts win at all lengths; where it does not (CUBIC, Reno), copying them is soon
// slower than the reply that they save.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <cleave/comm/mpi/eager.hpp>
#include <cleave/comm/mpi/handle.hpp>

namespace cleave::detail {

/// One of two ranks that measure the network between them. Both call the same functions.
class NetworkProbe {
 public:
  /// @param first  of the two ranks, whose measurements count on both
  NetworkProbe(MPI_Comm comm, int peer, bool first) : comm_(comm), peer_(peer), first_(first) {}

  /// The fastest of a few round trips, in seconds.
  double round_trip() {
    double fastest = std::numeric_limits<double>::max();
    for (int trip = 0; trip < 5; ++trip) {
      const double start = MPI_Wtime();
      if (first_) send(nullptr, 0), receive(nullptr, 0);
      else receive(nullptr, 0), send(nullptr, 0);
      fastest = std::min(fastest, MPI_Wtime() - start);
    }
    return agreed(fastest);
  }

  /// Whether two messages of this length, one in each direction, arrive sooner in eager parts, by
  /// more than a twentieth.
  bool sooner_in_parts(std::size_t bytes) {
    constexpr int turns = 5;
    to_peer_.resize(bytes), from_peer_.resize(bytes);
    std::vector<double> parts, whole;
    for (int turn = 0; turn <= turns; ++turn) {
      const double in_two_ways[] = {seconds(bytes, false), seconds(bytes, true)};
      if (turn == 0) continue;  // the network and the caches are cold
      whole.push_back(in_two_ways[0]);
      parts.push_back(in_two_ways[1]);
    }
    const auto median = [](std::vector<double>& times) {
      std::nth_element(times.begin(), times.begin() + turns / 2, times.end());
      return times[turns / 2];
    };
    return agreed(1.05 * median(parts) < median(whole) ? 1 : 0) != 0;
  }

 private:
  void send(const void* data, int bytes) {
    mpi_check(MPI_Send(data, bytes, MPI_BYTE, peer_, 0, comm_), "MPI_Send");
  }
  void receive(void* data, int bytes) {
    mpi_check(MPI_Recv(data, bytes, MPI_BYTE, peer_, 0, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
  }

  /// The number of the first of the two ranks. Neither rank is ahead afterwards.
  double agreed(double number) {
    double answer = number;
    if (first_) send(&number, sizeof number), receive(&answer, sizeof answer);
    else receive(&answer, sizeof answer), send(&answer, sizeof answer);
    return answer;
  }

  double seconds(std::size_t bytes, bool in_parts) {
    const std::size_t parts = in_parts ? bytes : 0;
    agreed(0);
    const double start = MPI_Wtime();
    std::vector<MPI_Request> requests;
    for_each_part(bytes, parts, [&](std::size_t at, std::size_t part) {
      mpi_check(MPI_Irecv(from_peer_.data() + at, int(part), MPI_BYTE, peer_, 0, comm_,
                          &requests.emplace_back()),
                "MPI_Irecv");
    });
    for_each_part(bytes, parts, [&](std::size_t at, std::size_t part) {
      mpi_check(MPI_Isend(to_peer_.data() + at, int(part), MPI_BYTE, peer_, 0, comm_,
                          &requests.emplace_back()),
                "MPI_Isend");
    });
    mpi_check(MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
              "MPI_Waitall");
    return MPI_Wtime() - start;
  }

  MPI_Comm comm_;
  int peer_;
  bool first_;
  std::vector<std::byte> to_peer_{}, from_peer_{};
};

/// For several peers on a network with this round trip: what is copied, at 2 GB/s (no cache holds
/// that many messages), while a reply arrives; from 1 MiB to 4 MiB.
inline std::size_t eager_bytes_to_all(double round_trip_seconds) {
  constexpr double copied_per_second = 2e9, least = 1 << 20, most = 4 << 20;
  return std::size_t(std::clamp(copied_per_second * round_trip_seconds, least, most));
}

/// The eager bytes of messages between the nodes of `comm`, which the first rank and the first one
/// on another node measure; the defaults if there is none.
///
/// @param comm, nodes  ranks whose messages do not mix with others, and their nodes (nodes_of)
/// @return             the same on all ranks
/// @cost               40 to 150 ms, and 8 MiB on these two ranks; if a round trip takes half a
///                     millisecond, five of them
/// @collective         every rank of `comm`
inline EagerBytes eager_bytes_between(MPI_Comm comm, std::span<const int> nodes) {
  EagerBytes eager;
  const auto other = std::ranges::find_if(nodes, [&](int node) { return node != nodes[0]; });
  if (other == nodes.end()) return eager;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const int far = int(other - nodes.begin());
  if (rank == 0 || rank == far) {
    NetworkProbe probe(comm, rank == 0 ? far : 0, rank == 0);
    const double round_trip = probe.round_trip();
    eager.to_all = eager_bytes_to_all(round_trip);
    if (round_trip < 0.5e-3) {  // else parts of the default lengths save more than they cost
      constexpr std::size_t least = 64 << 10, most = 4 << 20;
      eager.to_one = most;
      while (eager.to_one > least && !probe.sooner_in_parts(eager.to_one)) eager.to_one /= 2;
      if (eager.to_one < most) eager.of_longer = 0;
      if (eager.to_one == least) eager = {0, 0, 0};  // no TCP: replies cost less than any copy
    }
  }
  mpi_check(MPI_Bcast(&eager, int(sizeof eager), MPI_BYTE, 0, comm), "MPI_Bcast");
  return eager;
}

}  // namespace cleave::detail
